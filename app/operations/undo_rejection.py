"""Undo a rejection: the work is approved after all, and its reward booked once."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.approve import record_approval
from hits import rejections
from hits.clock import Clock
from hits.errors import NotFound, Refused
from hits.models import Assignment
from hits.mturk.client import MTurk
from hits.mturk.errors import InvalidAssignmentState
from hits.rejections import UNDONE_WITHIN, undone_until
from hits.states import AssignmentState
from hits.tasks._spec import checked_text

REASON_MAX_CHARACTERS = 500


def undo_rejection(
    session: Session, mturk: MTurk, clock: Clock, mturk_assignment_id: str, *, reason: str, by: str
) -> Assignment:
    """Approve a rejected assignment on the marketplace, book its reward, and keep who did it and why.

    Doing it again after an interruption goes on with it. Raises NotFound, InvalidAnswer without a reason, Refused for
    work that is not rejected or was submitted too long ago, MTurkError.
    """
    text = checked_text("reason", "The reason", reason, REASON_MAX_CHARACTERS)
    row = _locked(session, mturk_assignment_id)
    _refuse_unless_rejected(session, row, clock)
    row_id = row.id
    rejection = rejections.rejection_of(session, row)
    if rejection is not None:
        # Before the marketplace is told, so that it is not lost with this process.
        rejection.undone_reason = text
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by,
            action="assignment.undo-rejection",
            subject=mturk_assignment_id,
            # The reason stands with the rejection: it is about a person, and the trail forgets nothing.
            detail={},
        )
    )
    session.commit()
    try:
        mturk.approve(mturk_assignment_id, feedback="The rejection was a mistake and is undone.", override=True)
        at = clock.now()
    except InvalidAssignmentState:
        seen = mturk.assignment(mturk_assignment_id)
        if seen.status != "Approved":
            raise
        at = seen.approval_time or clock.now()
    row = session.get_one(Assignment, row_id, populate_existing=True, with_for_update=True)
    rejections.note_approved(session, row, at, by=by)
    if row.approved_at is None:
        # A person has looked at it: what was doubted counts from the next collection on, like all approved work.
        row.review_reason = None
        record_approval(session, row, at)
    session.commit()
    return row


def _locked(session: Session, mturk_assignment_id: str) -> Assignment:
    row = session.scalar(
        select(Assignment)
        .where(Assignment.mturk_assignment_id == mturk_assignment_id)
        .execution_options(populate_existing=True)
        .with_for_update()
    )
    if row is None:
        session.rollback()
        raise NotFound(f"There is no assignment {mturk_assignment_id}.")
    return row


def _refuse_unless_rejected(session: Session, row: Assignment, clock: Clock) -> None:
    name, state, until = row.mturk_assignment_id, row.state, undone_until(row)
    if state is not AssignmentState.REJECTED:
        session.rollback()
        raise Refused(f"Assignment {name} is not rejected but {state.value}. Nothing was changed.")
    if until is not None and clock.now() >= until:
        session.rollback()
        raise Refused(
            f"Assignment {name} was submitted more than {UNDONE_WITHIN.days} days ago, and the marketplace undoes no"
            " rejection after that. Pay the worker by a bonus instead; its reason can say so."
        )
