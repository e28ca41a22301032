"""The creation HIT: preview, writing page, questions to the model, explanations, submission."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Blueprint, make_response, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from app import limits
from app.care.gate import consent_text
from app.connections import hung_up
from app.errors import asked_by_script, trouble_of
from app.extensions import db, limiter
from app.frames import submit_address
from app.operations.explain_attempt import explain_attempt
from app.operations.submit_attempt import own_attempt, reading_ahead, submit_attempt
from app.services import services
from app.worker.answers import AttemptView, attempt_view, overlap_percent, passages
from app.worker.guard import admit, claimed_assignment, current_frame, hit_of, opened_assignment, token_for
from hits.arms import draw_arm, groups_of
from hits.attempts import WHY_MAX_CHARACTERS, Progress, can_leave, keep_draft, progress, save_submission
from hits.db import only_reads
from hits.errors import (
    AlreadySubmitted,
    AmbiguousAnswer,
    DayIsFull,
    InvalidAnswer,
    InvalidInput,
    NotYetSubmittable,
    Refused,
)
from hits.exposure import break_due, context_subject, show, shown_in
from hits.likeness import NOTHING_TOLD, Told, measured, told_about, told_then
from hits.models import Assignment, Attempt, Hit
from hits.predictions import ModelUnavailable
from hits.states import COLLECTED, AssignmentState, HitKind
from hits.tasks import RIGHT_FROM_F1, task
from inference.errors import ModelQueueFull, ModelWarmingUp
from payments.rules import Extras
from qualification import practice

bp = Blueprint("worker", __name__, url_prefix="/work")


@dataclass(frozen=True)
class Failure:
    """Why the model gave no answer. ``again_in`` is in milliseconds; 0 means that the page does not ask by itself."""

    what: str
    again_in: int


@dataclass(frozen=True)
class FieldError:
    """A refused input: which one and why; ``places`` as in AmbiguousAnswer, for the writer to choose one."""

    field: str
    message: str
    places: tuple[tuple[int, str, str, str], ...] = ()


@bp.get("/<reference>")
@limiter.limit(limits.OPEN)
def work(reference: str) -> ResponseReturnValue:
    """Show the preview, the writing page, or the way on for one that is already saved."""
    hit = hit_of(reference, HitKind.CREATION)
    if current_frame().is_preview:
        text = consent_text(db.session(), services(), hit)
        db.session.commit()
        disturbs = task(hit.batch.round.task_code).content_warning is not None
        groups = groups_of(db.session(), hit.batch.round)
        return render_template(
            "worker/preview.html", **_terms(hit, covered=disturbs), consent_version=text.id, groups=groups
        )
    assignment = opened_assignment(hit)
    if assignment.state is AssignmentState.OPENED:
        draw_arm(db.session(), hit.batch.round, assignment.worker_id, services().clock.now())
    practice.show(db.session(), assignment)
    db.session.commit()
    if assignment.state is not AssignmentState.OPENED:
        return hand_in(assignment)
    return _page(assignment)


@bp.post("/attempts")
@limiter.limit(limits.ASK)
def ask() -> ResponseReturnValue:
    """Ask the model about a statement; the answer is a fragment for the page's script, else the whole page."""
    known = services()
    session = db.session()
    # What is read before the question is stored holds no writer up. The answer is shown as this request has just
    # stored it: reading it again would take as long as storing it.
    only_reads(session)
    session.expire_on_commit = False
    assignment = claimed_assignment(HitKind.CREATION)
    assignment_id = assignment.id
    typed = {name: request.form.get(name, "") for name in _answer_names(assignment.hit)}
    try:
        with reading_ahead(known.engine, assignment, typed) as ahead:
            admit(assignment)
            told = _told(assignment, typed)
            said = measured(request.form)
            session.commit()
            result = submit_attempt(
                session, known.engine, known.clock, assignment_id, typed, said=said, told=told, ahead=ahead
            )
    except (InvalidAnswer, InvalidInput) as error:
        field = error.field if isinstance(error, InvalidAnswer) else ""
        places = error.places if isinstance(error, AmbiguousAnswer) else ()
        return _refused_input(assignment_id, typed, FieldError(field or next(iter(typed)), str(error), places))
    except AlreadySubmitted:
        if asked_by_script():
            raise
        db.session.rollback()
        return hand_in(db.session.get_one(Assignment, assignment_id)), 409
    except Refused as error:
        # Another window went on meanwhile; show where things stand together with the reason.
        db.session.rollback()
        assignment = db.session.get_one(Assignment, assignment_id)
        return _shown(assignment, trouble_of(error).status, typed=typed, refusal=str(error))
    failure, status = _failure(result.failure)
    only_reads(session)
    assignment = session.get_one(Assignment, assignment_id)
    return _shown(assignment, status, shown=result.public_id, failure=failure, typed=typed, told=told)


