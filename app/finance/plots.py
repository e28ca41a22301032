"""Figures of the finance pages as SVG. Slow to import: matplotlib comes with it, so pages import it when asked."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hits.money import display, from_cents, to_cents
from payments.overview import Overview
from payments.report import Figures

#: Blue, orange, grey: told apart without colours too, by their lightness and hatching.
_COLOURS: Final = ("#0172ad", "#f0a94e", "#9aa3b4")
_HATCHES: Final = ("", "//", "..")
_MOST_BARS: Final = 24
_LEAST_PLACES: Final = 4
#: matplotlib's settings and fonts are shared by all threads of a process.
LOCK: Final = threading.Lock()

_STYLE: Final = re.compile(r'\sstyle="([^"]*)"')
_STYLE_ELEMENT: Final = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)


def spent_by_month(months: Mapping[str, Figures]) -> str:
    """Return stacked bars of rewards, bonuses and fees by month, the oldest first."""
    parts = {
        "rewards": [figures.rewards for figures in months.values()],
        "bonuses": [figures.bonuses for figures in months.values()],
        "fees": [figures.fees for figures in months.values()],
    }
    return _drawn(list(months), parts, stacked=True)


def promised_and_paid(found: Overview) -> str:
    """Return what was promised in bonuses and what of it was paid, by round."""
    names = [name for name in found.by_round if name][-_MOST_BARS:]
    rounds = [found.by_round[name] for name in names]
    parts = {"promised": [one.promised for one in rounds], "paid": [one.bonuses for one in rounds]}
    return _drawn(names, parts, stacked=False)


def cost_per_verified(found: Overview) -> str:
    """Return what one verified fooling example cost, by round; rounds without one are left out."""
    costs = {name: money.cost_per_verified for name, money in found.by_round.items()}
    known = [(name, cost) for name, cost in costs.items() if name and cost is not None][-_MOST_BARS:]
    return _drawn([name for name, _ in known], {"one example": [cost for _, cost in known]}, stacked=False)


def _drawn(names: Sequence[str], parts: Mapping[str, Sequence[Decimal]], *, stacked: bool) -> str:
    with LOCK, mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dynahit", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8, 3), layout="constrained", facecolor="white")
        axes = figure.subplots()
        _bars(axes, names, parts, stacked=stacked)
        axes.yaxis.set_major_formatter(FuncFormatter(_dollars))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=2))
        axes.set_ylim(bottom=0)
        # A single bar must not fill the picture.
        axes.set_xlim(-1, max(len(names), _LEAST_PLACES))
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xticks(range(len(names)), names, rotation=0 if len(names) < 9 else 45)
        if len(parts) > 1:
            axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return without_styles(out.getvalue())


def _bars(axes: Any, names: Sequence[str], parts: Mapping[str, Sequence[Decimal]], *, stacked: bool) -> None:
    below = [0] * len(names)
    places = range(len(names))
    for number, (label, amounts) in enumerate(parts.items()):
        cents = [to_cents(amount) for amount in amounts]
        look = {"label": label, "color": _COLOURS[number], "hatch": _HATCHES[number], "edgecolor": "white"}
        if stacked:
            axes.bar(places, cents, bottom=below, **look)
            below = [before + more for before, more in zip(below, cents, strict=True)]
        else:
            # Side by side: each gets its share of the room of one name.
            width = Decimal("0.8") / len(parts)
            shift = width * number - (width * (len(parts) - 1)) / 2
            axes.bar([place + shift for place in map(Decimal, places)], cents, width=width, **look)


def _dollars(cents: Any, _position: object = None) -> str:
    return display(from_cents(round(cents)))


def without_styles(svg: str) -> str:
    """Return the picture with attributes in the place of styles, which our content policy forbids."""
    svg = _STYLE_ELEMENT.sub("", svg)
    svg = _STYLE.sub(_attributes, svg)
    return svg.replace("<svg ", '<svg stroke-linejoin="round" stroke-linecap="butt" ', 1)


def _attributes(found: re.Match[str]) -> str:
    pairs = (one.partition(":") for one in found[1].replace("&quot;", "'").split(";") if one.strip())
    told = {name.strip(): value.strip() for name, _, value in pairs}
    if "font" in told:
        # The short form is no attribute: "12px 'DejaVu Sans', sans-serif".
        size, _, family = told.pop("font").partition(" ")
        told |= {"font-size": size, "font-family": family}
    return "".join(f' {name}="{value}"' for name, value in told.items())


PLOTS: Final[dict[str, Callable[[Overview], str]]] = {
    "promised-and-paid": promised_and_paid,
    "cost-per-verified": cost_per_verified,
}
