"""One question to the model: store it, ask outside any transaction, store the answer. Safe to kill at any point."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import bindparam, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.arms import Arm, arm_of
from hits.attempts import UNREADABLE, ask_again, begin_attempt, new_public_id, record_failure, record_prediction
from hits.clock import Clock
from hits.errors import InvalidAnswer, InvalidInput, Refused, trace_of
from hits.likeness import NOTHING_SAID, NOTHING_TOLD, Measured, Told, note_writing
from hits.models import Assignment, Attempt, ModelVersion
from hits.predictions import MemberAnswer, ModelUnavailable, Pending, Prediction, Predictor
from hits.states import AttemptState, HitKind
from hits.tasks import TaskSpec, task

logger = logging.getLogger(__name__)

#: As much as the registry keeps; an ensemble has those of all its members.
LICENCE_CHARACTERS = 200


#: Who writes without a model in the loop sees nothing of it and waits no longer; the jobs ask later.
UNSEEN_SECONDS = 2.0

#: Built once: every answer of a model asks it.
_KNOWN_VERSION = select(ModelVersion.id).where(
    ModelVersion.model_id == bindparam("of_model"), ModelVersion.revision == bindparam("of_revision")
)


class ModelBroke(ModelUnavailable):
    """The model raised something that is none of its own errors; the log has it."""

    def __init__(self) -> None:
        super().__init__("The model failed on this text. No try was used.")


class AskedLater(ModelUnavailable):
    """The model can't begin at once, and nobody waits for it."""

    def __init__(self) -> None:
        super().__init__("The model is not ready. It is asked later, by `dynahit jobs run`.")


