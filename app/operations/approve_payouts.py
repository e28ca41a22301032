"""Let people approve payouts above the limit: each stands behind exactly what was shown, and refusals are kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry, StaffUser, password_fits
from hits.clock import Clock
from hits.errors import Refused
from hits.money import ZERO
from payments import approvals
from payments.errors import ApprovalRefused
from payments.fees import bonus_fee
from payments.ledger import round_code
from payments.models import Payout

log = logging.getLogger(__name__)

ROLE = "finance"


@dataclass(frozen=True)
class ToApprove:
    """One payout that waits for people. ``digest`` is what an approval is given for."""

    reference: str
    round: str
    worker: str
    amount: Decimal
    fee: Decimal
    state: str
    reason: str
    planned_at: datetime
    requested_by: str | None
    approved_by: tuple[str, ...]
    missing: int
    digest: str


@dataclass(frozen=True)
class Approved:
    """What an approval did: how many payouts it was for, and how many of them may be paid now."""

    approved: int
    amount: Decimal
    free: int


def payouts_to_approve(session: Session, clock: Clock, *, endpoint: str, limit: Decimal | None) -> list[ToApprove]:
    """Return the payouts that wait for an approval, oldest first; none without a limit. Changes nothing."""
    today = clock.now().date()
    return [
        ToApprove(
            reference=row.reference,
            round=round_code(row.round),
            worker=row.worker.pseudonym,
            amount=row.amount,
            fee=bonus_fee(row.amount, on=today),
            state=row.state.value,
            reason=row.reason,
            planned_at=row.planned_at,
            requested_by=row.requested_by,
            approved_by=tuple(approvals.approvers(session, row)),
            missing=approvals.missing_approvals(session, row),
            digest=approvals.digest(row),
        )
        for row in approvals.waiting_for_approval(session, endpoint, limit)
    ]


def approve_payouts(
    session: Session,
    clock: Clock,
    shown: Mapping[str, str],
    *,
    by: str,
    endpoint: str,
    limit: Decimal | None,
) -> Approved:
    """Approve payouts as they were shown, all or none, and return what that did.

    ``shown``: by reference the digest of what the person saw. ``by`` must be an active member of staff with the role
    finance, whose identity the caller has checked. Raises ApprovalRefused; the refusal stands in the audit trail and in
    the log, and nothing is approved.
    """
    now = clock.now()
    amount = ZERO
    reference = ""
    try:
        _check_person(session, by)
        for reference, digest in sorted(shown.items()):
            payout = approvals.approve(session, reference, digest, by=by, now=now)
            _check_place(payout, endpoint)
            amount += payout.amount
            session.add(
                AuditEntry(
                    at=now,
                    staff_name=by,
                    action="payout.approve",
                    subject=f"payout {reference}",
                    detail={"amount": str(payout.amount), "digest": digest},
                )
            )
    except ApprovalRefused as error:
        session.rollback()
        subject = f"payout {reference}" if reference else "payouts"
        refuse(session, clock, by=by, subject=subject[:120], why=str(error))
        raise
    free = approvals.authorise(session, endpoint, limit, now)
    session.commit()
    return Approved(len(shown), amount, free)


def refuse(session: Session, clock: Clock, *, by: str, subject: str, why: str) -> None:
    """Keep in the audit trail and in the log that an approval was refused. Commits that alone."""
    session.add(
        AuditEntry(
            at=clock.now(), staff_name=by[:80], action="payout.approve.refused", subject=subject, detail={"why": why}
        )
    )
    session.commit()
    log.warning("An approval of %s was refused: %s", subject, why)


def check_password(session: Session, clock: Clock, name: str, password: str) -> None:
    """Raise Refused when the password is not the member of staff's own; the attempt stands in the audit trail."""
    user = session.scalar(select(StaffUser).where(StaffUser.name == name))
    if not password_fits(user, password):
        session.rollback()
        refuse(session, clock, by=name, subject="payouts", why="the password was wrong")
        raise Refused(f"The password is not that of {name!r}. Nothing was approved.")
    session.rollback()


def _check_person(session: Session, by: str) -> None:
    user = session.scalar(select(StaffUser).where(StaffUser.name == by, StaffUser.active.is_(True)))
    if user is None or ROLE not in user.roles:
        raise ApprovalRefused(f"{by!r} is nobody with the role {ROLE}. `dynahit staff list` shows who is.")


def _check_place(payout: Payout, endpoint: str) -> None:
    if payout.endpoint != endpoint:
        raise ApprovalRefused(
            f"Payout {payout.reference} is on {payout.endpoint}, but this instance talks to {endpoint}."
        )
