"""Payouts that no assignment can carry: paid by the reward of a HIT that only their worker can take."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.models import Assignment, Hit, HitBatch
from hits.money import display
from hits.states import AssignmentState, HitState
from payments import budgets, payouts
from payments.fees import reward_fee
from payments.ledger import record_compensation
from payments.models import Payout, PayoutState

NOT_TAKEN: Final = "The HIT that pays it was not taken in time. The next settle offers another one."


def due_compensations(session: Session, endpoint: str) -> list[Payout]:
    """Return the approved payouts that wait for a HIT of their own, oldest first. Changes nothing."""
    return list(
        session.scalars(
            select(Payout)
            .where(Payout.state == PayoutState.NEEDS_COMPENSATION, Payout.approved_by.is_not(None))
            .where(Payout.endpoint == endpoint)
            .order_by(Payout.id)
        )
    )


def offer(session: Session, payout_id: int, batch: HitBatch, hit: Hit, now: datetime) -> Payout | None:
    """Let a HIT pay a payout, within what is kept for it; None if another process was faster or it is not due.

    ``batch`` and ``hit`` are new and belong to the caller's transaction. Raises OverBudget when a fee that rose has no
    room. Flushes, never commits.
    """
    payout = session.get(Payout, payout_id, populate_existing=True, with_for_update=True)
    if payout is None or payout.state is not PayoutState.NEEDS_COMPENSATION or payout.approved_by is None:
        return None
    session.add(batch)
    session.flush()
    hit.batch_id = batch.id
    session.add(hit)
    session.flush()
    cost = payout.amount + reward_fee(payout.amount, hit.max_assignments, on=now.date())
    budgets.move_kept(session, payout, batch, cost, now=now)
    payout.state, payout.cause, payout.compensation_hit_id = PayoutState.COMPENSATING, None, hit.id
    session.flush()
    return payout


def follow_compensations(session: Session, now: datetime) -> int:
    """Note which HITs have paid their payout and which were not taken; return how many changed. Flushes only."""
    rows = session.execute(
        select(Payout.id, Hit.state, Assignment.state)
        .join(Hit, Hit.id == Payout.compensation_hit_id)
        .outerjoin(Assignment, (Assignment.hit_id == Hit.id) & (Assignment.state == AssignmentState.APPROVED))
        .where(Payout.state == PayoutState.COMPENSATING)
        .where((Hit.state == HitState.CLOSED) | Assignment.id.is_not(None))
        .order_by(Payout.id)
    ).all()
    return sum(_follow_one(session, payout_id, paid is not None, now) for payout_id, _, paid in rows)


def _follow_one(session: Session, payout_id: int, paid: bool, now: datetime) -> bool:
    before = {PayoutState.COMPENSATING}
    if paid:
        if not payouts.change(session, payout_id, before, state=PayoutState.COMPENSATED, confirmed_at=now):
            return False
        record_compensation(session, session.get_one(Payout, payout_id, populate_existing=True), now)
        return True
    # Its reservation is given back by the release of the closed batch; the next HIT sets the money aside anew.
    return bool(
        payouts.change(
            session,
            payout_id,
            before,
            state=PayoutState.NEEDS_COMPENSATION,
            cause=NOT_TAKEN,
            compensation_hit_id=None,
        )
    )


def words(payout: Payout) -> str:
    """Return what the worker reads on the HIT that pays."""
    return f"{payout.reason} This HIT pays you these {display(payout.amount)}; there is nothing else to do."
