"""The validation HIT: examples one at a time, each judgement kept as a draft, then a summary and the submission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flask import Blueprint, make_response, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy import select

from app import limits
from app.care.gate import consent_text
from app.errors import asked_by_script
from app.extensions import db, limiter
from app.operations.grant import name_of
from app.services import services
from app.worker.answers import Piece, marked
from app.worker.guard import admit, claimed_assignment, current_frame, hit_of, opened_assignment, token_for
from app.worker.views import FieldError, hand_in
from hits.errors import DayIsFull, InvalidAnswer, NotShown, NotYetSubmittable, Refused
from hits.exposure import break_due, example_subject, show, shown_in
from hits.models import Assignment, Attempt, Example, GoldItem, Hit, Lease, Vote
from hits.states import AssignmentState, HitKind
from hits.tasks import Choices, TaskSpec, task
from hits.validations import (
    FLAG_REASON_MAX_CHARACTERS,
    draft_votes,
    draw,
    items_for,
    record_vote,
    save_votes,
    waiting_items,
)
from payments.rules import ReaderTerms
from qualification.grants import VALIDATOR, expert_kind

bp = Blueprint("validator", __name__, url_prefix="/validate")


@dataclass(frozen=True)
class Item:
    """One item as its reader sees it: nothing of writer, goal, model or other votes, nor whether it is gold.

    One that is ``covered`` has no text either: its reader has not asked for it yet.
    """

    public_id: str
    context: tuple[tuple[str, tuple[Piece, ...]], ...]
    texts: tuple[tuple[str, tuple[Piece, ...]], ...]
    summary: str
    label: str
    details: Mapping[str, str]
    flag_reason: str
    correction: str
    judged: bool
    judgement: str
    covered: bool


@bp.get("/<reference>")
@limiter.limit(limits.OPEN)
def validate(reference: str) -> ResponseReturnValue:
    """Show the preview, the next statement, or the way on for an assignment that is already saved."""
    hit = hit_of(reference, HitKind.VALIDATION)
    if current_frame().is_preview:
        text = consent_text(db.session(), services(), hit)
        db.session.commit()
        return render_template("validator/preview.html", **_terms(hit), count=_items_in(hit), consent_version=text.id)
    assignment = opened_assignment(hit)
    db.session.commit()
    if assignment.state is not AssignmentState.OPENED:
        return hand_in(assignment)
    return _page(assignment)


@bp.post("/statements")
@limiter.limit(limits.VOTE)
def statement() -> ResponseReturnValue:
    """Show one statement again, with the judgement that was given."""
    assignment = claimed_assignment(HitKind.VALIDATION)
    return _page(assignment, shown=request.form.get("statement", ""))


@bp.post("/reveal")
@limiter.limit(limits.VOTE)
def reveal() -> ResponseReturnValue:
    """Show a statement, of a task whose texts are shown only to those who ask for them."""
    known = services()
    assignment = claimed_assignment(HitKind.VALIDATION)
    assignment_id = assignment.id
    public_id = request.form.get("statement", "")
    try:
        lease = _lease(assignment, public_id)
        # What is not to be judged any more is shown to nobody, and so not counted either.
        offered = lease in items_for(db.session(), assignment)
        if offered and assignment.state is AssignmentState.OPENED and _is_covered(assignment, lease):
            show(db.session(), assignment, subject_of(lease), cap=known.settings.exposure_cap, now=known.clock.now())
        db.session.commit()
    except DayIsFull as error:
        db.session.rollback()
        assignment = db.session.get_one(Assignment, assignment_id)
        return _page(assignment, shown=public_id, refusal=str(error), status=409)
    return _page(db.session.get_one(Assignment, assignment_id), shown=public_id)


@bp.post("/votes")
@limiter.limit(limits.VOTE)
def vote() -> ResponseReturnValue:
    """Keep one judgement as a draft and show the next statement."""
    assignment = claimed_assignment(HitKind.VALIDATION)
    assignment_id = assignment.id
    public_id = request.form.get("statement", "")
    label, flag_reason = request.form.get("label"), request.form.get("flag_reason")
    try:
        admit(assignment)
        lease = _lease(assignment, public_id)
        if assignment.state is AssignmentState.OPENED and _is_covered(assignment, lease):
            raise NotShown
        record_vote(
            db.session(),
            assignment,
            lease.id,
            label=label,
            flag_reason=flag_reason,
            details=request.form,
            now=services().clock.now(),
        )
        db.session.commit()
    except InvalidAnswer as error:
        db.session.rollback()
        found = FieldError(error.field, str(error))
        if asked_by_script():
            return {"field": found.field, "message": found.message}, 422
        assignment = db.session.get_one(Assignment, assignment_id)
        return _page(assignment, shown=public_id, field_error=found, status=422)
    return _page(db.session.get_one(Assignment, assignment_id))


@bp.post("/submit")
@limiter.limit(limits.SUBMIT)
def submit() -> ResponseReturnValue:
    """Save the judgements here first, then lead to the marketplace."""
    return _saved()


@bp.post("/leave")
@limiter.limit(limits.SUBMIT)
def leave() -> ResponseReturnValue:
    """Hand in what was judged so far, of a task with disturbing texts."""
    return _saved(leave=True)


def _saved(*, leave: bool = False) -> ResponseReturnValue:
    assignment = claimed_assignment(HitKind.VALIDATION)
    assignment_id = assignment.id
    now = services().clock.now()
    try:
        if leave and assignment.state is AssignmentState.OPENED and may_leave(assignment):
            save_votes(db.session(), assignment, now, partial=True)
            assignment.left_at = now
        else:
            save_votes(db.session(), assignment, now)
        db.session.commit()
    except NotYetSubmittable as error:
        db.session.rollback()
        return _page(db.session.get_one(Assignment, assignment_id), refusal=str(error), status=409)
    return hand_in(db.session.get_one(Assignment, assignment_id))


def _page(
    assignment: Assignment,
    *,
    shown: str = "",
    field_error: FieldError | None = None,
    refusal: str = "",
    status: int = 200,
) -> ResponseReturnValue:
    if assignment.state is not AssignmentState.OPENED:
        return hand_in(assignment)
    known = services()
    hit = assignment.hit
    if not (items := _items(assignment)):
        draw(db.session(), assignment, known.clock.now())
        db.session.commit()
        items = _items(assignment)
    if not items:
        return render_template("validator/nothing.html", **_terms(hit))
    place = next((at for at, item in enumerate(items) if item.public_id == shown), None)
    if place is None:
        place = next((at for at, item in enumerate(items) if not item.judged), None)
    now = known.clock.now()
    numbers = shown_in(db.session(), assignment)
    fields = {
        **_terms(hit),
        "token": token_for(assignment),
        "items": items,
        "place": place,
        "judged": sum(item.judged for item in items),
        "field_error": field_error,
        "refusal": refusal,
        "can_leave": may_leave(assignment) and 0 < sum(item.judged for item in items) < len(items),
        "break_due": bool(numbers) and break_due([max(numbers.values())], known.settings.break_after),
        "support_line": known.settings.support_line,
        "seconds_left": (assignment.deadline_at - now).total_seconds() if assignment.deadline_at else None,
        "flag_max": FLAG_REASON_MAX_CHARACTERS,
    }
    if asked_by_script():
        response = make_response(render_template("validator/_item.html", **fields), status)
        response.headers["X-Fragment"] = "1"
        return response
    return render_template("validator/validate.html", **fields), status


def _items(assignment: Assignment) -> list[Item]:
    spec = task(assignment.hit.batch.round.task_code)
    votes = draft_votes(db.session(), assignment)
    seen = shown_in(db.session(), assignment)
    return [
        _item(
            spec,
            lease,
            votes.get(lease.id),
            covered=spec.content_warning is not None and subject_of(lease) not in seen,
        )
        for lease in items_for(db.session(), assignment)
    ]


def may_leave(assignment: Assignment) -> bool:
    """Tell whether the task's readers may stop before the end: those of disturbing texts."""
    return task(assignment.hit.batch.round.task_code).content_warning is not None


