"""A writer's way through one creation HIT: open, ask the model, submit. Every step is safe to repeat."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value

from hits.arms import Arm, arm_of, draw_arm
from hits.consent import require_consent
from hits.errors import AlreadySubmitted, InvalidInput, NoTriesLeft, NotYetSubmittable, Refused, WrongWorker
from hits.models import Assignment, Attempt, Hit
from hits.models.people import worker_for
from hits.predictions import AnswerSpan, Attribution, MemberAnswer, Prediction, WordAttribution
from hits.states import AssignmentState, AttemptState, HitKind
from hits.tasks import SpanInput, TaskSpec, digest_of, task

#: A model that was asked this long ago and has not answered was interrupted; its try is given back.
INTERRUPTED_AFTER = timedelta(seconds=30)
#: How far the probabilities of one prediction may be from 1 in sum.
PROBABILITY_TOLERANCE = 1e-3
#: How long the names of a model and of its version may be, as the tables keep them.
MODEL_ID_CHARACTERS, REVISION_CHARACTERS = 200, 80
#: More than any text of a task has.
MAX_CHARACTERS = 1_000_000
WHY_MAX_CHARACTERS = 2000
#: Of what is marked in a passage.
DRAFT_MAX_CHARACTERS = 5000

#: Statements of every question are built once: building one takes longer than SQLite takes to answer it.
_LOCKED_ASSIGNMENT, _LOCKED_ATTEMPT = (
    select(*kind.__table__.columns)
    .select_from(Hit)
    .join(kind, kind.hit_id == Hit.id)
    .where(kind.id == bindparam("wanted"))
    .with_for_update()
    for kind in (Assignment, Attempt)
)
_ATTEMPTS = (
    select(Attempt)
    .where(Attempt.hit_id == bindparam("of_hit"), Attempt.worker_id == bindparam("of_worker"))
    .order_by(Attempt.id)
)
#: Begins the failure of a text that no model can read, or need read any more, so that it is not asked about again.
UNREADABLE = "unreadable: "

_ENTITY_ID = re.compile(r"[A-Z0-9]{1,64}")
_WORKER_ID = re.compile(r"A[A-Z0-9]{1,63}")


@dataclass(frozen=True)
class Progress:
    """Where a worker stands in a creation HIT; ``hint`` says what can be done next, in words.

    ``arm`` is None in a round without arms. Without a model in the loop there is one text, and nothing here tells
    what a model says of it.
    """

    tries_total: int
    tries_used: int
    attempts: tuple[Attempt, ...]
    fooling: Attempt | None
    can_ask: bool
    can_submit: bool
    hint: str
    arm: Arm | None = None

    @property
    def tries_left(self) -> int:
        return self.tries_total - self.tries_used

    @property
    def unseen(self) -> bool:
        """Whether the writer sees nothing of a model."""
        return self.arm is not None and not self.arm.model_in_loop


def check_ids(mturk_assignment_id: str, mturk_worker_id: str) -> None:
    """Raise InvalidInput for ids that no marketplace gives out."""
    if not _ENTITY_ID.fullmatch(mturk_assignment_id):
        raise InvalidInput("The assignment id in this page's address is not one. Open the HIT from the marketplace.")
    if not _WORKER_ID.fullmatch(mturk_worker_id):
        raise InvalidInput("The worker id in this page's address is not one. Open the HIT from the marketplace.")


def open_assignment(
    session: Session,
    hit: Hit,
    *,
    mturk_assignment_id: str,
    mturk_worker_id: str,
    pseudonym_key: str,
    deadline: datetime | None,
    now: datetime,
) -> Assignment:
    """Return the row of a frame's claim, created on first sight. Flushes, never commits.

    The claim counts for nothing until the marketplace's own list shows the assignment with this worker. A later
    claim of the same assignment for another worker or HIT raises WrongWorker; ids that no marketplace gives out
    raise InvalidInput.
    """
    check_ids(mturk_assignment_id, mturk_worker_id)
    known = _assignment(session, mturk_assignment_id)
    if known is None:
        try:
            with session.begin_nested():
                worker = worker_for(session, mturk_worker_id, key=pseudonym_key, now=now)
                known = Assignment(
                    mturk_assignment_id=mturk_assignment_id,
                    hit_id=hit.id,
                    worker_id=worker.id,
                    state=AssignmentState.OPENED,
                    opened_at=now,
                    deadline_at=deadline or now + timedelta(seconds=hit.batch.assignment_seconds),
                )
                session.add(known)
        except IntegrityError:
            # A second tab was faster; its row is the one.
            known = _assignment(session, mturk_assignment_id)
            if known is None:
                raise
    if known.hit_id != hit.id or known.worker.mturk_worker_id != mturk_worker_id:
        raise WrongWorker
    if known.opened_at is None:
        known.opened_at = now
    if deadline is not None:
        known.deadline_at = deadline
    session.flush()
    return known


def progress(session: Session, assignment: Assignment, now: datetime) -> Progress:
    """Return where the worker stands. Reads only."""
    attempts = tuple(_attempts(session, assignment))
    arm = arm_of(session, assignment.hit.batch.round, assignment.worker_id)
    if arm is not None and not arm.model_in_loop:
        return _unseen_progress(assignment, attempts, arm)
    total = assignment.hit.batch.tries
    open_tries = [attempt for attempt in attempts if not _was_interrupted(attempt, now)]
    used = sum(attempt.try_number is not None for attempt in open_tries)
    fooling = next((attempt for attempt in attempts if attempt.fooled), None)
    asking = any(attempt.state is AttemptState.ASKING for attempt in open_tries)
    last = max(attempts, key=lambda attempt: (attempt.asked_at, attempt.id), default=None)
    model_failed = last is not None and (last.state is AttemptState.UNANSWERED or _was_interrupted(last, now))
    done = assignment.state is not AssignmentState.OPENED
    left = total - used
    can_ask = not done and not asking and fooling is None and left > 0
    can_submit = not asking and (done or fooling is not None or (left <= 0 and used > 0) or model_failed)
    if done:
        hint = "This HIT is submitted."
    elif asking:
        hint = "The model is reading what you wrote."
    elif fooling is not None:
        hint = "You fooled the model. Submit this HIT now."
    elif model_failed:
        hint = "The model did not answer. Ask it again, or submit: you are paid either way."
    elif left <= 0:
        hint = "All tries are used. Submit this HIT now: you are paid as promised."
    else:
        hint = f"{left} {'try' if left == 1 else 'tries'} left."
    return Progress(total, used, attempts, fooling, can_ask, can_submit, hint, arm)


def _unseen_progress(assignment: Assignment, attempts: tuple[Attempt, ...], arm: Arm) -> Progress:
    # Whatever became of the question to the model, the text is the work that was asked for.
    done = assignment.state is not AssignmentState.OPENED
    written = bool(attempts)
    if done:
        hint = "This HIT is submitted."
    elif written:
        hint = "Your text is stored. Submit this HIT now: you are paid as promised."
    else:
        hint = "Write one text."
    return Progress(1, int(written), attempts, None, not done and not written, done or written, hint, arm)


def new_public_id() -> str:
    """Return a name for an attempt that nobody can guess."""
    return secrets.token_urlsafe(18)


def begin_attempt(
    session: Session,
    assignment: Assignment,
    raw: Mapping[str, object],
    now: datetime,
    *,
    public_id: str | None = None,
) -> tuple[Attempt, bool]:
    """Store what the writer wants to ask and take a try for it; the flag tells whether the model must be asked.

    The same answer again returns the stored attempt and takes no second try; one that the model failed on is asked
    again. Flushes; the caller commits before it asks the model, so that a crash in between loses nothing.
    ``public_id`` is what a new attempt will be called, one of ``new_public_id``'s.
    Raises InvalidAnswer, NoTriesLeft, AlreadySubmitted, ConsentMissing, or Refused (time is up, model already fooled,
    model busy with another answer of this worker).
    """
    hit = locked_hit(session, assignment)
    spec = task(hit.batch.round.task_code)
    if hit.batch.kind is not HitKind.CREATION or hit.context is None or hit.goal_label is None:
        raise Refused("This HIT asks for judgements, not for writing. Open it from the marketplace again.")
    if assignment.state is not AssignmentState.OPENED:
        raise AlreadySubmitted
    require_consent(assignment)
    if assignment.deadline_at is not None and now >= assignment.deadline_at:
        raise Refused("The time for this HIT is over, so nothing was sent to the model. What you wrote before is kept.")
    answer = spec.check_answer(raw, hit.context.fields)
    digest = digest_of(answer)
    attempts = _attempts(session, assignment)
    for attempt in attempts:
        if _was_interrupted(attempt, now):
            _give_back(attempt, "The service was interrupted.")
    arm = draw_arm(session, hit.batch.round, assignment.worker_id, now)
    unseen = arm is not None and not arm.model_in_loop
    same = next((attempt for attempt in attempts if attempt.answer_digest == digest), None)
    if same is not None and same.state is not AttemptState.UNANSWERED:
        return same, same.state is AttemptState.ASKING
    if unseen and attempts and same is None:
        raise Refused("This HIT asks for one text, and yours is stored. Submit this HIT now; nothing was changed.")
    if any(attempt.fooled for attempt in attempts):
        raise Refused("You have already fooled the model here. Submit this HIT now; nothing was sent to the model.")
    if any(attempt.state is AttemptState.ASKING for attempt in attempts):
        raise Refused("The model is still reading what you asked before. Wait for its answer; no try was used.")
    taken = {attempt.try_number for attempt in attempts}
    tries = 1 if unseen else hit.batch.tries
    free = next((number for number in range(1, tries + 1) if number not in taken), None)
    if free is None:
        raise NoTriesLeft(tries)
    if same is None:
        same = Attempt(
            public_id=public_id or new_public_id(),
            assignment_id=assignment.id,
            hit_id=hit.id,
            worker_id=assignment.worker_id,
            answer=answer,
            answer_digest=digest,
            goal_label=hit.goal_label,
            asked_at=now,
            seconds=0,
        )
        session.add(same)
    same.try_number = free
    same.state = AttemptState.ASKING
    same.failure = None
    same.asked_at = now
    same.seconds = int((now - (assignment.opened_at or now)).total_seconds())
    assignment.draft = {**(assignment.draft or {}), **dict.fromkeys(spec.input_names, ""), **answer}
    session.flush()
    return same, True


def record_prediction(session: Session, attempt: Attempt, prediction: Prediction, now: datetime) -> None:
    """Store the model's answer and decide "fooled". Flushes, never commits.

    An attempt that is answered already, or was given back meanwhile, is left alone. An answer that is none (unknown
    labels, numbers that are no probabilities, a label that is not the likeliest) is recorded as a failure.
    """
    _lock_attempt(session, attempt)
    if attempt.state is not AttemptState.ASKING:
        return
    spec = task(attempt.hit.batch.round.task_code)
    context = attempt.hit.context.fields if attempt.hit.context is not None else {}
    if fault := unusable(spec, prediction, context):
        _give_back(attempt, f"The model's answer can't be used: {fault}.")
    else:
        attempt.state = AttemptState.ANSWERED
        attempt.answered_at = now
        judgement = spec.judge(attempt.goal_label, attempt.answer, prediction)
        shown = judgement.shown
        attempt.model_id = shown.model_id
        attempt.model_revision = shown.revision
        attempt.predicted_label = judgement.predicted_label
        attempt.probabilities = {code: shown.probabilities[code] for code in spec.label_codes if shown.probabilities}
        attempt.predicted_answer = asdict(shown.span) if shown.span is not None else None
        attempt.answer_f1 = judgement.f1
        attempt.confidence = shown.probabilities.get(shown.label, shown.confidence)
        attempt.policy = prediction.policy
        attempt.members = [_member_row(member) for member in prediction.members] or None
        attempt.latency_ms = prediction.latency_ms
        attempt.truncated = shown.truncated
        attempt.characters_read = dict(shown.characters_read) if shown.characters_read else None
        attempt.fooled = judgement.fooled
    session.flush()


def record_failure(session: Session, attempt: Attempt, reason: str) -> None:
    """Give the try back because the model gave no answer. An attempt that is answered already is left alone."""
    _lock_attempt(session, attempt)
    if attempt.state is AttemptState.ASKING:
        _give_back(attempt, reason)
        session.flush()


def ask_again(session: Session, attempt: Attempt, now: datetime) -> bool:
    """Make a text that was handed in unseen ready to be asked about again; tell whether a model must be asked.

    Flushes, never commits. One that is answered, or that a model reads at this moment, is left alone.
    """
    _lock_attempt(session, attempt)
    if attempt.state is not AttemptState.UNANSWERED and not _was_interrupted(attempt, now):
        return False
    attempt.try_number = 1
    attempt.state = AttemptState.ASKING
    attempt.failure = None
    attempt.asked_at = now
    session.flush()
    return True


def give_up(session: Session, attempt: Attempt, now: datetime) -> None:
    """Let nobody ask again about a text that was handed in unseen and has no answer. Flushes, never commits."""
    _lock_attempt(session, attempt)
    if attempt.state is AttemptState.UNANSWERED or _was_interrupted(attempt, now):
        _give_back(attempt, f"{UNREADABLE}left out by the requester")
        session.flush()


def unusable(spec: TaskSpec, prediction: Prediction, context: Mapping[str, str]) -> str | None:
    """Return what is wrong with a prediction about a context, or None for a sound one."""
    needed = prediction.wrong_members_needed
    if needed is not None and not 1 <= needed <= len(prediction.members):
        return f"{needed} of {len(prediction.members)} members can't be wrong"
    answers: list[Prediction | MemberAnswer] = [prediction, *prediction.members]
    for said in answers:
        fault = (
            _unusable_name(said)
            or _unusable_reading(spec, said)
            or (
                _unusable_label(spec, said)
                if spec.span_input is None
                else _unusable_span(spec.span_input, said, context)
            )
        )
        if fault is not None:
            return fault
        if said.confidence is not None and not (math.isfinite(said.confidence) and 0 <= said.confidence <= 1 + 1e-9):
            return "its confidence is not a number from 0 to 1"
    return None


def _unusable_name(said: Prediction | MemberAnswer) -> str | None:
    names = ((said.model_id, MODEL_ID_CHARACTERS, "name"), (said.revision, REVISION_CHARACTERS, "revision"))
    for name, most, what in names:
        if not 0 < len(name) <= most or not name.isprintable():
            return f"its {what} is no line of 1 to {most} characters"
    return None


def _unusable_reading(spec: TaskSpec, said: Prediction | MemberAnswer) -> str | None:
    read = said.characters_read or {}
    if not set(read) <= set(spec.model_fields) or not all(0 <= count <= MAX_CHARACTERS for count in read.values()):
        return f"it read {len(read)} texts in part, of which not all are {', '.join(spec.model_fields)}"
    return None


def _unusable_label(spec: TaskSpec, said: Prediction | MemberAnswer) -> str | None:
    if set(said.probabilities) != set(spec.label_codes):
        return f"its labels are not the task's, which are {sorted(spec.label_codes)}"
    values = said.probabilities.values()
    if not all(math.isfinite(value) and 0 <= value <= 1 for value in values):
        return "its probabilities are not numbers from 0 to 1"
    if abs(sum(values) - 1) > PROBABILITY_TOLERANCE:
        return "its probabilities don't add up to 1"
    if said.label not in spec.label_codes or said.probabilities[said.label] < max(values):
        return "its label is not the likeliest one"
    return None


def _unusable_span(item: SpanInput, said: Prediction | MemberAnswer, context: Mapping[str, str]) -> str | None:
    passage = context[item.of]
    span = said.span
    if span is None:
        return "it holds no span"
    if not 0 <= span.start < span.end <= len(passage) or passage[span.start : span.end] != span.text:
        return f"its span {span.start} to {span.end} is not what stands there in the {item.of}"
    return None


def _member_row(member: MemberAnswer) -> dict[str, Any]:
    return {
        **asdict(member),
        "probabilities": dict(member.probabilities),
        "characters_read": dict(member.characters_read) if member.characters_read is not None else None,
    }


def stored_answer(attempt: Attempt) -> AnswerSpan | None:
    """Return the stretch that the model answered with, of tasks where it marks one."""
    return None if attempt.predicted_answer is None else AnswerSpan(**attempt.predicted_answer)


def store_attribution(session: Session, attempt: Attempt, attribution: Attribution, *, of_goal: bool = False) -> None:
    """Store an explanation with its attempt. Flushes, never commits; the first one stays.

    ``of_goal`` marks one for the label that the writer aimed at instead of the one that the model said.
    """
    if of_goal:
        if attempt.goal_attribution is None:
            attempt.goal_attribution = asdict(attribution)
    elif attempt.attribution is None:
        attempt.attribution = asdict(attribution)
        attempt.convergence_delta = attribution.convergence_delta
    session.flush()


def stored_attribution(attempt: Attempt, *, of_goal: bool = False) -> Attribution | None:
    """Return the explanation stored with an attempt, if there is one."""
    stored = attempt.goal_attribution if of_goal else attempt.attribution
    if stored is None:
        return None
    fields = dict(stored)
    fields["words"] = tuple(WordAttribution(**word) for word in fields["words"])
    return Attribution(**fields)


def keep_draft(session: Session, assignment: Assignment, raw: Mapping[str, object]) -> None:
    """Keep what the writer has typed and not sent, so that a reload loses nothing. Flushes, never commits.

    Inputs that the task does not have are left out, as are characters that can't be stored; a submitted assignment
    is left alone. Raises ConsentMissing.
    """
    if assignment.state is not AssignmentState.OPENED or assignment.hit.batch.kind is not HitKind.CREATION:
        return
    require_consent(assignment)
    spec = task(assignment.hit.batch.round.task_code)
    longest = dict.fromkeys(spec.input_names, DRAFT_MAX_CHARACTERS)
    longest |= {item.name: item.max_characters for item in spec.text_inputs} | {"why": WHY_MAX_CHARACTERS}
    typed = {name: _storable(raw[name], most) for name, most in longest.items() if name in raw}
    assignment.draft = {**(assignment.draft or {}), **typed}
    session.flush()


def save_submission(
    session: Session, assignment: Assignment, why: object, now: datetime, *, leave: bool = False
) -> None:
    """Save a creation assignment before it is posted to the marketplace. Flushes, never commits.

    Saving again is a no-op. Raises NotYetSubmittable while there is something left to do. With ``leave`` the writer
    stops here, which a task with disturbing texts allows from the first answer of the model on.
    """
    locked_hit(session, assignment)
    if assignment.state is not AssignmentState.OPENED:
        return
    stands = progress(session, assignment, now)
    if not stands.attempts:
        missing = "written anything" if stands.unseen else "asked the model"
        raise NotYetSubmittable(f"You have not {missing} yet, so there is nothing to submit. Write something first.")
    if leave and not stands.can_submit and can_leave(assignment, stands):
        assignment.left_at = now
    elif not stands.can_submit:
        raise NotYetSubmittable(f"You can submit once the model is fooled or after your last try. {stands.hint}")
    for attempt in stands.attempts:
        if _was_interrupted(attempt, now):
            _give_back(attempt, "The service was interrupted.")
    assignment.why = _storable(why, WHY_MAX_CHARACTERS)
    assignment.draft = None
    assignment.state = AssignmentState.SAVED
    assignment.saved_at = now
    session.flush()


def can_leave(assignment: Assignment, stands: Progress) -> bool:
    """Tell whether the writer may stop here and hand in what there is, before the HIT is done."""
    disturbs = task(assignment.hit.batch.round.task_code).content_warning is not None
    asking = any(attempt.state is AttemptState.ASKING for attempt in stands.attempts)
    answered = any(attempt.state is AttemptState.ANSWERED for attempt in stands.attempts)
    return disturbs and answered and not asking and assignment.state is AssignmentState.OPENED


def _storable(written: object, max_characters: int) -> str:
    # Nothing hangs on a remark or a draft: what can't be stored is dropped rather than holding up the work.
    text = written if isinstance(written, str) else ""
    kept = "".join(c for c in text if c in "\n\t" or (c.isprintable() and not "\ud800" <= c <= "\udfff"))
    return kept.strip()[:max_characters]


def _assignment(session: Session, mturk_assignment_id: str) -> Assignment | None:
    return session.scalar(select(Assignment).where(Assignment.mturk_assignment_id == mturk_assignment_id))


def _attempts(session: Session, assignment: Assignment) -> list[Attempt]:
    mine = {"of_hit": assignment.hit_id, "of_worker": assignment.worker_id}
    return list(session.scalars(_ATTEMPTS, mine))


def locked_hit(session: Session, assignment: Assignment) -> Hit:
    """Take the HIT's row lock, so that two tabs can't take the same try, and see the assignment as it is now."""
    _reread_locked(session, assignment, _LOCKED_ASSIGNMENT)
    return assignment.hit


def _lock_attempt(session: Session, attempt: Attempt) -> None:
    """Take the HIT's row lock, and see the attempt as it is now."""
    _reread_locked(session, attempt, _LOCKED_ATTEMPT)


def _reread_locked(session: Session, row: Assignment | Attempt, statement: Select[Any]) -> None:
    # Not session.refresh: that takes a statement more, and lets go of the rows that this one belongs to.
    session.flush()
    for name, value in session.execute(statement, {"wanted": row.id}).one()._mapping.items():
        set_committed_value(row, name, value)


def _was_interrupted(attempt: Attempt, now: datetime) -> bool:
    return attempt.state is AttemptState.ASKING and now - attempt.asked_at >= INTERRUPTED_AFTER


def _give_back(attempt: Attempt, reason: str) -> None:
    attempt.state = AttemptState.UNANSWERED
    attempt.try_number = None
    attempt.failure = reason[:300]
