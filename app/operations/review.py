"""What a person decides about work that waits for review, and about HITs that should end early."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.approve import Approvals, approve_submitted
from hits.clock import Clock
from hits.errors import NotFound, Refused
from hits.models import Assignment, Hit, HitBatch
from hits.mturk.client import MTurk
from hits.rejections import rejection_of
from hits.states import AssignmentState, HitState
from payments.fees import for_masters, reward_fee


@dataclass(frozen=True)
class ReviewPlan:
    """What approving an assignment that waits for a person would cost, and why it waits."""

    assignment_id: str
    reason: str
    reward: Decimal
    fee: Decimal


def plan_review(session: Session, clock: Clock, mturk_assignment_id: str) -> ReviewPlan:
    """Return what approving would do. Reads only. Raises NotFound, or Refused when nothing waits for a person."""
    row = waiting_assignment(session, mturk_assignment_id)
    batch, created_at = row.hit.batch, row.hit.created_at or clock.now()
    masters = for_masters(batch.requirements)
    fee = reward_fee(batch.reward, row.hit.max_assignments, on=created_at.date(), masters=masters)
    plan = ReviewPlan(mturk_assignment_id, row.review_reason or "", batch.reward, fee)
    session.rollback()
    return plan


def approve_reviewed(session: Session, mturk: MTurk, clock: Clock, mturk_assignment_id: str, *, by: str) -> Approvals:
    """Let work that waited for a person be approved like any other, and approve it now; who decided is kept.

    What was stored on our page under the marketplace's own worker and HIT counts from the next collection on.
    Raises NotFound, Refused, MTurkUnavailable; after the last, the next pass of the jobs approves.
    """
    accept_reviewed(session, clock, mturk_assignment_id, by=by)
    return approve_submitted(session, mturk, clock)


def accept_reviewed(session: Session, clock: Clock, mturk_assignment_id: str, *, by: str) -> None:
    """Let work that waited for a person be approved by the next pass of the jobs; who decided is kept.

    Raises NotFound, and Refused for work that does not wait or is being rejected.
    """
    row = waiting_assignment(session, mturk_assignment_id)
    begun = rejection_of(session, row)
    if begun is not None:
        session.rollback()
        raise Refused(
            f"Assignment {mturk_assignment_id} is being rejected: the marketplace was told and has not answered."
            " Finish that first; it can be undone."
        )
    reason, row.review_reason = row.review_reason, None
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by,
            action="assignment.accept",
            subject=mturk_assignment_id,
            detail={"reason": reason},
        )
    )
    session.commit()


def expire_batch(session: Session, mturk: MTurk, batch_id: int) -> list[str]:
    """Take the batch's open HITs off the site now and return their ids; work in hand can still be submitted.

    The stored expiry follows, so that validation HITs taken off are replaced. Doing it again is harmless.
    Raises NotFound, Refused for another marketplace's batch, MTurkError.
    """
    batch = session.get(HitBatch, batch_id)
    if batch is None:
        raise NotFound(f"There is no batch {batch_id}. `dynahit hits status` lists them.")
    if batch.endpoint != mturk.endpoint:
        raise Refused(
            f"Batch {batch_id} is on {batch.endpoint}, but this instance talks to {mturk.endpoint}. Nothing was done."
        )
    rows = session.execute(
        select(Hit.id, Hit.mturk_hit_id)
        .where(Hit.batch_id == batch_id, Hit.state == HitState.CREATED, Hit.mturk_hit_id.is_not(None))
        .order_by(Hit.position)
    ).all()
    session.commit()
    expired = []
    for hit_id, mturk_hit_id in rows:
        mturk.expire(mturk_hit_id or "")
        expires_at = mturk.hit(mturk_hit_id or "").expires_at
        session.get_one(Hit, hit_id, populate_existing=True).expires_at = expires_at
        session.commit()
        expired.append(mturk_hit_id or "")
    return expired


def open_hits(session: Session, batch_id: int) -> int:
    """Return how many HITs of the batch are not closed yet. Reads only."""
    open_ = select(Hit.id).where(Hit.batch_id == batch_id, Hit.state == HitState.CREATED)
    count = len(session.scalars(open_).all())
    session.rollback()
    return count


def waiting_assignment(session: Session, mturk_assignment_id: str) -> Assignment:
    """Return an assignment that waits for a person, locked. Raises NotFound, Refused for any other."""
    row = session.scalar(
        select(Assignment)
        .where(Assignment.mturk_assignment_id == mturk_assignment_id)
        .execution_options(populate_existing=True)
        .with_for_update()
    )
    if row is None:
        raise NotFound(f"There is no assignment {mturk_assignment_id}. `dynahit hits status` lists what waits.")
    if row.state is not AssignmentState.SUBMITTED or row.review_reason is None:
        state = row.state.value
        session.rollback()
        raise Refused(f"Assignment {mturk_assignment_id} does not wait for a person; it is {state}. Nothing was done.")
    return row
