"""The outbox of bonuses: each step of a payout as one change of its row. When to commit is the caller's business.

The order that keeps it safe, whatever crashes: plan (token stored) and approve, commit; claim, commit; ask the
marketplace outside any transaction; mark and book together, commit. A row that was claimed and not marked is looked up
in the marketplace's own list before it is sent again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol

from sqlalchemy import select, update
from sqlalchemy.engine import CursorResult
from sqlalchemy.orm import Session

from payments.ledger import record_bonus, record_promise
from payments.models import NOT_PROMISED, PAID, UNSURE, Payout, PayoutState

#: The marketplace remembers a request token for 24 hours; an hour is left for clocks that differ.
TOKEN_LIFE: Final = timedelta(hours=23)
#: A call that was begun this recently may still be on its way, so its token must not be replaced.
CALL_LIFE: Final = timedelta(minutes=15)

#: Without letters and digits that are easily mistaken for one another.
_ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_CAUSE_MAX_CHARACTERS: Final = 500
#: So many claims without an end.
_OFTEN: Final = 5


class BonusPayment(Protocol):
    """A bonus as the marketplace shows it."""

    @property
    def worker_id(self) -> str: ...
    @property
    def assignment_id(self) -> str: ...
    @property
    def amount(self) -> Decimal: ...
    @property
    def reason(self) -> str: ...
    @property
    def granted_at(self) -> datetime: ...


class BonusSender(Protocol):
    """What paying needs of a marketplace; raises hits.mturk.errors. ``endpoint`` says which one it is."""

    endpoint: str

    def balance(self) -> Decimal: ...

    def send_bonus(
        self, *, worker_id: str, assignment_id: str, amount: Decimal, reason: str, request_token: str
    ) -> None: ...

    def bonus_payments(
        self, *, assignment_id: str | None = None, hit_id: str | None = None
    ) -> Iterable[BonusPayment]: ...


@dataclass(frozen=True)
class Order:
    """A claimed payout, whole, so that nothing is read from the database while the marketplace is asked.

    ``unsure``: an earlier call may have paid it already. The worker id stays out of its repr.
    """

    payout_id: int
    reference: str
    pseudonym: str
    worker_id: str = field(repr=False)
    assignment_id: str
    amount: Decimal
    reason: str
    request_token: str = field(repr=False)
    token_sent_at: datetime
    claimed_before_at: datetime | None
    claim: int
    unsure: bool
    approved_by: str | None
    approved_at: datetime | None


def new_reference() -> str:
    """Return a reference that nobody can guess and everybody can read out: ``DH-7Q2M4K9TXB``."""
    return "DH-" + "".join(secrets.choice(_ALPHABET) for _ in range(10))


def new_token() -> str:
    """Return a fresh request token, of at most 64 characters."""
    return f"bonus-{secrets.token_hex(20)}"


def reference_in(reason: str) -> str:
    """Return the reference that a reason ends with: its last word."""
    return reason.rstrip().rpartition(" ")[2]


def find_payment(sender: BonusSender, assignment_id: str, reference: str) -> BonusPayment | None:
    """Return the payment with this reference from the marketplace's own list, None if it shows none."""
    listed = sender.bonus_payments(assignment_id=assignment_id)
    return next((seen for seen in listed if reference_in(seen.reason) == reference), None)


@dataclass(frozen=True)
class Waiting:
    """A row to deal with, and how often it had been claimed when it was listed."""

    payout_id: int
    claims: int


def waiting(session: Session, endpoint: str) -> list[Waiting]:
    """Return the marketplace's rows to deal with: ones that may have been paid first, then approved ones.

    Last come rows that were tried often: what can't be looked up must not hold up the others.
    """
    rows = session.execute(
        select(Payout.id, Payout.state, Payout.tries)
        .where(Payout.state.in_((*UNSURE, PayoutState.APPROVED)), Payout.endpoint == endpoint)
        .order_by(Payout.id)
    ).all()
    in_order = sorted(rows, key=lambda row: (row.tries >= _OFTEN, row.state is PayoutState.APPROVED))
    return [Waiting(row.id, row.tries) for row in in_order]


def free_failed(session: Session, endpoint: str) -> int:
    """Let failed rows be tried again, as rows that may have been paid; return how many. Flushes, never commits."""
    failed = session.scalars(
        select(Payout.id).where(Payout.state == PayoutState.FAILED, Payout.endpoint == endpoint)
    ).all()
    return sum(change(session, one, {PayoutState.FAILED}, state=PayoutState.DOUBTFUL) for one in failed)


def claim(session: Session, row: Waiting, now: datetime) -> Order | None:
    """Move a row to ``sending`` and return all that sending it takes; None if another process has dealt with it since.

    The caller commits before it asks the marketplace.
    """
    payout = session.get(Payout, row.payout_id, populate_existing=True, with_for_update=True)
    if payout is None or payout.tries != row.claims or payout.state not in (*UNSURE, PayoutState.APPROVED):
        return None
    if payout.assignment is None:
        raise LookupError(f"Payout {payout.reference} has no assignment to be paid on.")
    unsure, before = payout.state in UNSURE, payout.claimed_at
    token_sent_at = payout.token_sent_at or now
    changed = change(
        session,
        payout.id,
        {payout.state},
        claim_seen=row.claims,
        state=PayoutState.SENDING,
        tries=row.claims + 1,
        claimed_at=now,
        token_sent_at=token_sent_at,
    )
    if not changed:
        return None
    session.refresh(payout)
    return Order(
        payout_id=payout.id,
        reference=payout.reference,
        pseudonym=payout.worker.pseudonym,
        worker_id=payout.worker.mturk_worker_id,
        assignment_id=payout.assignment.mturk_assignment_id,
        amount=payout.amount,
        reason=payout.reason,
        request_token=payout.request_token,
        token_sent_at=token_sent_at,
        claimed_before_at=before,
        claim=payout.tries,
        unsure=unsure,
        approved_by=payout.approved_by,
        approved_at=payout.approved_at,
    )


