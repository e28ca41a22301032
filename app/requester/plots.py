"""Figures of a round's readers as SVG. Slow to import: matplotlib comes with it, so pages import it when asked."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from app.finance.plots import LOCK, without_styles
from app.operations.round_arms import RoundArms
from app.operations.round_stats import RoundStats
from hits.rates import Rate
from hits.validations.readers import Reader

#: Blue and orange differ in lightness, and in their marks, for those who don't tell colours apart.
_COLOURS: Final = ("#0172ad", "#f0a94e")
_MARKS: Final = ("o", "s")
_MOST_ROWS: Final = 24


def error_rates(found: RoundStats) -> str:
    """Return the round's error rates with their 95 % intervals."""
    rates = found.rates
    named = (("vMER", rates.vmer), ("MER", rates.mer), ("vMER, resolved only", rates.resolved_vmer))
    known = [(name, rate) for name, rate in named if rate.of]

    def fill(axes: Any) -> None:
        _points(axes, [rate for _, rate in known], 0, "", shift=0)
        axes.set_xlim(0, 100)
        axes.set_xlabel("per cent, with 95% interval")

    return _drawn([name for name, _ in known], fill)


def gold_and_agreement(found: RoundStats) -> str:
    """Return each validator's share of right gold items and of agreement with the verdicts, with intervals."""
    people = _people(found)

    def fill(axes: Any) -> None:
        _points(axes, [one.gold for one in people], 0, "gold items right", shift=-0.15)
        _points(axes, [one.agreed for one in people], 1, "agrees with the final label", shift=0.15)
        axes.axvline(found.gold_warning_percent, color="#5c6370", linestyle="--", linewidth=1)
        axes.set_xlim(0, 100)
        axes.set_xlabel(f"per cent, with 95% interval; the line is at {found.gold_warning_percent}%")
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)

    return _drawn([one.pseudonym for one in people], fill)


def seconds_per_item(found: RoundStats) -> str:
    """Return each validator's median seconds for an item."""
    people = [one for one in _people(found) if one.seconds is not None]

    def fill(axes: Any) -> None:
        axes.barh(range(len(people)), [one.seconds for one in people], color=_COLOURS[0], height=0.6)
        axes.set_xlim(left=0)
        axes.set_xlabel("median seconds for an item")

    return _drawn([one.pseudonym for one in people], fill)


def arm_rates(found: RoundArms) -> str:
    """Return MER and vMER of each arm that has examples, with their 95 % intervals."""
    known = [one for one in found.arms if one.figures.examples]

    def fill(axes: Any) -> None:
        _points(axes, [one.figures.mer for one in known], 0, "MER", shift=-0.15)
        _points(axes, [one.figures.vmer for one in known], 1, "vMER", shift=0.15)
        axes.set_xlim(0, 100)
        axes.set_xlabel("per cent, with 95% interval")
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)

    return _drawn([one.name or "none" for one in known], fill)


def _people(found: RoundStats) -> Sequence[Reader]:
    return found.readers[:_MOST_ROWS]


def _points(axes: Any, rates: Sequence[Rate], look: int, label: str, *, shift: float) -> None:
    rows = [(place, rate, rate.bounds) for place, rate in enumerate(rates)]
    known = [(place + shift, 100 * rate.hits / rate.of, bounds) for place, rate, bounds in rows if bounds is not None]
    shares = [share for _, share, _ in known]
    # Rounding may put a share of all or none a hair outside of its interval.
    below = [max(share - 100 * low, 0) for _, share, (low, _) in known]
    above = [max(100 * high - share, 0) for _, share, (_, high) in known]
    axes.errorbar(
        shares,
        [place for place, _, _ in known],
        xerr=[below, above],
        fmt=_MARKS[look],
        color=_COLOURS[look],
        ecolor=_COLOURS[look],
        capsize=3,
        label=label,
    )


def _drawn(names: Sequence[str], fill: Callable[[Any], None]) -> str:
    with LOCK, mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dynahit", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8, 1.6 + 0.36 * len(names)), layout="constrained", facecolor="white")
        axes = figure.subplots()
        fill(axes)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
        axes.spines[["top", "right"]].set_visible(False)
        out = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    return without_styles(out.getvalue())


PLOTS: Final[dict[str, Callable[[RoundStats], str]]] = {
    "error-rates": error_rates,
    "gold-and-agreement": gold_and_agreement,
    "seconds-per-item": seconds_per_item,
}
