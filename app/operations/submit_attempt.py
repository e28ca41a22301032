"""One question to the model: store it, ask outside any transaction, store the answer. Safe to kill at any point."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.attempts import begin_attempt, record_failure, record_prediction
from hits.clock import Clock
from hits.errors import InvalidInput, Refused
from hits.models import Assignment, Attempt, ModelVersion
from hits.predictions import ModelUnavailable, Prediction, Predictor
from hits.states import AttemptState
from hits.tasks import TaskSpec, task

logger = logging.getLogger(__name__)


class ModelBroke(ModelUnavailable):
    """The model raised something that is none of its own errors; the log has it."""

    def __init__(self) -> None:
        super().__init__("The model failed on this text. No try was used.")


@dataclass(frozen=True)
class AttemptResult:
    """What came of a question. ``failure`` is set when the model gave no usable answer; no try was used then."""

    public_id: str
    failure: ModelUnavailable | None


def submit_attempt(
    session: Session, predictor: Predictor, clock: Clock, assignment_id: int, raw: Mapping[str, object]
) -> AttemptResult:
    """Ask the model about an answer of an assignment (by row id) and store what it said.

    The same answer again is not asked twice. Commits before and after the model is asked. Raises what
    hits.attempts.begin_attempt raises, and InvalidInput for a text that the model can't read; no try is used then.
    """
    assignment = session.get_one(Assignment, assignment_id)
    attempt, must_ask = begin_attempt(session, assignment, raw, clock.now())
    attempt_id, public_id = attempt.id, attempt.public_id
    spec = task(assignment.hit.batch.round.task_code)
    context = assignment.hit.context.fields if assignment.hit.context is not None else {}
    question = spec.model_input(context, attempt.answer)
    session.commit()
    if not must_ask:
        return AttemptResult(public_id, None)
    try:
        prediction = predictor.predict(spec.code, question)
    except ModelUnavailable as error:
        _give_back(session, attempt_id, error)
        return AttemptResult(public_id, error)
    except InvalidInput as error:
        _give_back(session, attempt_id, error)
        raise
    except Exception as error:
        logger.exception("the model raised on attempt %s", public_id)
        _give_back(session, attempt_id, error)
        return AttemptResult(public_id, ModelBroke())
    return _record(session, spec, attempt_id, prediction, clock)


def _record(session: Session, spec: TaskSpec, attempt_id: int, prediction: Prediction, clock: Clock) -> AttemptResult:
    register_model(session, spec, prediction, clock)
    attempt = session.get_one(Attempt, attempt_id)
    record_prediction(session, attempt, prediction, clock.now())
    unusable = attempt.state is AttemptState.UNANSWERED
    if unusable:
        logger.error("attempt %s: %s", attempt.public_id, attempt.failure)
    result = AttemptResult(attempt.public_id, ModelBroke() if unusable else None)
    session.commit()
    return result


def register_model(session: Session, spec: TaskSpec, prediction: Prediction, clock: Clock) -> None:
    """Add the model's version to the registry when it is seen for the first time. Flushes, never commits."""
    known = select(ModelVersion.id).where(
        ModelVersion.model_id == prediction.model_id, ModelVersion.revision == prediction.revision
    )
    if session.scalar(known) is not None:
        return
    try:
        with session.begin_nested():
            session.add(
                ModelVersion(
                    task_code=spec.code,
                    model_id=prediction.model_id,
                    revision=prediction.revision,
                    labels=list(spec.label_codes),
                    card={},
                    first_seen_at=clock.now(),
                )
            )
    except IntegrityError:
        # Another request met this version in the same moment; its row is the one.
        if session.scalar(known) is None:
            raise


def _give_back(session: Session, attempt_id: int, error: Exception) -> None:
    session.rollback()
    record_failure(session, session.get_one(Attempt, attempt_id), f"{type(error).__name__}: {error}")
    session.commit()


def own_attempt(session: Session, assignment_id: int, public_id: str) -> Attempt:
    """Return the attempt if it is of this assignment's HIT and worker. Raises Refused for any other."""
    assignment = session.get_one(Assignment, assignment_id)
    attempt = session.scalar(select(Attempt).where(Attempt.public_id == public_id))
    if attempt is None or (attempt.hit_id, attempt.worker_id) != (assignment.hit_id, assignment.worker_id):
        raise Refused("This statement is not one of yours in this HIT. Nothing was changed.")
    return attempt