def is_token_forgotten(order: Order, now: datetime) -> bool:
    """Tell whether the marketplace may no longer know the order's token, so that sending it again could pay twice."""
    return now - order.token_sent_at >= TOKEN_LIFE


def may_be_on_its_way(order: Order, now: datetime) -> bool:
    """Tell whether the call of an earlier claim could still reach the marketplace."""
    return order.claimed_before_at is not None and now - order.claimed_before_at < CALL_LIFE


def renew_token(session: Session, order: Order, now: datetime) -> str | None:
    """Store a new token for a claimed row and return it; None if the claim was lost. The caller commits first."""
    token = new_token()
    changed = change(
        session,
        order.payout_id,
        {PayoutState.SENDING},
        claim_seen=order.claim,
        request_token=token,
        token_sent_at=now,
    )
    return token if changed else None


def mark_sent(session: Session, order: Order, sent_at: datetime) -> bool:
    """Mark a payout as paid and book it; False if that was done already. Flushes, never commits.

    Money that moved is booked whoever claimed the row meanwhile, and kept a promise even if that was withdrawn.
    """
    unpaid = set(PayoutState) - PAID
    before = session.scalar(select(Payout.state).where(Payout.id == order.payout_id).with_for_update())
    changed = change(
        session,
        order.payout_id,
        unpaid,
        state=PayoutState.SENT,
        sent_at=sent_at,
        cause=None,
        # Taken away when the promise was withdrawn meanwhile; it was given before the money moved.
        approved_by=order.approved_by,
        approved_at=order.approved_at,
    )
    if not changed:
        return False
    payout = session.get(Payout, order.payout_id, populate_existing=True)
    if payout is None:
        raise LookupError(f"Payout {order.reference} has vanished.")
    if before in NOT_PROMISED:
        # The money has left, so that no budget is asked.
        payout.promise_number += 1
        session.flush()
        record_promise(session, payout, sent_at)
    record_bonus(session, payout, sent_at)
    return True


def mark_doubtful(session: Session, order: Order, cause: str) -> None:
    """Note that no clear answer came; the next settle looks it up. Flushes, never commits."""
    _release(session, order, PayoutState.DOUBTFUL, cause)


def mark_failed(session: Session, order: Order, cause: str) -> None:
    """Note that the marketplace refused to pay. Flushes, never commits."""
    _release(session, order, PayoutState.FAILED, cause)


def put_back(session: Session, order: Order) -> None:
    """Give a claimed row back that the marketplace has certainly not paid. Flushes, never commits."""
    _release(session, order, PayoutState.APPROVED, None)


def mark_too_late(session: Session, order: Order, cause: str) -> None:
    """Note that the marketplace has no such assignment any more, so that its worker must be paid in another way.

    Flushes, never commits.
    """
    _release(session, order, PayoutState.NEEDS_COMPENSATION, cause)


def mark_not_submitted(session: Session, order: Order) -> None:
    """Note that the marketplace does not show the assignment as submitted yet. Flushes, never commits."""
    _release(session, order, PayoutState.NOT_SUBMITTED, None)


def _release(session: Session, order: Order, state: PayoutState, cause: str | None) -> None:
    change(
        session,
        order.payout_id,
        {PayoutState.SENDING},
        claim_seen=order.claim,
        state=state,
        cause=None if cause is None else cause[:_CAUSE_MAX_CHARACTERS],
    )


def unconfirmed(session: Session, endpoint: str) -> list[Payout]:
    """Return the sent payouts that were not yet seen in the marketplace's list, oldest first."""
    return list(
        session.scalars(
            select(Payout).where(Payout.state == PayoutState.SENT, Payout.endpoint == endpoint).order_by(Payout.id)
        )
    )


def mark_confirmed(session: Session, payout_id: int, now: datetime) -> None:
    """Note that the marketplace's own list shows the payment. Flushes, never commits."""
    change(session, payout_id, {PayoutState.SENT}, state=PayoutState.CONFIRMED, confirmed_at=now)


def change(
    session: Session,
    payout_id: int,
    states: Iterable[PayoutState],
    *,
    claim_seen: int | None = None,
    **values: Any,
) -> int:
    """Change a row only if it is still in one of the states, and under the claim if one is given; return 1 or 0."""
    statement = update(Payout).where(Payout.id == payout_id, Payout.state.in_(list(states)))
    if claim_seen is not None:
        statement = statement.where(Payout.tries == claim_seen)
    result = session.execute(statement.values(**values).execution_options(synchronize_session=False))
    if not isinstance(result, CursorResult):
        raise TypeError(f"An update gave {result!r}.")
    return result.rowcount
