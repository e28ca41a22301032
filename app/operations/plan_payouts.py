"""Plan what is owed, let what needs no approval be paid, and give back what was set aside for nothing."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy.orm import Session

from hits.clock import Clock
from payments import approvals, planning
from payments.compensations import follow_compensations
from payments.due import due_pages
from payments.releases import all_closed, release_unused


@dataclass(frozen=True)
class Planned:
    """What one planning did: new rows, rows that followed what they are owed for, rows that may be paid now,
    batches that gave back what they can't need."""

    new: int
    followed: int
    approved: int
    released: int


def plan_payouts(session: Session, clock: Clock, *, endpoint: str, approval_limit: Decimal | None) -> Planned:
    """Plan every bonus that is owed, page by page, each page in a transaction of its own.

    Safe to be killed anywhere and to run in several processes at once: each bonus is planned once.
    """
    now = clock.now()
    followed = planning.follow(session, now) + follow_compensations(session, now)
    closed = set(all_closed(session))
    new = 0
    for page in due_pages(session, planning.PAGE):
        new += len(planning.plan_bonuses(session, now, page))
        session.commit()
    approved = approvals.authorise(session, endpoint, approval_limit, now)
    released = release_unused(session, now, closed)
    session.commit()
    return Planned(new, followed, approved, released)
