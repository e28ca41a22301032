"""Reject work that was done in bad faith: never what is only poor or judged otherwise, and never much of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.approve import record_approval
from app.operations.review import waiting_assignment
from app.settings import Settings
from hits import rejections
from hits.clock import Clock
from hits.errors import Refused
from hits.models import Assignment, HitBatch, Rejection, Vote, Worker
from hits.mturk.client import AssignmentSeen, MTurk
from hits.mturk.errors import InvalidAssignmentState, MTurkRefused
from hits.rejections import GROUNDS, CapReached, Share, checked_grounds, share_of_batch, share_of_worker, undone_until
from hits.states import BadFaith, RejectionState


@dataclass(frozen=True)
class RejectionPlan:
    """What a rejection would do: who is not paid what, what they read, and how much is rejected by then.

    ``votes`` count by now and will not any more, unless the round ``is_frozen``, whose data stay as they are.
    """

    assignment_id: str
    worker: str
    reward: Decimal
    category: BadFaith
    words: str
    feedback: str
    batch: Share
    person: Share
    undone_until: datetime | None
    votes: int = 0
    is_frozen: bool = False


def plan_rejection(
    session: Session, settings: Settings, mturk_assignment_id: str, category: str, words: str
) -> RejectionPlan:
    """Return what rejecting would do. Reads only.

    Raises NotFound, Refused for work that waits for nobody, InvalidAnswer for grounds that are none, CapReached.
    """
    ground, text = checked_grounds(category, words)
    row = waiting_assignment(session, mturk_assignment_id)
    plan = _plan(session, settings, row, ground, text)
    session.rollback()
    _refuse_beyond_cap(plan, settings.rejection_cap)
    return plan


def reject_assignment(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    mturk_assignment_id: str,
    *,
    category: str,
    words: str,
    by: str,
) -> RejectionPlan:
    """Reject an assignment that waits for a person, and keep who did it and why.

    The decision is stored before the marketplace is told, and one that was interrupted goes on with its own words.
    Raises what plan_rejection raises, MTurkUnavailable (then it is to be done again), and Refused when the marketplace
    has approved the work in the meantime, which is booked then.
    """
    ground, text = checked_grounds(category, words)
    row = waiting_assignment(session, mturk_assignment_id)
    # Both locks, always in this order, make counting and storing one step.
    session.execute(select(Worker.id).where(Worker.id == row.worker_id).with_for_update())
    session.execute(select(HitBatch.id).where(HitBatch.id == row.hit.batch_id).with_for_update())
    begun = rejections.rejection_of(session, row)
    if begun is not None:
        ground, text = begun.category, begun.words
    plan = _plan(session, settings, row, ground, text)
    if begun is None:
        try:
            _refuse_beyond_cap(plan, settings.rejection_cap)
        except CapReached:
            session.rollback()
            raise
        session.add(
            Rejection(
                assignment_id=row.id,
                worker_id=row.worker_id,
                batch_id=row.hit.batch_id,
                category=ground,
                words=text,
                staff_name=by,
                state=RejectionState.SENDING,
                decided_at=clock.now(),
            )
        )
        # The words stand in the rejection: they are about a person, and the trail forgets nothing.
        detail = {"category": ground.value, "waited_for": row.review_reason}
        session.add(
            AuditEntry(
                at=clock.now(), staff_name=by, action="assignment.reject", subject=mturk_assignment_id, detail=detail
            )
        )
    assignment_id = row.id
    session.commit()
    try:
        mturk.reject(mturk_assignment_id, plan.feedback)
        at = clock.now()
    except InvalidAssignmentState:
        seen = mturk.assignment(mturk_assignment_id)
        if seen.status != "Rejected":
            _take_back(session, assignment_id, seen, clock)
            raise Refused(
                f"The marketplace shows assignment {mturk_assignment_id} as {seen.status.lower()}, so it was not"
                " rejected. Approved work stays approved, and its pay is in the books."
            ) from None
        at = seen.rejection_time or clock.now()
    except MTurkRefused:
        _take_back(session, assignment_id, None, clock)
        raise
    rejections.note_rejected(session, _locked(session, assignment_id), at)
    session.commit()
    return plan


def _plan(session: Session, settings: Settings, row: Assignment, ground: BadFaith, words: str) -> RejectionPlan:
    until = undone_until(row)
    counted = select(func.count()).select_from(Vote).where(Vote.assignment_id == row.id, Vote.counted_at.is_not(None))
    return RejectionPlan(
        assignment_id=row.mturk_assignment_id,
        worker=row.worker.pseudonym,
        reward=row.hit.batch.reward,
        category=ground,
        words=words,
        feedback=f"{GROUNDS[ground]}. {words} If you see it otherwise, write to {settings.contact}: we can undo this"
        + (f" until {until:%d %B %Y}." if until is not None else "."),
        batch=share_of_batch(session, row.hit.batch_id, settings.rejection_cap),
        person=share_of_worker(session, row.worker_id, settings.rejection_cap),
        undone_until=until,
        votes=session.scalar(counted) or 0,
        is_frozen=row.hit.batch.round.frozen_at is not None,
    )


def _refuse_beyond_cap(plan: RejectionPlan, cap: Decimal) -> None:
    if plan.batch.is_full:
        raise CapReached("this batch", plan.batch, cap)
    if plan.person.is_full:
        raise CapReached(f"what {plan.worker} did", plan.person, cap)


def _locked(session: Session, assignment_id: int) -> Assignment:
    return session.get_one(Assignment, assignment_id, populate_existing=True, with_for_update=True)


def _take_back(session: Session, assignment_id: int, seen: AssignmentSeen | None, clock: Clock) -> None:
    """Take out a rejection that did not take place, and book the approval if there is one."""
    row = _locked(session, assignment_id)
    rejections.note_approved(session, row, clock.now())
    if seen is not None and seen.status == "Approved" and row.approved_at is None:
        record_approval(session, row, seen.approval_time or clock.now())
    session.commit()
