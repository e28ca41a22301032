"""Measures models on sets of labelled rows and stores what they reached. Commits.

What a model made of some rows is stored as it comes, by the hash of its weights and the hash of the set: measuring goes
on where it was interrupted, and what was measured before is not measured again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.clock import Clock
from hits.errors import InvalidInput, Refused
from hits.measures.intervals import RESAMPLES, Estimate
from hits.measures.scores import NO_ANSWER, Tally, parts_of
from hits.measures.sets import LabelledRow, RowSet
from hits.measures.stored import Outcomes, outcomes_of
from hits.measures.transfers import Transfer
from hits.models import MeasuredSet, ModelAnswers, ModelScore
from hits.predictions import Prediction
from hits.tasks import TaskSpec, exact_match, task, token_f1

if TYPE_CHECKING:
    from inference.target import ModelCard, TargetModel

#: Rows whose answers are stored together.
PAGE: Final = 512
SEED: Final = 0

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Measured:
    """What a model reached on a set; ``fresh`` is False where all of it was stored before."""

    set_name: str
    rows: int
    scores: Mapping[str, Estimate]
    fresh: bool


def key_of(card: ModelCard) -> str:
    """Return the hash by which stored answers are found again: over the weights and what the labels mean.

    A model whose weights are not known (on a server, an ensemble) is told apart by its name and revision.
    """
    which = [card.weights_sha256] if card.weights_sha256 else [card.model_id]
    known = [*which, card.revision, sorted(card.label_map.items()), list(card.labels)]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def require_measurable(model_task: str, row_set: RowSet, transfer: Transfer | None) -> None:
    """Raise InvalidInput when the model's task and the set's don't meet, by this map or without one."""
    wanted = (transfer.model_task, transfer.set_task) if transfer is not None else (row_set.task_code,) * 2
    if (model_task, row_set.task_code) != wanted:
        via = f"the map {transfer.code!r}" if transfer is not None else "no map"
        raise InvalidInput(
            f"A model of the {model_task} task can't be measured on {row_set.name!r} of the {row_set.task_code} task"
            f" by {via}. `dynahit measure maps` lists the maps."
        )


def is_measured(session: Session, row_set: RowSet, model_key: str, transfer: Transfer | None = None) -> bool:
    """Tell whether all figures of the model on the set are stored. Reads only."""
    return _stored(session, row_set, model_key, _code(transfer)) is not None


def measure_model(
    session: Session,
    clock: Clock,
    model: TargetModel,
    row_set: RowSet,
    *,
    model_task: str,
    transfer: Transfer | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    advance: Advance = lambda count: None,
) -> Measured:
    """Measure a model on a set, or return what was stored. Interrupted, it goes on when it is asked again.

    ``advance`` is told how many more rows are done. No transaction is open while the model works. Raises InvalidInput
    for a set of another task, and ModelUnavailable when the model fails; what it had answered by then stays.
    """
    require_measurable(model_task, row_set, transfer)
    card = model.card
    key, code = key_of(card), _code(transfer)
    if (before := _stored(session, row_set, key, code)) is not None:
        session.rollback()
        return before
    rows = row_set.load()
    if not rows:
        raise Refused(f"{row_set.name} of the {row_set.task_code} task holds no row with a settled label.")
    spec = task(row_set.task_code)
    classes = () if spec.span_input is not None else transfer.classes if transfer is not None else spec.label_codes
    set_id = _set_row(session, clock, row_set, len(rows))
    outcomes = outcomes_of(session, set_id, key, code)
    session.rollback()
    advance(len(outcomes))
    while len(outcomes) < len(rows):
        page = rows[len(outcomes) : len(outcomes) + PAGE]
        said = _answers(model, page, transfer)
        found = [_outcome(spec, classes, row, one, transfer) for row, one in zip(page, said, strict=True)]
        _store(session, clock, set_id, key, code, len(outcomes), classes, found)
        outcomes += found
        advance(len(found))
    tally = Tally(classes)
    tally.add(outcomes)
    scores = tally.scores(seed=seed, resamples=resamples)
    parts = _parts(classes, outcomes, rows)
    now = clock.now()
    for metric, estimate in scores.items():
        session.add(
            ModelScore(
                set_id=set_id,
                model_key=key,
                transfer=code,
                model_id=card.model_id,
                revision=card.revision,
                weights_sha256=card.weights_sha256,
                metric=metric,
                value=estimate.value,
                low=estimate.low,
                high=estimate.high,
                rows=estimate.rows,
                seed=estimate.seed,
                resamples=estimate.resamples,
                parts=parts if metric == "error" else None,
                at=now,
            )
        )
    try:
        session.commit()
    except IntegrityError:
        # Somebody else has measured the same at the same time, with the same result.
        session.rollback()
    return Measured(row_set.name, len(rows), scores, fresh=True)


