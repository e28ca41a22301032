"""Who lets a payout be paid: nobody below a limit, two people above it. Every word that was given stays in the books.

The person who asked for a payment is neither of the two: that name is only said, while an approval takes the person's
own password.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import func, select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.money import display
from payments.errors import ApprovalRefused
from payments.models import Payout, PayoutApproval, PayoutState

#: So many people stand behind a payout above the limit.
PEOPLE: Final = 2
#: What may be approved: owed, and not with the marketplace.
APPROVABLE: Final = (PayoutState.PLANNED, PayoutState.HELD, PayoutState.NOT_SUBMITTED, PayoutState.NEEDS_COMPENSATION)
_NOT_NEEDED: Final = "no approval is asked for"


def digest(payout: Payout) -> str:
    """Return what an approval is bound to: payout, promise, worker, assignment, amount and sentence."""
    parts = (
        payout.reference,
        str(payout.promise_number),
        payout.worker.pseudonym,
        str(payout.assignment_id),
        payout.endpoint,
        str(payout.amount),
        payout.reason,
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def approve(session: Session, reference: str, shown: str, *, by: str, now: datetime) -> Payout:
    """Store one person's approval of a payout as the person was shown it. Flushes, never commits.

    ``shown`` is the digest of what was shown. Raises ApprovalRefused: for a payout that is not there, not waiting or
    changed since, for a second approval by the same person, and for the person who asked for the payment.
    """
    payout = session.scalar(
        select(Payout).where(Payout.reference == reference).with_for_update().execution_options(populate_existing=True)
    )
    if payout is None:
        raise ApprovalRefused(f"There is no payout {reference!r}. `dynahit payments approve --plan` lists what waits.")
    if payout.state not in APPROVABLE or payout.approved_by is not None:
        state = payout.state.value.replace("_", " ")
        raise ApprovalRefused(f"Payout {reference} does not wait for an approval; it is {state}. Nothing was done.")
    if not hmac.compare_digest(digest(payout).encode(), shown.encode()):
        raise ApprovalRefused(
            f"Payout {reference} is not what was approved: it is {display(payout.amount)} now, for {payout.reason!r}."
            " Look at it again."
        )
    if payout.requested_by == by:
        raise ApprovalRefused(f"{by} asked for payout {reference} and so can't approve it. Another person must.")
    approval = PayoutApproval(
        payout_id=payout.id, promise_number=payout.promise_number, staff_name=by, digest=shown, at=now
    )
    try:
        with session.begin_nested():
            session.add(approval)
    except IntegrityError as error:
        raise ApprovalRefused(
            f"{by} has approved payout {reference} before. A second approval must come from another person."
        ) from error
    return payout


def authorise(session: Session, endpoint: str, limit: Decimal | None, now: datetime) -> int:
    """Let payouts be paid that need nobody's approval or have enough, and return how many. Flushes, never commits.

    ``limit``: above it two people stand behind a payment; None asks for no approval.
    """
    waiting = (Payout.endpoint == endpoint, Payout.approved_by.is_(None))
    small = () if limit is None else (Payout.amount <= limit,)
    name = _NOT_NEEDED if limit is None else f"the limit of {display(limit)}"
    done = 0
    for before, after in (
        (PayoutState.PLANNED, PayoutState.APPROVED),
        (PayoutState.NEEDS_COMPENSATION, PayoutState.NEEDS_COMPENSATION),
    ):
        result = session.execute(
            update(Payout)
            .where(*waiting, *small, Payout.state == before)
            .values(state=after, approved_by=name, approved_at=now)
            .execution_options(synchronize_session=False)
        )
        if not isinstance(result, CursorResult):
            raise TypeError(f"An update gave {result!r}.")
        done += result.rowcount
    if limit is not None:
        done += sum(_let_go(session, payout, now) for payout in _above(session, endpoint, limit))
    session.expire_all()
    return done


def _above(session: Session, endpoint: str, limit: Decimal) -> list[Payout]:
    approved = select(PayoutApproval.payout_id)
    states = (PayoutState.PLANNED, PayoutState.NEEDS_COMPENSATION)
    return list(
        session.scalars(
            select(Payout)
            .where(Payout.endpoint == endpoint, Payout.state.in_(states), Payout.approved_by.is_(None))
            .where(Payout.amount > limit, Payout.id.in_(approved))
            .order_by(Payout.id)
            .with_for_update()
            .execution_options(populate_existing=True)
        )
    )


def _let_go(session: Session, payout: Payout, now: datetime) -> bool:
    names = approvers(session, payout)
    if len(set(names)) < PEOPLE:
        return False
    payout.approved_by, payout.approved_at = ", ".join(names), now
    if payout.state is PayoutState.PLANNED:
        payout.state = PayoutState.APPROVED
    session.flush()
    return True


def approvers(session: Session, payout: Payout) -> list[str]:
    """Return who has approved a payout as it is now, in order."""
    rows = session.scalars(
        select(PayoutApproval)
        .where(PayoutApproval.payout_id == payout.id, PayoutApproval.promise_number == payout.promise_number)
        .order_by(PayoutApproval.id)
    )
    shown = digest(payout)
    return [row.staff_name for row in rows if row.digest == shown]


def missing_approvals(session: Session, payout: Payout) -> int:
    """Return how many more people must approve a payout above the limit."""
    return max(PEOPLE - len(set(approvers(session, payout))), 0)


def waiting_for_approval(session: Session, endpoint: str, limit: Decimal | None) -> list[Payout]:
    """Return the payouts above the limit that nobody, or one person too few, has approved; oldest first."""
    if limit is None:
        return []
    return list(
        session.scalars(
            select(Payout)
            .where(Payout.endpoint == endpoint, Payout.state.in_(APPROVABLE), Payout.approved_by.is_(None))
            .where(Payout.amount > limit)
            .order_by(Payout.id)
        )
    )


def count_waiting(session: Session, endpoint: str, limit: Decimal | None) -> int:
    """Return how many payouts wait for somebody's approval."""
    if limit is None:
        return 0
    return (
        session.scalar(
            select(func.count())
            .select_from(Payout)
            .where(Payout.endpoint == endpoint, Payout.state.in_(APPROVABLE), Payout.approved_by.is_(None))
            .where(Payout.amount > limit)
        )
        or 0
    )