@bp.post("/attempts/<public_id>/explanation")
@limiter.limit(limits.EXPLAIN)
def explain(public_id: str) -> ResponseReturnValue:
    """Show which words spoke for the model's answer, or with ``of=goal`` for what the writer aimed at."""
    known = services()
    of_goal = request.form.get("of") == "goal"
    assignment = claimed_assignment(HitKind.CREATION)
    assignment_id = assignment.id
    status = 200
    try:
        explain_attempt(
            db.session(),
            known.engine,
            assignment_id,
            public_id,
            of_goal=of_goal,
            method=known.settings.explain_method,
            gone=hung_up(request.environ),
        )
    except ModelUnavailable:
        db.session.rollback()
        status = 503
    assignment = db.session.get_one(Assignment, assignment_id)
    if asked_by_script():
        spec = task(assignment.hit.batch.round.task_code)
        view = attempt_view(spec, own_attempt(db.session(), assignment_id, public_id), 0)
        fields = {"view": view, "spec": spec, "token": token_for(assignment), "failed": status != 200}
        return _fragment("worker/_explanation.html", status, fields)
    return _page(assignment, shown=public_id, explanation_failed=status != 200), status


@bp.post("/draft")
@limiter.limit(limits.DRAFT)
def draft() -> ResponseReturnValue:
    """Keep what is typed and not sent: a browser may hold no storage for a frame of another site."""
    keep_draft(db.session(), claimed_assignment(HitKind.CREATION), request.form)
    db.session.commit()
    return "", 204


@bp.post("/context")
@limiter.limit(limits.VOTE)
def reveal() -> ResponseReturnValue:
    """Show what the writer starts from, of a task whose texts are shown only to those who ask for them."""
    known = services()
    assignment = claimed_assignment(HitKind.CREATION)
    assignment_id = assignment.id
    try:
        if assignment.state is AssignmentState.OPENED and is_covered(assignment):
            subject = context_subject(assignment.hit.context_id or 0)
            show(db.session(), assignment, subject, cap=known.settings.exposure_cap, now=known.clock.now())
            db.session.commit()
    except DayIsFull as error:
        if asked_by_script():
            raise
        db.session.rollback()
        return _page(db.session.get_one(Assignment, assignment_id), refusal=str(error)), 409
    assignment = db.session.get_one(Assignment, assignment_id)
    if asked_by_script() and assignment.state is AssignmentState.OPENED:
        return _fragment("worker/_context.html", 200, _page_fields(assignment))
    return _page(assignment)


@bp.post("/leave")
@limiter.limit(limits.SUBMIT)
def leave() -> ResponseReturnValue:
    """Hand in what was done so far, of a task with disturbing texts."""
    return _saved(leave=True)


@bp.post("/submit")
@limiter.limit(limits.SUBMIT)
def submit() -> ResponseReturnValue:
    """Save the work here first, then lead to the marketplace."""
    return _saved()


def is_covered(assignment: Assignment) -> bool:
    """Tell whether what the writer starts from waits to be asked for."""
    hit = assignment.hit
    if hit.context is None or not hit.context.fields or task(hit.batch.round.task_code).content_warning is None:
        return False
    return context_subject(hit.context.id) not in shown_in(db.session(), assignment)


def _saved(*, leave: bool = False) -> ResponseReturnValue:
    assignment = claimed_assignment(HitKind.CREATION)
    assignment_id = assignment.id
    try:
        now = services().clock.now()
        save_submission(db.session(), assignment, request.form.get("why", ""), now, leave=leave)
        db.session.commit()
    except NotYetSubmittable as error:
        if asked_by_script():
            raise
        db.session.rollback()
        return _page(db.session.get_one(Assignment, assignment_id), refusal=str(error)), 409
    return hand_in(db.session.get_one(Assignment, assignment_id))


def hand_in(assignment: Assignment) -> str:
    """Show the receipt, and the form that posts a saved assignment to the marketplace."""
    known = services()
    return render_template(
        "worker/hand_in.html",
        hit=assignment.hit,
        assignment_id=assignment.mturk_assignment_id,
        receipt=known.tokens.receipt(assignment.mturk_assignment_id),
        submit_address=submit_address(known.settings),
        collected=assignment.state in COLLECTED,
        contact=known.settings.contact,
    )


def _shown(
    assignment: Assignment,
    status: int,
    *,
    typed: dict[str, str],
    shown: str = "",
    failure: Failure | None = None,
    refusal: str = "",
    told: Told = NOTHING_TOLD,
) -> ResponseReturnValue:
    if not asked_by_script():
        return _page(assignment, shown=shown, failure=failure, typed=typed, refusal=refusal), status
    fields = {**_page_fields(assignment, shown=shown, failure=failure), "told": told}
    return _fragment("worker/_swaps.html", status, {**fields, "refusal": refusal})


def _fragment(template: str, status: int, fields: dict[str, object]) -> ResponseReturnValue:
    response = make_response(render_template(template, **fields), status)
    response.headers["X-Fragment"] = "1"
    return response


