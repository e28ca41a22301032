"""How a round comes along, as SVG. Slow to import: matplotlib comes with it, so pages import it when asked."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sqlalchemy.orm import Session

from app.finance.plots import LOCK, without_styles
from app.operations.round_progress import DAYS
from hits.concentration import spread
from hits.models import Round
from hits.progress import latest_days, tally, written_counts
from hits.tasks import task

#: Told apart without colours too, by their lightness and hatching.
_COLOURS: Final = ("#9aa3b4", "#f0a94e", "#0172ad")
_HATCHES: Final = ("", "//", "..")


def days(session: Session, round_: Round, now: datetime) -> str:
    """Return what was collected and what was verified in each of the last days, the latest at the right."""
    found = list(reversed(latest_days(session, round_, now, DAYS)))

    def fill(axes: Any) -> None:
        places = range(len(found))
        parts = (("collected", [one.collected for one in found]), ("verified", [one.verified for one in found]))
        _bars(axes, parts, [-(len(found) - 1 - place) for place in places])
        axes.set_xlabel("days back, each of 24 hours")

    return _drawn(fill)


def labels(session: Session, round_: Round, now: datetime) -> str:
    """Return what was collected, fooled the model and was verified, by the label that was asked for."""
    counted = tally(session, round_).labels
    names = {label.code: label.name for label in task(round_.task_code).labels}

    def fill(axes: Any) -> None:
        parts = [
            (part, [getattr(one, part) for one in counted.values()]) for part in ("collected", "fooled", "verified")
        ]
        _bars(axes, parts, [names.get(label, label) for label in counted])

    return _drawn(fill)


def writers(session: Session, round_: Round, now: datetime) -> str:
    """Return which part of the examples which part of the writers wrote, those who wrote most first."""
    curve = spread(list(written_counts(session, round_).values()))

    def fill(axes: Any) -> None:
        axes.plot([100 * people for people, _ in curve], [100 * wrote for _, wrote in curve], color=_COLOURS[2])
        axes.plot([0, 100], [0, 100], color="#5c6370", linestyle="--", linewidth=1)
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 101)
        axes.set_xlabel("per cent of the writers, those who wrote most first; dashed: all write alike")
        axes.set_ylabel("per cent of the examples")

    return _drawn(fill)


def _bars(axes: Any, parts: Any, names: list[Any]) -> None:
    width = 0.8 / len(parts)
    for number, (label, counts) in enumerate(parts):
        shift = width * number - (width * (len(parts) - 1)) / 2
        look = len(_COLOURS) - len(parts) + number
        places = [place + shift for place in range(len(names))]
        axes.bar(
            places, counts, width=width, label=label, color=_COLOURS[look], hatch=_HATCHES[number], edgecolor="white"
        )
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=2))
    axes.set_ylim(bottom=0)
    axes.set_xticks(range(len(names)), names)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _drawn(fill: Callable[[Any], None]) -> str:
    with LOCK, mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dynahit", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8, 3), layout="constrained", facecolor="white")
        axes = figure.subplots()
        fill(axes)
        axes.spines[["top", "right"]].set_visible(False)
        out = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    return without_styles(out.getvalue())


PLOTS: Final[dict[str, Callable[[Session, Round, datetime], str]]] = {
    "days": days,
    "labels": labels,
    "writers": writers,
}
