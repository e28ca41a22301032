"""Reads what was measured: the matrix of a task, two models against each other, the leaderboard. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sqlalchemy.orm import Session

from hits.errors import InvalidInput
from hits.measures.intervals import Estimate
from hits.measures.matrix import Compared, Leaderboard, Matrix, leaderboard, matrix_of, model_of, readings
from hits.measures.scores import ERROR, LABEL_METRICS, SPAN_METRICS, difference
from hits.measures.stored import ModelHead, SetHead, Stored, classes_of, outcomes_of, stored_scores
from hits.measures.transfers import TRANSFERS
from hits.tasks import TaskSpec, task
from payments.tables import Column, Table, csv_lines

#: Enough for an interval in a table; figures that are stored have more behind them.
RESAMPLES = 1000


@dataclass(frozen=True)
class Comparison:
    """Two models on every set that both were measured on."""

    metric: str
    before: ModelHead
    after: ModelHead
    compared: tuple[Compared, ...]
    words: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as it is printed by ``--json``."""
        return {
            "metric": self.metric,
            "before": {"model": self.before.model_id, "revision": self.before.revision, "map": self.before.transfer},
            "after": {"model": self.after.model_id, "revision": self.after.revision, "map": self.after.transfer},
            "sets": [
                {
                    "set": one.set.name,
                    "before": one.before.as_json(),
                    "after": one.after.as_json(),
                    "difference": one.difference.as_json(),
                }
                for one in self.compared
            ],
            "in_words": list(self.words),
        }


def metrics_of(spec: TaskSpec) -> tuple[str, ...]:
    """Return the figures of a task's models, the error rate first."""
    return SPAN_METRICS if spec.span_input is not None else LABEL_METRICS


def metric_of(spec: TaskSpec, wanted: str | None) -> str:
    """Return the figure that is asked for, the error rate unless another is. Raises InvalidInput for an unknown one."""
    if wanted is None or wanted in metrics_of(spec):
        return wanted or ERROR
    raise InvalidInput(f"The {spec.code} task has no figure {wanted!r}. It has {', '.join(metrics_of(spec))}.")


def read_matrix(session: Session, task_code: str, metric: str | None = None) -> Matrix:
    """Return the matrix of a task. Raises NotFound for an unknown task, InvalidInput for an unknown figure."""
    spec = task(task_code)
    chosen = metric_of(spec, metric)
    found = matrix_of(spec.code, stored_scores(session, spec.code), chosen)
    session.rollback()
    return found


def matrix_csv(matrix: Matrix) -> str:
    """Return the matrix as CSV, one line for each cell; names are no formulas for a spreadsheet."""
    rows = matrix.as_rows()
    columns = list(rows[0]) if rows else ["task", "model", "revision", "map", "set", "metric", "value", "low", "high"]
    cells = [[Decimal(repr(one)) if isinstance(one, float) else one for one in row.values()] for row in rows]
    return "".join(csv_lines(Table("matrix", tuple(map(Column, columns)), cells)))


def read_parts(session: Session, task_code: str) -> list[Stored]:
    """Return the error rates that are known by part of the set: by functionality, by group."""
    found = [
        one for one in stored_scores(session, task(task_code).code) if one.metric == ERROR and one.parts is not None
    ]
    session.rollback()
    return found


def compare(
    session: Session, task_code: str, before: str, after: str, metric: str | None = None, *, seed: int = 0
) -> Comparison:
    """Return two models side by side, by their handles or names. Raises NotFound with those that were measured."""
    matrix = read_matrix(session, task_code, metric)
    old, new = model_of(matrix.models, before), model_of(matrix.models, after)
    compared = []
    for one in matrix.sets:
        was, now = matrix.cell(old, one), matrix.cell(new, one)
        if was is not None and now is not None and (apart := _difference(session, old, new, one, matrix.metric, seed)):
            compared.append(Compared(one, was, now, apart))
    errors = compared
    if matrix.metric != ERROR:
        errors = list(compare(session, task_code, before, after, ERROR, seed=seed).compared)
    session.rollback()
    return Comparison(matrix.metric, old, new, tuple(compared), tuple(readings(old, new, errors)))


def read_leaderboard(
    session: Session, task_code: str, names: Sequence[str] = (), metric: str | None = None
) -> Leaderboard:
    """Return the models of a task, the best first, over the sets of these names.

    Without names these are all test splits and base sets that any model was measured on. Raises NotFound for an unknown
    task, InvalidInput for a set that nothing was measured on.
    """
    matrix = read_matrix(session, task_code, metric)
    labels = task(task_code).label_codes
    # A model that answers between other classes reaches figures of another kind.
    matrix = replace(
        matrix,
        models=tuple(one for one in matrix.models if not one.transfer or TRANSFERS[one.transfer].classes == labels),
    )
    by_name = {one.name: one for one in matrix.sets}
    if unknown := [name for name in names if name not in by_name]:
        listed = "; ".join(by_name) or "none yet"
        raise InvalidInput(
            f"Nothing was measured on a set {unknown[0]!r} of the {task_code} task. There are: {listed}."
        )
    sets = [by_name[name] for name in names] or usual_sets(matrix)

    def apart(first: ModelHead, second: ModelHead, one: SetHead) -> Estimate:
        found = _difference(session, first, second, one, matrix.metric, 0)
        return found or Estimate(0.0, -1.0, 1.0, one.rows, 0, 0)

    found = leaderboard(matrix, sets, apart)
    session.rollback()
    return found


def usual_sets(matrix: Matrix) -> list[SetHead]:
    """Return the test splits of rounds and the base sets."""
    return [one for one in matrix.sets if one.kind == "base" or (one.kind == "round" and one.split == "test")]


def _difference(
    session: Session, before: ModelHead, after: ModelHead, one: SetHead, metric: str, seed: int
) -> Estimate | None:
    """Return the paired difference, None where the two were not measured between the same classes."""
    classes = classes_of(session, one.id, before.key, before.transfer)
    if classes != classes_of(session, one.id, after.key, after.transfer):
        return None
    old = outcomes_of(session, one.id, before.key, before.transfer)
    new = outcomes_of(session, one.id, after.key, after.transfer)
    return difference(classes, old, new, metric, seed=seed, resamples=RESAMPLES)