class Card(Protocol):
    """What an engine knows of a model; inference.target.ModelCard is one."""

    @property
    def model_id(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def label_map(self) -> Mapping[str, str]: ...

    @property
    def weights_sha256(self) -> str | None: ...

    @property
    def licence(self) -> str | None: ...

    @property
    def parameters(self) -> int | None: ...

    @property
    def seed(self) -> int | None: ...


#: By task code and model id.
Cards = Callable[[str, str], Card | None]


@dataclass(frozen=True)
class AttemptResult:
    """What came of a question. ``failure`` is set when the model gave no usable answer; no try was used then."""

    public_id: str
    failure: ModelUnavailable | None


def submit_attempt(
    session: Session,
    predictor: Predictor,
    clock: Clock,
    assignment_id: int,
    raw: Mapping[str, object],
    *,
    said: Measured = NOTHING_SAID,
    told: Told = NOTHING_TOLD,
    ahead: ReadAhead | None = None,
) -> AttemptResult:
    """Ask the model about an answer of an assignment (by row id) and store what it said.

    What the browser ``said`` of its writing and what the writer is ``told`` about it is kept with it, no more.
    ``ahead`` is the reading that reading_ahead began of this answer; it is used if a new attempt comes of it.
    The same answer again is not asked twice. Commits before and after the model is asked. Raises what
    hits.attempts.begin_attempt raises, and InvalidInput for a text that the model can't read; no try is used then.
    Of a writer without a model in the loop the text is stored, whatever the model does: nothing of it is raised.
    """
    assignment = session.get_one(Assignment, assignment_id)
    public_id = ahead.public_id if ahead is not None else None
    attempt, must_ask = begin_attempt(session, assignment, raw, clock.now(), public_id=public_id)
    question = _question(session, attempt)
    if not must_ask:
        session.commit()
        return AttemptResult(question.public_id, None)
    note_writing(session, attempt.id, said, told)
    if not question.unseen:
        return _asked(session, predictor, clock, question, ahead)
    try:
        _asked(session, predictor, clock, question, waits=False)
    except InvalidInput:
        logger.info("no model reads the text of attempt %s, which was handed in unseen", question.public_id)
    return AttemptResult(question.public_id, None)


@dataclass(frozen=True)
class ReadAhead:
    """A reading that was begun before the question was looked at closely, under the name that its attempt will have."""

    public_id: str
    pending: Pending


@contextmanager
def reading_ahead(
    predictor: Predictor, assignment: Assignment, raw: Mapping[str, object]
) -> Iterator[ReadAhead | None]:
    """Let the model begin to read an answer while it is found out whether it may be asked, and drop it at the end.

    Nobody sees what it says before the question is stored. None where it is not known yet what the model would be
    asked, or which: an answer that can't be sent, a round with arms, an engine that can't read ahead.
    """
    batch, context = assignment.hit.batch, assignment.hit.context
    ahead = None
    if context is not None and batch.kind is HitKind.CREATION and batch.round.arms_version is None:
        spec = task(batch.round.task_code)
        try:
            answer = spec.check_answer(raw, context.fields)
        except InvalidAnswer:
            pass
        else:
            public_id = new_public_id()
            pending = _ask_ahead(predictor, spec.code, spec.model_input(context.fields, answer), public_id)
            ahead = ReadAhead(public_id, pending) if pending is not None else None
    try:
        yield ahead
    finally:
        if ahead is not None:
            ahead.pending.drop()


def ask_unseen(session: Session, predictor: Predictor, clock: Clock, attempt: Attempt) -> AttemptResult:
    """Ask about a text that was handed in unseen and that no model has answered yet. Commits before and after.

    Raises InvalidInput for a text that the model can't read; it is not asked about again.
    """
    question = _question(session, attempt)
    if ask_again(session, attempt, clock.now()):
        return _asked(session, predictor, clock, question)
    session.commit()
    return AttemptResult(question.public_id, None)


def answering_in(predictor: Predictor, task_code: str, arm: Arm | None) -> Predictor:
    """Return what answers the people of an arm; of a model that is not there, what says so when it is asked."""
    if arm is None or arm.model is None:
        return predictor
    of_model: Callable[[str, str], Predictor] | None = getattr(predictor, "of_model", None)
    try:
        if of_model is not None:
            return of_model(task_code, arm.model)
    except ModelUnavailable as error:
        return _Missing(error)
    return _Missing(ModelUnavailable(f"{arm.model} answers the arm {arm.name}, but one model answers everybody here."))


@dataclass(frozen=True)
class _Missing:
    """In the place of a model that is not there."""

    error: ModelUnavailable

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        raise self.error


@dataclass(frozen=True)
class _Question:
    """What the model is asked about an attempt. ``unseen``: nothing of its answer is shown."""

    attempt_id: int
    public_id: str
    spec: TaskSpec
    fields: Mapping[str, str]
    arm: Arm | None

    @property
    def unseen(self) -> bool:
        return self.arm is not None and not self.arm.model_in_loop


def _question(session: Session, attempt: Attempt) -> _Question:
    hit = attempt.hit
    spec = task(hit.batch.round.task_code)
    context = hit.context.fields if hit.context is not None else {}
    arm = arm_of(session, hit.batch.round, attempt.worker_id)
    return _Question(attempt.id, attempt.public_id, spec, spec.model_input(context, attempt.answer), arm)


def _asked(
    session: Session,
    predictor: Predictor,
    clock: Clock,
    question: _Question,
    ahead: ReadAhead | None = None,
    *,
    waits: bool = True,
) -> AttemptResult:
    """Store the question, ask, and store the answer; the session holds what is to be stored first.

    Without ``waits`` an engine that can read ahead gets UNSEEN_SECONDS, and none where it can't begin at once.
    """
    attempt_id, public_id, spec = question.attempt_id, question.public_id, question.spec
    answering = answering_in(predictor, spec.code, question.arm)
    if ahead is not None and ahead.public_id == public_id:
        pending: Pending | None = ahead.pending
    else:
        if ahead is not None:
            ahead.pending.drop()
        pending = _ask_ahead(answering, spec.code, question.fields, public_id)
    try:
        session.commit()
    except BaseException:
        if pending is not None:
            pending.drop()
        raise
    try:
        if pending is not None:
            prediction = pending.answer(None if waits else UNSEEN_SECONDS)
        elif not waits and _asks_ahead(answering) is not None:
            raise AskedLater
        else:
            prediction = answering.predict(spec.code, question.fields, key=public_id)
    except ModelUnavailable as error:
        _give_back(session, attempt_id, error)
        return AttemptResult(public_id, error)
    except InvalidInput as error:
        _give_back(session, attempt_id, error, said_first=UNREADABLE if question.unseen else "")
        raise
    except Exception as error:
        logger.error("the model raised on attempt %s: %s", public_id, trace_of(error))  # noqa: TRY400  # its words may quote the text
        _give_back(session, attempt_id, error)
        return AttemptResult(public_id, ModelBroke())
    return _record(session, spec, attempt_id, prediction, clock, _cards_of(predictor))


def _ask_ahead(predictor: Predictor, task_code: str, question: Mapping[str, str], key: str) -> Pending | None:
    """Let the model read while the question is being stored; None from an engine that can't, or can't at the moment.

    Nobody sees the answer before both are done, so that a crash in between costs no try.
    """
    ask = _asks_ahead(predictor)
    try:
        return ask(task_code, question, key=key) if ask is not None else None
    except (ModelUnavailable, InvalidInput):
        return None  # asked in the ordinary way it says so again, or has an answer by then


def _asks_ahead(predictor: Predictor) -> Callable[..., Pending] | None:
    return getattr(predictor, "ask_ahead", None)


def _record(
    session: Session, spec: TaskSpec, attempt_id: int, prediction: Prediction, clock: Clock, cards: Cards
) -> AttemptResult:
    attempt = session.get_one(Attempt, attempt_id)
    record_prediction(session, attempt, prediction, clock.now())
    unusable = attempt.state is AttemptState.UNANSWERED
    if attempt.state is AttemptState.ANSWERED:
        register_model(session, spec, prediction, clock, cards)
    if unusable:
        logger.error("attempt %s: %s", attempt.public_id, attempt.failure)
    result = AttemptResult(attempt.public_id, ModelBroke() if unusable else None)
    session.commit()
    return result


def register_model(
    session: Session, spec: TaskSpec, prediction: Prediction, clock: Clock, cards: Cards | None = None
) -> None:
    """Add the model's version to the registry when it is seen for the first time. Flushes, never commits.

    Of an ensemble every member that was asked is added. ``cards`` tells what the engine knows of a version.
    """
    seen: list[Prediction | MemberAnswer] = [prediction, *prediction.members]
    for model_id, revision in dict.fromkeys((one.model_id, one.revision) for one in seen):
        named = {"of_model": model_id, "of_revision": revision}
        if session.scalar(_KNOWN_VERSION, named) is not None:
            continue
        row = ModelVersion(
            task_code=spec.code,
            model_id=model_id,
            revision=revision,
            labels=list(spec.label_codes),
            card={},
            first_seen_at=clock.now(),
        )
        _fill_in(row, cards(spec.code, model_id) if cards is not None else None)
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:
            # Another request met this version in the same moment; its row is the one.
            if session.scalar(_KNOWN_VERSION, named) is None:
                raise


def _fill_in(row: ModelVersion, card: Card | None) -> None:
    """Copy what the engine knows; a card of another revision says nothing about this one."""
    if card is None or card.revision != row.revision:
        return
    row.labels = list(card.labels) or row.labels
    row.label_map = dict(card.label_map) or None
    row.weights_sha256 = card.weights_sha256
    row.licence = card.licence[:LICENCE_CHARACTERS] if card.licence is not None else None
    row.parameters = card.parameters
    row.seed = card.seed


def _cards_of(predictor: Predictor) -> Cards:
    card: Cards | None = getattr(predictor, "card", None)
    return card if card is not None else lambda task_code, model_id: None


def _give_back(session: Session, attempt_id: int, error: Exception, *, said_first: str = "") -> None:
    session.rollback()
    reason = f"{said_first}{type(error).__name__}: {error}"
    record_failure(session, session.get_one(Attempt, attempt_id), reason)
    session.commit()


def own_attempt(session: Session, assignment_id: int, public_id: str) -> Attempt:
    """Return the attempt if it is of this assignment's HIT and worker. Raises Refused for any other."""
    assignment = session.get_one(Assignment, assignment_id)
    attempt = session.scalar(select(Attempt).where(Attempt.public_id == public_id))
    if attempt is None or (attempt.hit_id, attempt.worker_id) != (assignment.hit_id, assignment.worker_id):
        raise Refused("This statement is not one of yours in this HIT. Nothing was changed.")
    return attempt
