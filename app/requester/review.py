"""Work that waits for a person: what was done, then approval, or rejection for bad faith, which can be undone."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import select

from app.extensions import db
from app.operations.reject import plan_rejection, reject_assignment
from app.operations.review import accept_reviewed
from app.operations.undo_rejection import REASON_MAX_CHARACTERS, undo_rejection
from app.services import services
from app.tokens import TokenInvalid
from app.validator.views import for_readers
from app.worker.views import FieldError
from hits.errors import InvalidAnswer, NotFound
from hits.models import Assignment, Attempt, Rejection, Vote
from hits.rejections import (
    GROUNDS,
    WORDS_MAX_CHARACTERS,
    WORDS_MIN_CHARACTERS,
    CapReached,
    rejection_of,
    share_of_batch,
    share_of_worker,
    undone_until,
)
from hits.states import AssignmentState, HitKind, RejectionState
from hits.tasks import task

bp = Blueprint("review", __name__, url_prefix="/review")

#: How many rejections the page lists.
LATEST = 50


@dataclass(frozen=True)
class Done:
    """One thing that a worker did in an assignment, in words."""

    texts: tuple[tuple[str, str], ...]
    outcome: str


@bp.get("")
def index() -> ResponseReturnValue:
    """List the work that waits for a person, what approves itself first at the top, and the latest rejections."""
    waiting = db.session.scalars(
        select(Assignment)
        .where(Assignment.state == AssignmentState.SUBMITTED, Assignment.review_reason.is_not(None))
        .order_by(Assignment.auto_approval_at.asc().nulls_last(), Assignment.id)
    ).all()
    rejected = db.session.scalars(select(Rejection).order_by(Rejection.decided_at.desc()).limit(LATEST)).all()
    return render_template(
        "review/index.html",
        waiting=[(one, task(one.hit.batch.round.task_code)) for one in waiting],
        rejected=rejected,
        grounds=GROUNDS,
        states=RejectionState,
        now=services().clock.now(),
    )


@bp.get("/<assignment_id>")
def assignment(assignment_id: str) -> ResponseReturnValue:
    """Show what was done in one assignment, and what can be decided about it."""
    return render_template("review/assignment.html", **_fields(_assignment(assignment_id)))


@bp.post("/<assignment_id>/approve")
def approve(assignment_id: str) -> ResponseReturnValue:
    """Let the work be approved by the next pass of the jobs."""
    accept_reviewed(db.session(), services().clock, assignment_id, by=current_user.name)
    flash("The assignment will be approved and paid by the next pass of the jobs.")
    return redirect(url_for("review.index"))


@bp.post("/<assignment_id>/reject")
def ask_to_reject(assignment_id: str) -> ResponseReturnValue:
    """Check the ground and the words, and ask a second time with what would happen."""
    category, words = request.form.get("category", ""), request.form.get("words", "")
    try:
        plan = plan_rejection(db.session(), services().settings, assignment_id, category, words)
    except InvalidAnswer as error:
        db.session.rollback()
        fields = _fields(_assignment(assignment_id), category=category, words=words)
        return render_template("review/assignment.html", **fields, field_error=FieldError(error.field, str(error))), 422
    except CapReached as error:
        db.session.rollback()
        fields = _fields(_assignment(assignment_id), category=category, words=words)
        return render_template("review/assignment.html", **fields, refusal=str(error)), 409
    again = services().tokens.ask_again(current_user.get_id(), assignment_id, plan.category.value, plan.words)
    return render_template("review/confirm.html", plan=plan, ground=GROUNDS[plan.category], again=again)


@bp.post("/<assignment_id>/rejected")
def reject(assignment_id: str) -> ResponseReturnValue:
    """Reject after the second question was answered."""
    known = services()
    asked = known.tokens.asked_about(request.form.get("again", ""))
    if asked[:2] != [current_user.get_id(), assignment_id] or len(asked) != 4:
        raise TokenInvalid
    try:
        reject_assignment(
            db.session(),
            known.mturk,
            known.settings,
            known.clock,
            assignment_id,
            category=asked[2],
            words=asked[3],
            by=current_user.name,
        )
    except CapReached as error:
        # Somebody else used the room between the two questions.
        db.session.rollback()
        fields = _fields(_assignment(assignment_id), category=asked[2], words=asked[3])
        return render_template("review/assignment.html", **fields, refusal=str(error)), 409
    flash("The assignment is rejected, and the worker reads your words. You can undo it here.")
    return redirect(url_for("review.assignment", assignment_id=assignment_id))


@bp.post("/<assignment_id>/undo")
def undo(assignment_id: str) -> ResponseReturnValue:
    """Undo a rejection: approve the work after all."""
    known = services()
    reason = request.form.get("reason", "")
    try:
        undo_rejection(db.session(), known.mturk, known.clock, assignment_id, reason=reason, by=current_user.name)
    except InvalidAnswer as error:
        db.session.rollback()
        fields = _fields(_assignment(assignment_id), reason=reason)
        return render_template("review/assignment.html", **fields, field_error=FieldError(error.field, str(error))), 422
    flash("The rejection is undone: the work is approved and paid.")
    return redirect(url_for("review.assignment", assignment_id=assignment_id))


def _assignment(assignment_id: str) -> Assignment:
    found = db.session.scalar(select(Assignment).where(Assignment.mturk_assignment_id == assignment_id))
    if found is None or found.submitted_at is None:
        raise NotFound(f"There is no submitted assignment {assignment_id[:64]!r}.")
    return found


def _fields(row: Assignment, **typed: str) -> dict[str, object]:
    known = services()
    session = db.session()
    spec = task(row.hit.batch.round.task_code)
    rejection = rejection_of(session, row)
    until = undone_until(row)
    cap = known.settings.rejection_cap
    return {
        "row": row,
        "spec": spec,
        "batch": row.hit.batch,
        "done": _done(row),
        "rejection": rejection,
        "grounds": GROUNDS,
        "ground_options": [(ground.value, words) for ground, words in GROUNDS.items()],
        "waits": row.state is AssignmentState.SUBMITTED and row.review_reason is not None,
        "being_rejected": rejection is not None and rejection.state is RejectionState.SENDING,
        "undone_until": until,
        "can_undo": row.state is AssignmentState.REJECTED and (until is None or known.clock.now() < until),
        "of_batch": share_of_batch(session, row.hit.batch_id, cap),
        "of_worker": share_of_worker(session, row.worker_id, cap),
        "words_min": WORDS_MIN_CHARACTERS,
        "words_max": WORDS_MAX_CHARACTERS,
        "reason_max": REASON_MAX_CHARACTERS,
        "typed": typed,
        "again": _go_on_token(row, rejection),
    }


def _go_on_token(row: Assignment, rejection: Rejection | None) -> str:
    """Return the answer to the second question for a rejection that was interrupted after it was given."""
    if rejection is None or rejection.state is not RejectionState.SENDING:
        return ""
    parts = (current_user.get_id(), row.mturk_assignment_id, rejection.category.value, rejection.words)
    return services().tokens.ask_again(*parts)


def _done(row: Assignment) -> list[Done]:
    if row.hit.batch.kind is HitKind.VALIDATION:
        return _judged(row)
    return _written(row) if row.hit.batch.kind is HitKind.CREATION else []


def _written(row: Assignment) -> list[Done]:
    spec = task(row.hit.batch.round.task_code)
    mine = (Attempt.hit_id == row.hit_id) & (Attempt.worker_id == row.worker_id)
    attempts = db.session.scalars(select(Attempt).where(mine).order_by(Attempt.id))
    return [
        Done(
            tuple((for_readers(item.label), one.answer[item.name]) for item in spec.answer_fields),
            "The model gave no answer"
            if one.fooled is None
            else "Fooled the model"
            if one.fooled
            else "The model got it right",
        )
        for one in attempts
    ]


def _judged(row: Assignment) -> list[Done]:
    spec = task(row.hit.batch.round.task_code)
    votes = db.session.scalars(select(Vote).where(Vote.assignment_id == row.id).order_by(Vote.id))
    return [
        Done(
            (),
            (spec.label(one.label).name if one.label is not None else f"Flagged: {one.flag_reason}")
            + (", withdrawn: it counts no more" if one.counted_before is not None else ""),
        )
        for one in votes
    ]
