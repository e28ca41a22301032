"""The matrix of models by sets as SVG. Slow to import: matplotlib comes with it, so pages import it when asked."""

from __future__ import annotations

import io
from typing import Any, Final

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from app.finance.plots import LOCK, without_styles
from app.requester.matrix_size import MOST_MODELS, MOST_SETS, inches_high
from hits.measures.intervals import Estimate
from hits.measures.matrix import Matrix, in_words

#: Told apart without colours too: by their marks, and by their lightness.
_COLOURS: Final = ("#01568a", "#c05c00", "#18643a", "#7a3e9d", "#59606f", "#a3211b")
_MARKS: Final = ("o", "s", "^", "D", "v", "P")


def drawn(matrix: Matrix) -> str:
    """Return each set's figures with their 95 % intervals, a mark for each of the newest models."""
    models, sets = matrix.models[-MOST_MODELS:], matrix.sets[:MOST_SETS]
    with LOCK, mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dynahit", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8, inches_high(matrix)), layout="constrained", facecolor="white")
        axes = figure.subplots()
        step = 0.8 / max(len(models), 1)
        for number, model in enumerate(models):
            shift = (number - (len(models) - 1) / 2) * step
            cells = [(place + shift, cell) for place, one in enumerate(sets) if (cell := matrix.cell(model, one))]
            _points(axes, cells, number, model.name)
        axes.set_yticks(range(len(sets)), [f"{one.name} ({one.rows:,})" for one in sets])
        axes.set_ylim(max(len(sets), 1) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.set_xlabel(f"{in_words(matrix.metric)} in per cent, with 95% interval")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#dfe4ec", linewidth=0.8)
        axes.set_axisbelow(True)
        if models:
            axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), fontsize="small")
        out = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    return without_styles(out.getvalue())


def _points(axes: Any, cells: list[tuple[float, Estimate]], look: int, label: str) -> None:
    axes.errorbar(
        [100 * cell.value for _, cell in cells],
        [place for place, _ in cells],
        # The middle of the samples may lie a hair off the figure itself.
        xerr=[
            [100 * max(cell.value - cell.low, 0) for _, cell in cells],
            [100 * max(cell.high - cell.value, 0) for _, cell in cells],
        ],
        fmt=_MARKS[look],
        color=_COLOURS[look],
        ecolor=_COLOURS[look],
        capsize=3,
        markersize=5,
        label=label,
    )