def _page(
    assignment: Assignment,
    *,
    shown: str = "",
    failure: Failure | None = None,
    typed: dict[str, str] | None = None,
    field_error: FieldError | None = None,
    refusal: str = "",
    explanation_failed: bool = False,
) -> str:
    if assignment.state is not AssignmentState.OPENED:
        return hand_in(assignment)
    fields = _page_fields(assignment, shown=shown, failure=failure, explanation_failed=explanation_failed)
    typed = typed or assignment.draft or {}
    shown_attempt = fields["shown_attempt"]
    told = told_then(db.session(), shown_attempt.id) if isinstance(shown_attempt, Attempt) else NOTHING_TOLD
    grades = practice.shown_on(db.session(), assignment)
    return render_template(
        "worker/work.html", **fields, typed=typed, field_error=field_error, refusal=refusal, grades=grades, told=told
    )


def _page_fields(
    assignment: Assignment,
    *,
    shown: str = "",
    failure: Failure | None = None,
    explanation_failed: bool = False,
) -> dict[str, object]:
    known = services()
    now = known.clock.now()
    hit = assignment.hit
    stands = progress(db.session(), assignment, now)
    # Whoever writes without a model sees the texts alone: nothing that is made from its answer.
    views = [] if stands.unseen else _views(hit, stands)
    current = next((view for view in views if view.public_id == shown and view.answered), None)
    if current is None and failure is None:
        current = next((view for view in reversed(views) if view.answered), None)
    seconds_left = (assignment.deadline_at - now).total_seconds() if assignment.deadline_at else None
    shown_attempt = next((one for one in stands.attempts if current and one.public_id == current.public_id), None)
    return {
        **_terms(hit, shown_attempt, covered=is_covered(assignment)),
        "token": token_for(assignment),
        "assignment_id": assignment.mturk_assignment_id,
        "progress": stands,
        "can_leave": can_leave(assignment, stands) and not stands.can_submit,
        "break_due": _break_due(assignment),
        "support_line": known.settings.support_line,
        "current": current,
        "unseen": stands.unseen,
        "explained": stands.arm is None or stands.arm.explanations,
        "written": [attempt.answer for attempt in stands.attempts] if stands.unseen else [],
        "shown_attempt": shown_attempt,
        "earlier": [view for view in reversed(views) if view is not current],
        "failure": failure,
        "explanation_failed": explanation_failed,
        "seconds_left": seconds_left,
        "first_time": not stands.attempts and not _has_written_before(assignment),
        "model_state": "" if stands.unseen else known.model_state(),
        "why_max": WHY_MAX_CHARACTERS,
        "why": (assignment.draft or {}).get("why", ""),
    }


def _break_due(assignment: Assignment) -> bool:
    if task(assignment.hit.batch.round.task_code).content_warning is None:
        return False
    return break_due(shown_in(db.session(), assignment).values(), services().settings.break_after)


def _terms(hit: Hit, attempt: Attempt | None = None, *, covered: bool = False) -> dict[str, object]:
    """Return what the preview and the page show of a HIT; of a context that is covered nothing."""
    known = services()
    spec = task(hit.batch.round.task_code)
    context = hit.context.fields if hit.context is not None else {}
    return {
        "hit": hit,
        "batch": hit.batch,
        "further": Extras.of(hit.batch).sentences,
        "spec": spec,
        "goal": spec.label(hit.goal_label or ""),
        "goal_words": spec.goal_words.split("{goal}", 1),
        "context": [] if covered else passages(spec, context, attempt),
        "covered": covered,
        "threshold": overlap_percent(RIGHT_FROM_F1),
        "contact": known.settings.contact,
    }


def _views(hit: Hit, stands: Progress) -> list[AttemptView]:
    spec = task(hit.batch.round.task_code)
    return [attempt_view(spec, attempt, number) for number, attempt in enumerate(stands.attempts, start=1)]


def _told(assignment: Assignment, typed: dict[str, str]) -> Told:
    """Return what the writer is to be told about the text, looked up before anything is stored."""
    hit = assignment.hit
    if hit.context is None:
        return NOTHING_TOLD
    round_ = hit.batch.round
    return told_about(db.session(), task(round_.task_code), round_.id, hit.context, typed)


def _answer_names(hit: Hit) -> tuple[str, ...]:
    return task(hit.batch.round.task_code).input_names


def _has_written_before(assignment: Assignment) -> bool:
    return db.session.scalar(select(Attempt.id).where(Attempt.worker_id == assignment.worker_id).limit(1)) is not None


def _failure(error: ModelUnavailable | None) -> tuple[Failure | None, int]:
    if error is None:
        return None, 200
    if isinstance(error, ModelWarmingUp):
        return Failure("The model is still warming up.", 3000), 503
    if isinstance(error, ModelQueueFull):
        return Failure("Many people are asking the model right now.", 0), 429
    return Failure("The model gave no answer.", 0), 503


def _refused_input(assignment_id: int, typed: dict[str, str], found: FieldError) -> ResponseReturnValue:
    db.session.rollback()
    if asked_by_script():
        places = [{"start": start, "words": [before, answer, after]} for start, before, answer, after in found.places]
        return {"field": found.field, "message": found.message, "places": places}, 422
    assignment = db.session.get_one(Assignment, assignment_id)
    return _page(assignment, typed=typed, field_error=found), 422