def subject_of(lease: Lease) -> str:
    """Return the name under which the item's text is counted as shown."""
    return example_subject(lease.example_id) if lease.example_id is not None else f"gold:{lease.gold_item_id}"


def _is_covered(assignment: Assignment, lease: Lease) -> bool:
    return may_leave(assignment) and subject_of(lease) not in shown_in(db.session(), assignment)


def _item(spec: TaskSpec, lease: Lease, vote: Vote | None, *, covered: bool) -> Item:
    label = vote.label if vote is not None and vote.label is not None else ""
    flag_reason = vote.flag_reason if vote is not None and vote.flag_reason is not None else ""
    correction = (vote.correction or {}).get(spec.span_input.name, "") if vote is not None and spec.span_input else ""
    judgement = spec.label(label).name if label else f"flagged: {flag_reason}" if flag_reason else ""
    return Item(
        public_id=lease.public_id,
        context=() if covered else readers_context(spec, lease.context_fields, lease.answer),
        texts=() if covered else readers_answer(spec, lease.answer),
        # Nobody needs to read a disturbing text a second time to look over what they said of it.
        summary="" if spec.content_warning else " / ".join(lease.answer[item.name] for item in spec.answer_fields),
        label=label,
        details=(vote.details or {}) if vote is not None else {},
        flag_reason=flag_reason,
        correction=correction,
        judged=vote is not None,
        judgement=f"{judgement}, rather “{correction}”" if correction else judgement,
        covered=covered,
    )