def _stored(session: Session, row_set: RowSet, model_key: str, transfer: str) -> Measured | None:
    scores = session.scalars(
        select(ModelScore)
        .join(ModelScore.set)
        .where(MeasuredSet.task_code == row_set.task_code, MeasuredSet.sha256 == row_set.sha256)
        .where(ModelScore.model_key == model_key, ModelScore.transfer == transfer)
    ).all()
    if not scores:
        return None
    found = {one.metric: Estimate(one.value, one.low, one.high, one.rows, one.seed, one.resamples) for one in scores}
    return Measured(row_set.name, scores[0].rows, found, fresh=False)


def _set_row(session: Session, clock: Clock, row_set: RowSet, rows: int) -> int:
    """Return the id of the set's row, which is made if there is none. Commits."""
    wanted = select(MeasuredSet.id).where(
        MeasuredSet.task_code == row_set.task_code, MeasuredSet.sha256 == row_set.sha256
    )
    known = session.scalar(wanted)
    if known is None:
        session.add(
            MeasuredSet(
                task_code=row_set.task_code,
                sha256=row_set.sha256,
                name=row_set.name,
                kind=row_set.kind,
                round_number=row_set.round_number,
                split=row_set.split,
                rows=rows,
                first_seen_at=clock.now(),
            )
        )
        try:
            session.commit()
        except IntegrityError:
            session.rollback()
        known = session.scalars(wanted).one()
    session.rollback()
    return known


def _store(
    session: Session,
    clock: Clock,
    set_id: int,
    key: str,
    transfer: str,
    start: int,
    classes: Sequence[str],
    outcomes: Outcomes,
) -> None:
    session.add(
        ModelAnswers(
            set_id=set_id,
            model_key=key,
            transfer=transfer,
            start=start,
            rows=len(outcomes),
            classes=list(classes),
            outcomes=outcomes,
            at=clock.now(),
        )
    )
    try:
        session.commit()
    except IntegrityError:
        # Somebody else measures the same at the same time; what they stored is kept.
        session.rollback()


def _answers(model: TargetModel, rows: Sequence[LabelledRow], transfer: Transfer | None) -> Sequence[Prediction | None]:
    from inference.answers import answers

    return answers(model, [row.texts if transfer is None else transfer.reads(row.texts) for row in rows])


def _outcome(
    spec: TaskSpec, classes: Sequence[str], row: LabelledRow, said: Prediction | None, transfer: Transfer | None
) -> list[float]:
    if spec.span_input is not None:
        given = said.span.text if said is not None and said.span is not None else ""
        best = max(token_f1(given, one) for one in row.right)
        # Four digits keep 0.4 what it is, and a set's outcomes few.
        return [int(any(exact_match(given, one) for one in row.right)), round(best, 4)]
    right = row.right[0] if transfer is None else transfer.gold[row.right[0]]
    label = None if said is None else said.label if transfer is None else transfer.said[said.label]
    return [classes.index(right), NO_ANSWER if label is None else classes.index(label)]


def _parts(classes: Sequence[str], outcomes: Outcomes, rows: Sequence[LabelledRow]) -> dict[str, Any] | None:
    kinds = sorted({kind for row in rows for kind in row.parts})
    found = {kind: parts_of(classes, outcomes, [row.parts.get(kind, ()) for row in rows]) for kind in kinds}
    return found or None


def _code(transfer: Transfer | None) -> str:
    return transfer.code if transfer is not None else ""
