"""Models by sets: the matrix, what a later model does better and worse than an earlier one, and the leaderboard."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hits.errors import NotFound
from hits.measures.intervals import Estimate
from hits.measures.scores import HIGHER_IS_BETTER, METRIC_NAMES
from hits.measures.stored import ModelHead, SetHead, Stored, place_of


@dataclass(frozen=True)
class Matrix:
    """One figure of every model on every set; a pair that was not measured has no cell."""

    task_code: str
    metric: str
    models: tuple[ModelHead, ...]
    sets: tuple[SetHead, ...]
    cells: Mapping[tuple[str, str, int], Estimate]

    def cell(self, model: ModelHead, one: SetHead) -> Estimate | None:
        """Return a figure, None where it was not measured."""
        return self.cells.get((model.key, model.transfer, one.id))

    def as_rows(self) -> list[dict[str, Any]]:
        """Return one row for each cell, as they are written to CSV and JSON."""
        return [
            {
                "task": self.task_code,
                "model": model.model_id,
                "revision": model.revision,
                "map": model.transfer,
                "set": one.name,
                "kind": one.kind,
                "round": one.round_number,
                "split": one.split,
                "metric": self.metric,
                **estimate.as_json(),
            }
            for model in self.models
            for one in self.sets
            if (estimate := self.cell(model, one)) is not None
        ]


@dataclass(frozen=True)
class Compared:
    """What two models reach on one set; ``difference`` is the later one's minus the earlier one's."""

    set: SetHead
    before: Estimate
    after: Estimate
    difference: Estimate


@dataclass(frozen=True)
class Placed:
    """A model on the leaderboard: the mean of its figures and of its ranks over the sets.

    ``apart`` tells whether it is clearly behind the one above it, None for the first.
    """

    model: ModelHead
    figures: tuple[Estimate, ...]
    mean: float
    low: float
    high: float
    mean_rank: float
    place: int
    shared: bool
    apart: bool | None


@dataclass(frozen=True)
class Leaderboard:
    """Models that were measured on all of the sets, the best first; ``left_out`` are those that were not."""

    metric: str
    sets: tuple[SetHead, ...]
    placed: tuple[Placed, ...]
    left_out: tuple[ModelHead, ...]


def matrix_of(task_code: str, stored: Sequence[Stored], metric: str) -> Matrix:
    """Return the matrix of one figure out of everything that was measured."""
    chosen = [one for one in stored if one.metric == metric]
    models = {(one.model.key, one.model.transfer): one.model for one in chosen}
    sets = sorted({one.set.id: one.set for one in chosen}.values(), key=place_of)
    cells = {(one.model.key, one.model.transfer, one.set.id): one.estimate for one in chosen}
    return Matrix(task_code, metric, tuple(models.values()), tuple(sets), cells)


def model_of(models: Collection[ModelHead], handle: str) -> ModelHead:
    """Return the model by its handle, or by its name if only one has it. Raises NotFound with those there are."""
    wanted = handle.strip()
    found = [one for one in models if wanted in (one.handle, one.name)] or [
        one for one in models if wanted == one.model_id and not one.transfer
    ]
    if len(found) != 1:
        listed = "; ".join(f"{one.handle} ({one.name})" for one in models) or "none yet"
        raise NotFound(f"{handle!r} names {len(found) or 'no'} measured models. There are: {listed}.")
    return found[0]


def readings(before: ModelHead, after: ModelHead, compared: Sequence[Compared]) -> list[str]:
    """Return in sentences what the later model does better and worse by its error rate, and what is hard for it."""
    if not compared:
        return [f"{before.name} and {after.name} were measured on no set in common. Measure both on the same ones."]
    less = [one for one in compared if one.difference.high < 0]
    more = [one for one in compared if one.difference.low > 0]
    same = [one for one in compared if not one.difference.is_clear]
    found = []
    if less:
        found.append(f"{after.name} errs less than {before.name} on {_listed(less)}.")
    if more:
        found.append(f"It errs more, so that it has forgotten something, on {_listed(more)}.")
    if same:
        found.append(f"No clear difference on {_listed(same)}.")
    rounds = [one for one in compared if one.set.kind == "round"]
    if rounds:
        hardest = max(rounds, key=lambda one: one.after.value)
        newest = max(rounds, key=lambda one: (one.set.round_number or 0, one.set.split == "test"))
        found.append(
            f"The newest round, {newest.set.name}, has it err on {_interval(newest.after)}"
            f" and had {before.name} err on {_interval(newest.before)}."
        )
        if hardest is not newest:
            found.append(f"The hardest is {hardest.set.name}: {_interval(hardest.after)}.")
    return found


def leaderboard(
    matrix: Matrix, sets: Sequence[SetHead], difference: Callable[[ModelHead, ModelHead, SetHead], Estimate]
) -> Leaderboard:
    """Return the models by mean rank over the sets, then by their mean figure.

    The best on a set has rank 1, equal figures share the mean of their ranks. The sets are samples of their own, so the
    mean's interval follows from the single ones. ``difference`` gives the paired difference of two models on a set.
    """
    in_order = sorted(sets, key=place_of)
    known = [one for one in matrix.models if all(matrix.cell(one, each) for each in in_order)] if in_order else []
    figures = {model: [cell for one in in_order if (cell := matrix.cell(model, one))] for model in known}
    sign = -1 if matrix.metric in HIGHER_IS_BETTER else 1
    ranks: dict[ModelHead, list[float]] = {model: [] for model in known}
    for place in range(len(in_order)):
        values = [sign * figures[model][place].value for model in known]
        for model, rank in zip(known, ranked(values), strict=True):
            ranks[model].append(rank)
    mean_rank = {model: sum(some) / len(some) for model, some in ranks.items()}
    means = {model: sum(one.value for one in some) / len(some) for model, some in figures.items()}
    order = sorted(known, key=lambda model: (mean_rank[model], sign * means[model], model.first_at))
    placed: list[Placed] = []
    for number, model in enumerate(order, start=1):
        half = _half_width(figures[model])
        above = placed[-1] if placed else None
        ties = [one for one in order if mean_rank[one] == mean_rank[model] and means[one] == means[model]]
        apart = None
        if above is not None:
            apart = _behind([difference(above.model, model, one) for one in in_order], sign)
        shared = above.place if above is not None and above.model in ties else number
        placed.append(
            Placed(
                model,
                tuple(figures[model]),
                means[model],
                means[model] - half,
                means[model] + half,
                mean_rank[model],
                shared,
                len(ties) > 1,
                apart,
            )
        )
    left_out = tuple(one for one in matrix.models if one not in known)
    return Leaderboard(matrix.metric, tuple(in_order), tuple(placed), left_out)


def ranked(values: Sequence[float]) -> list[float]:
    """Return the rank of each value, the smallest first; equal ones share the mean of their ranks."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]


def percent(value: float) -> str:
    """Return a share in words."""
    return f"{100 * value:.1f}%"


def in_words(metric: str, *, begins: bool = False) -> str:
    """Return what a figure is called; with ``begins`` as a sentence begins."""
    name = METRIC_NAMES[metric]
    return name[:1].upper() + name[1:] if begins else name


def _half_width(figures: Sequence[Estimate]) -> float:
    squares = sum(((one.high - one.low) / 2) ** 2 for one in figures)
    return math.sqrt(squares) / len(figures)


def _behind(differences: Sequence[Estimate], sign: int) -> bool:
    middle = sum(one.value for one in differences) / len(differences)
    return sign * middle > _half_width(differences)


def _listed(some: Sequence[Compared]) -> str:
    return "; ".join(
        f"{one.set.name} ({100 * one.difference.value:+.1f} points, 95% interval"
        f" {100 * one.difference.low:+.1f} to {100 * one.difference.high:+.1f})"
        for one in some
    )


def _interval(one: Estimate) -> str:
    return f"{percent(one.value)} ({percent(one.low)} to {percent(one.high)})"