def readers_context(
    spec: TaskSpec, context: Mapping[str, str], answer: Mapping[str, str]
) -> tuple[tuple[str, tuple[Piece, ...]], ...]:
    """Return what a reader sees of the context, by name: what the model sees of it, with an answer marked in it."""
    span = spec.span_input
    shown = []
    for part in spec.context_fields:
        if part.name not in spec.model_fields:
            continue
        marks = {}
        if span is not None and span.of == part.name:
            start = int(answer[span.start_name])
            marks["mine"] = (start, start + len(answer[span.name]))
        shown.append((part.label, tuple(marked(context[part.name], marks))))
    return tuple(shown)


def readers_answer(spec: TaskSpec, answer: Mapping[str, str]) -> tuple[tuple[str, tuple[Piece, ...]], ...]:
    """Return what a reader sees of what was written and marked, by name."""
    shown = [(for_readers(item.label), (Piece(answer[item.name], ""),)) for item in spec.text_inputs]
    if (span := spec.span_input) is not None:
        shown.append(("Marked answer", (Piece(answer[span.name], "mine"),)))
    return tuple(shown)


def _besides(spec: TaskSpec, choices: Choices) -> str:
    labels = " or ".join(f"“{spec.label(code).name}”" for code in choices.with_labels)
    return f"{choices.label} (optional, with {labels})"


def for_readers(label: str) -> str:
    """Return what a field is called on pages that are not its writer's."""
    return label.removeprefix("Your ").capitalize()


def _lease(assignment: Assignment, public_id: str) -> Lease:
    """Return the item of this assignment that goes by this name on its page. Raises Refused for any other."""
    found = db.session.scalar(
        select(Lease)
        .outerjoin(Lease.example)
        .outerjoin(Example.attempt)
        .outerjoin(Lease.gold_item)
        .where(Lease.assignment_id == assignment.id)
        .where((Attempt.public_id == public_id) | (GoldItem.public_id == public_id))
    )
    if found is None:
        raise Refused("This is not part of this HIT. Nothing was stored.")
    return found


def _items_in(hit: Hit) -> int:
    """Return how many items somebody who opens the HIT now would get at most."""
    waiting = waiting_items(db.session(), hit.batch)
    return min(waiting, services().settings.validation_items)


def _terms(hit: Hit) -> dict[str, object]:
    known = services()
    spec = task(hit.batch.round.task_code)
    return {
        "hit": hit,
        "batch": hit.batch,
        "bonuses": ReaderTerms.of(hit.batch),
        "spec": spec,
        "choices": [(label.code, label.choice) for label in spec.labels],
        "corrects": spec.span_input if spec.rejecting_labels else None,
        "besides": [(one.name, _besides(spec, one), [("", "not said"), *one.options]) for one in spec.vote_choices],
        "contact": known.settings.contact,
        "qualification": _qualification(hit),
    }


def _qualification(hit: Hit) -> str:
    """Return the name of what the HIT asks for: the general qualification, or the one that is earned in its task."""
    task_code = hit.batch.round.task_code
    earned = expert_kind(task_code) if hit.batch.senior_value is not None else f"validator:{task_code}"
    return name_of(services().settings, VALIDATOR if hit.batch.qualification_type_id is not None else earned)
