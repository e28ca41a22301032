"""Asks the target model about a round's contexts, once for each of its versions, and keeps how unsure it was.

What is asked depends on what the task's model reads. Where it reads only what writers write (sentiment, hate), it is
asked about the context itself, as if that were written. Where it reads the context with a writer's text (nli, qa), it
is asked about up to ``TEXTS`` earlier examples of the task on the same context, and the mean counts; a context without
examples has no score. Unsure is the entropy of its probabilities, as a share of the most there could be; of a reader of
passages, what its own span lacks to probability 1.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.operations.submit_attempt import Cards, register_model
from hits.attempts import unusable
from hits.clock import Clock
from hits.db import only_reads
from hits.duplicates import text_of
from hits.errors import InvalidInput, Refused
from hits.export import find_round
from hits.models import Attempt, Context, ContextScore, Example, Round
from hits.predictions import Prediction, Predictor
from hits.tasks import TaskSpec, task

#: Examples of a context that the model is asked about, the latest.
TEXTS: Final = 5
#: Contexts of one transaction.
_CHUNK: Final = 20

Advance = Callable[[int], None]


@dataclass(frozen=True)
class ScorePlan:
    """What scoring would ask: ``scored`` contexts have a score of some version, ``silent`` ones no example."""

    task_code: str
    number: int
    contexts: int
    scored: int
    silent: int
    how: str

    def as_json(self) -> dict[str, Any]:
        """Return the plan as it is printed."""
        return {
            "task": self.task_code,
            "round": self.number,
            "contexts": self.contexts,
            "scored": self.scored,
            "without_examples": self.silent,
            "how": self.how,
        }


@dataclass(frozen=True)
class Scored:
    """What was done; ``known`` contexts had a score of this version already."""

    model_id: str
    revision: str
    new: int
    known: int
    silent: int

    def as_json(self) -> dict[str, Any]:
        """Return what was done as it is printed."""
        return {
            "model": self.model_id,
            "revision": self.revision,
            "scored": self.new,
            "known": self.known,
            "without_examples": self.silent,
        }


def plan_scores(session: Session, task_code: str, number: int) -> ScorePlan:
    """Return what scoring would ask. Changes nothing. Raises NotFound."""
    only_reads(session)
    round_ = find_round(session, task_code, number)
    spec = task(round_.task_code)
    asked = _questions(session, spec, round_.id)
    scored = set(
        session.scalars(
            select(ContextScore.context_id)
            .join(Context, Context.id == ContextScore.context_id)
            .where(Context.round_id == round_.id)
        )
    )
    session.rollback()
    return ScorePlan(task_code, number, len(asked), len(scored), sum(not one.questions for one in asked), _how(spec))


def score_contexts(
    session: Session,
    predictor: Predictor,
    clock: Clock,
    task_code: str,
    number: int,
    *,
    cards: Cards | None = None,
    advance: Advance = lambda count: None,
) -> Scored:
    """Score the contexts that the model's version has not scored yet. Commits some at a time; goes on where it stopped.

    The model is asked outside any transaction. Raises NotFound, ModelUnavailable, and Refused when there is nothing to
    ask about, or the model changes meanwhile.
    """
    only_reads(session)
    round_ = find_round(session, task_code, number)
    spec = task(round_.task_code)
    round_id = round_.id
    asked = [one for one in _questions(session, spec, round_id) if one.questions]
    contexts = session.scalar(select(func.count()).select_from(Context).where(Context.round_id == round_id)) or 0
    session.rollback()
    if not asked:
        raise Refused(
            f"None of the {contexts} contexts of round {number} of the {task_code} task can be scored: {_how(spec)}."
            " Choose contexts another way until there are examples."
        )
    first = _ask(predictor, spec, asked[0])[0]
    version = (first.model_id, first.revision)
    register_model(session, spec, first, clock, cards)
    done = _scored_by(session, round_id, version)
    session.commit()
    left = [one for one in asked if one.id not in done]
    advance(len(asked) - len(left))
    new = 0
    for start in range(0, len(left), _CHUNK):
        part = left[start : start + _CHUNK]
        rows = [_row(spec, one, _ask(predictor, spec, one), version, clock) for one in part]
        new += _stored(session, rows)
        advance(len(part))
    return Scored(*version, new, len(asked) - len(left), contexts - len(asked))


def uncertainty_of(spec: TaskSpec, said: Prediction) -> float:
    """Return how unsure an answer is, from 0 to 1: entropy over labels as a share of the most, or 1 - confidence."""
    if spec.span_input is not None:
        return min(max(1 - (said.confidence or 0.0), 0.0), 1.0)
    entropy = -sum(p * math.log(p) for p in said.probabilities.values() if p > 0)
    return min(max(entropy / math.log(len(spec.labels)), 0.0), 1.0)


@dataclass(frozen=True)
class _Asked:
    """A context and what the model is asked about it."""

    id: int
    digest: str
    fields: Mapping[str, str]
    questions: tuple[dict[str, str], ...]


def _ask(predictor: Predictor, spec: TaskSpec, one: _Asked) -> list[Prediction]:
    found = [predictor.predict(spec.code, question, key=f"context {one.digest}") for question in one.questions]
    for said in found:
        if fault := unusable(spec, said, one.fields):
            raise InvalidInput(f"The model's answer about context {one.digest[:12]} can't be used: {fault}.")
    return found


def _row(
    spec: TaskSpec, one: _Asked, predictions: Sequence[Prediction], version: tuple[str, str], clock: Clock
) -> dict[str, Any]:
    if any((said.model_id, said.revision) != version for said in predictions):
        raise Refused(
            "The target model changed, or takes turns with others, while contexts were scored. Ask one model."
        )
    return {
        "context_id": one.id,
        "model_id": version[0],
        "model_revision": version[1],
        "uncertainty": sum(uncertainty_of(spec, said) for said in predictions) / len(predictions),
        "texts": len(predictions),
        "at": clock.now(),
    }


def _stored(session: Session, rows: list[dict[str, Any]]) -> int:
    try:
        session.add_all(ContextScore(**row) for row in rows)
        session.commit()
    except IntegrityError:
        # Another process scores some of the same contexts at this moment; its scores of them are the same.
        session.rollback()
        return sum(_stored(session, [row]) for row in rows) if len(rows) > 1 else 0
    return len(rows)


def _scored_by(session: Session, round_id: int, version: tuple[str, str]) -> set[int]:
    return set(
        session.scalars(
            select(ContextScore.context_id)
            .join(Context, Context.id == ContextScore.context_id)
            .where(
                Context.round_id == round_id,
                ContextScore.model_id == version[0],
                ContextScore.model_revision == version[1],
            )
        )
    )


def _reads_context(spec: TaskSpec) -> bool:
    return any(item.name in spec.model_fields for item in spec.context_fields)


def _how(spec: TaskSpec) -> str:
    if _reads_context(spec):
        return f"its model is asked about up to {TEXTS} earlier {spec.item_name}s on the same context"
    return "its model reads the context as if it were written by somebody"


def _questions(session: Session, spec: TaskSpec, round_id: int) -> list[_Asked]:
    """Return what the model is asked about each context of a round."""
    rows = session.execute(
        select(Context.id, Context.digest, Context.fields).where(Context.round_id == round_id).order_by(Context.id)
    ).all()
    if not _reads_context(spec):
        return [
            _Asked(row.id, row.digest, row.fields, (dict.fromkeys(spec.model_fields, text_of(row.fields)),))
            for row in rows
        ]
    latest: dict[str, deque[dict[str, str]]] = {row.digest: deque(maxlen=TEXTS) for row in rows}
    answers = session.execute(
        select(Context.digest, Attempt.answer)
        .join(Example, Example.context_id == Context.id)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .join(Round, Round.id == Example.round_id)
        .where(Round.task_code == spec.code, Example.retracted_at.is_(None))
        .order_by(Example.id)
        .execution_options(yield_per=1000)
    )
    for digest, answer in answers:
        if digest in latest:
            latest[digest].append(answer)
    return [
        _Asked(
            row.id,
            row.digest,
            row.fields,
            tuple(spec.model_input(row.fields, answer) for answer in latest[row.digest]),
        )
        for row in rows
    ]
