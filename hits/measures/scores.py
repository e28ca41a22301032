"""From outcomes of single rows to the figures of a model, and to the difference between two models on the same rows.

An outcome of a classifier is (right label, answered label) as numbers among the set's classes, the second one -1 where
the model gave no answer, which counts as wrong. One of a reader of passages is (exact match, token F1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hits.measures.intervals import RESAMPLES, Estimate, Floats, Statistic, bootstrap, mean, share
from hits.tasks import RIGHT_FROM_F1

NO_ANSWER: Final = -1
#: What is compared between models first, by whether they read passages.
ERROR: Final = "error"
LABEL_METRICS: Final = ("error", "accuracy", "macro_f1")
SPAN_METRICS: Final = ("error", "f1", "exact_match")
METRIC_NAMES: Final = {
    "error": "error rate",
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "f1": "token F1",
    "exact_match": "exact match",
}
#: Of these more is better; of the error rate less is.
HIGHER_IS_BETTER: Final = frozenset({"accuracy", "macro_f1", "f1", "exact_match"})


@dataclass
class Tally:
    """Outcomes, counted as they come. ``classes`` is empty for readers of passages."""

    classes: tuple[str, ...]
    seen: Counter[tuple[float, float]] = field(default_factory=Counter)

    def add(self, outcomes: Sequence[Sequence[float]]) -> None:
        """Count some more outcomes."""
        self.seen.update((one[0], one[1]) for one in outcomes)

    @property
    def rows(self) -> int:
        """How many were counted."""
        return self.seen.total()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The figures that there are."""
        return LABEL_METRICS if self.classes else SPAN_METRICS

    def confusion(self) -> Floats:
        """Return counts of shape (right label, answered label); the last column is for no answer."""
        size = len(self.classes)
        found = np.zeros((size, size + 1))
        for (right, said), count in self.seen.items():
            found[int(right), int(said) if said != NO_ANSWER else size] += count
        return found

    def scores(self, *, seed: int = 0, resamples: int = RESAMPLES) -> dict[str, Estimate]:
        """Return every figure with its interval. Raises ValueError when nothing was counted."""
        if not self.classes:
            return self._span_scores(seed, resamples)
        confusion = self.confusion()
        right, rows = int(np.trace(confusion)), self.rows
        return {
            "error": share(rows - right, rows, seed=seed, resamples=resamples),
            "accuracy": share(right, rows, seed=seed, resamples=resamples),
            "macro_f1": bootstrap(
                confusion.ravel().astype(int).tolist(),
                _macro_f1_of(len(self.classes)),
                seed=seed,
                resamples=resamples,
            ),
        }

    def _span_scores(self, seed: int, resamples: int) -> dict[str, Estimate]:
        rows = self.rows
        wrong = sum(count for (_, f1), count in self.seen.items() if f1 < RIGHT_FROM_F1)
        exact = sum(count for (match, _), count in self.seen.items() if match)
        every = [f1 for (_, f1), count in self.seen.items() for _ in range(count)]
        return {
            "error": share(wrong, rows, seed=seed, resamples=resamples),
            "f1": mean(every, seed=seed, resamples=resamples),
            "exact_match": share(exact, rows, seed=seed, resamples=resamples),
        }


def macro_f1(confusion: Mapping[str, Mapping[str, int]]) -> float:
    """Return the mean over the labels of the harmonic mean of precision and recall; 0 for a label never met.

    ``confusion`` is right label -> answered label -> rows, with every label in both places; "" is no answer.
    """
    labels = list(confusion)
    counts = np.array([[confusion[right].get(said, 0) for said in (*labels, "")] for right in labels], dtype=np.float64)
    return float(_macro_f1_of(len(labels))(counts.reshape(1, -1))[0])


def is_wrong(classes: Sequence[str], outcome: Sequence[float]) -> bool:
    """Tell whether an outcome counts as an error, as it would have fooled the model."""
    return outcome[0] != outcome[1] if classes else outcome[1] < RIGHT_FROM_F1


def difference(
    classes: Sequence[str],
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    metric: str,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Return by how much the figure of ``after`` is above that of ``before``, both on the same rows, in their order.

    The rows are drawn in pairs, so that what makes a row hard for both models falls out. Raises ValueError for outcomes
    of other rows, or for none.
    """
    if len(before) != len(after) or any(old[0] != new[0] for old, new in zip(before, after, strict=False) if classes):
        raise ValueError("the outcomes are not of the same rows")
    if metric == "macro_f1":
        return _macro_difference(len(classes), before, after, seed, resamples)
    values = [
        _value(classes, new, metric) - _value(classes, old, metric) for old, new in zip(before, after, strict=True)
    ]
    return mean(values, seed=seed, resamples=resamples, least=-1.0)


def _value(classes: Sequence[str], outcome: Sequence[float], metric: str) -> float:
    if metric == "error":
        return float(is_wrong(classes, outcome))
    if metric == "accuracy":
        return float(not is_wrong(classes, outcome))
    return outcome[0] if metric == "exact_match" else outcome[1]


def _macro_difference(
    size: int, before: Sequence[Sequence[float]], after: Sequence[Sequence[float]], seed: int, resamples: int
) -> Estimate:
    # Cells of (right, said before, said after), no answer last; each model's confusion is a sum over the other's.
    shape = (size, size + 1, size + 1)
    cells = np.zeros(shape)
    for old, new in zip(before, after, strict=True):
        cells[int(old[0]), int(old[1]), int(new[1])] += 1
    score = _macro_f1_of(size)

    def differ(counts: Floats) -> Floats:
        some = counts.reshape(-1, *shape)
        old, new = some.sum(axis=3).reshape(len(some), -1), some.sum(axis=2).reshape(len(some), -1)
        return score(new) - score(old)

    return bootstrap(cells.ravel().astype(int).tolist(), differ, seed=seed, resamples=resamples, least=-1.0)


def _macro_f1_of(size: int) -> Statistic:
    def score(counts: Floats) -> Floats:
        some = counts.reshape(-1, size, size + 1)
        right = some[:, range(size), range(size)]
        met = some.sum(axis=2) + some[:, :, :size].sum(axis=1)
        parts: Floats = np.divide(2 * right, met, out=np.zeros_like(right), where=met > 0)
        found: Floats = parts.mean(axis=1)
        return found

    return score


def parts_of(
    classes: Sequence[str], outcomes: Sequence[Sequence[float]], names: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Return by name how many rows there are and how many of them are errors; a row may have several names."""
    rows: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for outcome, of_row in zip(outcomes, names, strict=True):
        for name in set(of_row):
            rows[name] += 1
            wrong[name] += is_wrong(classes, outcome)
    return {name: {"rows": rows[name], "wrong": wrong[name]} for name in sorted(rows)}
