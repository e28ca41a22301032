"""What was measured, as it is stored: figures by model and set, and outcomes row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload

from hits.measures.intervals import Estimate
from hits.models import MeasuredSet, ModelAnswers, ModelScore

Outcomes = list[list[float]]

_KINDS = ("round", "base", "functions")
_SPLITS = ("test", "dev", "train", None)


@dataclass(frozen=True)
class SetHead:
    """A set that was measured on."""

    id: int
    name: str
    kind: str
    round_number: int | None
    split: str | None
    rows: int


@dataclass(frozen=True)
class ModelHead:
    """A model that was measured; ``transfer`` names the map by which it answers for another task or other labels."""

    key: str
    transfer: str
    model_id: str
    revision: str
    first_at: datetime

    @property
    def name(self) -> str:
        """What it is called in tables: its name, the beginning of its version, and the map."""
        via = f" by {self.transfer}" if self.transfer else ""
        return f"{self.model_id} {self.revision[:8]}{via}"

    @property
    def handle(self) -> str:
        """What it is called in commands and addresses."""
        return f"{self.key[:12]}{':' if self.transfer else ''}{self.transfer}"


@dataclass(frozen=True)
class Stored:
    """One figure of a model on a set, with the errors by part of the set where it has parts."""

    model: ModelHead
    set: SetHead
    metric: str
    estimate: Estimate
    parts: dict[str, Any] | None
    at: datetime


def stored_scores(session: Session, task_code: str) -> list[Stored]:
    """Return every figure of a task's sets, models by when they were first measured, sets in their order. Reads only.

    Sets come by round, its test split first; then base sets, then functional tests, as they came. Two sets of one name
    get the beginning of their hash.
    """
    rows = session.scalars(
        select(ModelScore)
        .join(ModelScore.set)
        .where(MeasuredSet.task_code == task_code)
        .options(joinedload(ModelScore.set))
        .order_by(ModelScore.id)
    ).all()
    sets = {row.set_id: row.set for row in rows}
    names = [one.name for one in sets.values()]
    heads = {
        number: SetHead(
            number,
            f"{one.name} ({one.sha256[:6]})" if names.count(one.name) > 1 else one.name,
            one.kind,
            one.round_number,
            one.split,
            one.rows,
        )
        for number, one in sets.items()
    }
    models: dict[tuple[str, str], ModelHead] = {}
    for row in rows:
        models.setdefault(
            (row.model_key, row.transfer), ModelHead(row.model_key, row.transfer, row.model_id, row.revision, row.at)
        )
    found = [
        Stored(
            models[row.model_key, row.transfer],
            heads[row.set_id],
            row.metric,
            Estimate(row.value, row.low, row.high, row.rows, row.seed, row.resamples),
            row.parts,
            row.at,
        )
        for row in rows
    ]
    order = {key: place for place, key in enumerate(models)}
    return sorted(found, key=lambda one: (order[one.model.key, one.model.transfer], place_of(one.set)))


def place_of(one: SetHead) -> tuple[int, int, int, int]:
    """Return where a set stands among others."""
    return _KINDS.index(one.kind), one.round_number or 0, _SPLITS.index(one.split), one.id


def outcomes_of(session: Session, set_id: int, model_key: str, transfer: str = "") -> Outcomes:
    """Return what the model made of the first rows of a set, as far as it is stored. Reads only."""
    pages: Sequence[Any] = session.execute(
        select(ModelAnswers.start, ModelAnswers.outcomes)
        .where(ModelAnswers.set_id == set_id, ModelAnswers.model_key == model_key, ModelAnswers.transfer == transfer)
        .order_by(ModelAnswers.start)
    ).all()
    found: Outcomes = []
    for start, page in pages:
        if start == len(found):
            found += page
    return found


def classes_of(session: Session, set_id: int, model_key: str, transfer: str = "") -> tuple[str, ...]:
    """Return the classes that the outcomes count among; empty for readers of passages. Reads only."""
    found = session.scalar(
        select(ModelAnswers.classes)
        .where(ModelAnswers.set_id == set_id, ModelAnswers.model_key == model_key, ModelAnswers.transfer == transfer)
        .limit(1)
    )
    return tuple(found or ())
