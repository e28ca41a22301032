"""Mend what reconcile found, one finding at a time: the marketplace's word counts, and corrections are reversals."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Protocol

from sqlalchemy import func, select
from sqlalchemy.orm import Session, selectinload

from app.models import AuditEntry
from app.operations.approve import record_approval
from app.operations.reconcile import (
    Booked,
    Records,
    booked,
    extra_references,
    is_reversed,
    promise_differences,
    reconcile,
    reference_of,
    reservation_differences,
    unexplained,
)
from hits.clock import Clock
from hits.errors import NotFound, Refused
from hits.models import Assignment, Round
from hits.models.people import is_erased
from hits.money import ZERO, display, from_cents
from hits.mturk.client import AssignmentSeen
from hits.rejections import note_rejected
from hits.states import AssignmentState
from payments import reservations
from payments.fees import bonus_fee
from payments.ledger import (
    Account,
    marketplace_account,
    post,
    record_bonus,
    record_reward,
    reverse,
    round_code,
)
from payments.models import (
    OWED,
    PAID,
    LedgerTransaction,
    Payout,
    PayoutState,
    Posting,
    TransactionKind,
)
from payments.payouts import BonusPayment, new_reference, new_token
from payments.rules import base_reward

#: The marketplace's list may lag behind a payment for this long.
_LIST_LAG: Final = timedelta(hours=1)
ACCOUNT: Final = "account"
_RESERVED: Final = "reserved:"


class Marketplace(Records, Protocol):
    """What mending reads and asks of a marketplace; raises hits.mturk.errors."""

    def assignment(self, assignment_id: str) -> AssignmentSeen: ...
    def approve(self, assignment_id: str, feedback: str = "") -> None: ...


@dataclass(frozen=True)
class Mend:
    """What will be done about a finding, in words, and the deed itself, which flushes and does not commit."""

    subject: str
    what: str
    deed: Callable[[], None]


def plan_mend(session: Session, marketplace: Marketplace, clock: Clock, subject: str) -> Mend:
    """Return what mends a finding: a payout's reference, an assignment's id, a transaction's key, ``account``.

    Changes nothing. Raises NotFound for a subject that is none of these, Refused when there is nothing to mend, or
    nothing that can be done from here.
    """
    now = clock.now()
    if subject == ACCOUNT:
        return _account(session, marketplace, now)
    if subject.startswith(_RESERVED):
        return _reservation(session, subject.removeprefix(_RESERVED), now)
    payout = _payout(session, subject)
    if payout is not None:
        return _mend_payout(session, marketplace, payout, now)
    assignment = _assignment(session, subject)
    if assignment is not None:
        return _mend_assignment(session, marketplace, assignment, now)
    transaction = session.scalar(select(LedgerTransaction).where(LedgerTransaction.key == subject))
    if transaction is None:
        raise NotFound(f"There is nothing called {subject!r}. `dynahit payments reconcile` names what can be mended.")
    return _mend_transaction(session, marketplace, transaction, now)


def mend(session: Session, marketplace: Marketplace, clock: Clock, subject: str, *, by: str) -> Mend:
    """Mend a finding and note who did it, in one transaction. Raises what plan_mend raises, and MTurkError."""
    plan = plan_mend(session, marketplace, clock, subject)
    plan.deed()
    session.add(
        AuditEntry(at=clock.now(), staff_name=by, action="books.mend", subject=subject, detail={"what": plan.what})
    )
    session.commit()
    return plan


def _payout(session: Session, reference: str) -> Payout | None:
    return session.scalar(
        select(Payout).where(Payout.reference == reference).with_for_update().execution_options(populate_existing=True)
    )


def _assignment(session: Session, assignment_id: str) -> Assignment | None:
    return session.scalar(
        select(Assignment)
        .where(Assignment.mturk_assignment_id == assignment_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )


def _mend_payout(session: Session, marketplace: Marketplace, payout: Payout, now: datetime) -> Mend:
    reference = payout.reference
    if payout.endpoint != marketplace.endpoint:
        raise Refused(f"Payout {reference} is on {payout.endpoint}, but this instance talks to {marketplace.endpoint}.")
    payments = _payments(session, marketplace, payout)
    payout = _payout(session, reference) or payout
    payment = next((one for one in payments if reference_of(one) == reference), None)
    there = booked(session, TransactionKind.BONUS, [reference]).get(reference)
    if payment is None and payout.state in PAID:
        return _never_arrived(session, payout, there, now)
    owed_to = payout.worker.mturk_worker_id
    if payment is not None and not is_erased(owed_to) and payment.worker_id != owed_to:
        raise Refused(
            f"Payout {reference} was paid to another worker than it is owed to, and nothing can take money back. Pay "
            "the right one by `dynahit payments compensate`."
        )
    if payment is not None and (
        payout.state not in PAID or there is None or not payment.amount == payout.amount == there.amount
    ):
        return _as_paid(session, payout, payment, there)
    for _, owed, promised in promise_differences(session, payout.endpoint, reference):
        return _promise(session, payout, owed, promised, now)
    raise Refused(f"Payout {reference} agrees with the marketplace and the ledger. There is nothing to mend.")


def _payments(session: Session, marketplace: Records, payout: Payout) -> list[BonusPayment]:
    """Ask for the payments on a payout's assignment, outside any transaction."""
    assignment_id = None if payout.assignment is None else payout.assignment.mturk_assignment_id
    session.commit()
    return [] if assignment_id is None else list(marketplace.bonus_payments(assignment_id=assignment_id))


def _as_paid(session: Session, payout: Payout, payment: BonusPayment, there: Booked | None) -> Mend:
    amount, at = payment.amount, payment.granted_at

    def deed() -> None:
        if there is not None and there.amount != amount:
            _reverse_all(session, TransactionKind.BONUS, payout.reference, payout.batch_id, "the amount was wrong", at)
        payout.amount = amount
        if payout.state not in PAID:
            payout.state, payout.sent_at, payout.cause = PayoutState.SENT, at, None
            payout.approved_by = payout.approved_by or "nobody, but the marketplace has paid it"
            payout.approved_at = payout.approved_at or at
        session.flush()
        if there is None or there.amount != amount:
            # A paid bonus keeps a promise of just its amount.
            _set_promised(session, payout, amount, at)
            record_bonus(session, payout, payout.sent_at or at)

    what = (
        f"Payout {payout.reference} is taken as the marketplace shows it: {display(amount)} paid at "
        f"{at:%Y-%m-%d %H:%M} UTC. Here it is {payout.state.value.replace('_', ' ')}, {display(payout.amount)}, and "
        f"{'nothing' if there is None else display(there.amount)} is booked."
    )
    return Mend(payout.reference, what, deed)


def _never_arrived(session: Session, payout: Payout, there: Booked | None, now: datetime) -> Mend:
    if payout.sent_at is None or now - payout.sent_at < _LIST_LAG:
        raise Refused(
            f"Payout {payout.reference} was sent less than an hour ago, and the marketplace's list may lag behind. "
            "Reconcile again later."
        )
    new = new_reference()

    def deed() -> None:
        old = payout.reference
        _reverse_all(session, TransactionKind.BONUS, old, payout.batch_id, f"never arrived, sent anew as {new}", now)
        # The reversal has given the promise back; it goes on under the new reference.
        _set_promised(session, payout, ZERO, now)
        payout.reason = f"{payout.reason.removesuffix(old).rstrip()} {new}"
        payout.reference, payout.request_token, payout.token_sent_at = new, new_token(), None
        payout.state, payout.sent_at, payout.confirmed_at = PayoutState.APPROVED, None, None
        session.flush()
        _set_promised(session, payout, payout.amount, now)
        reservation = reservations.locked(session, payout.batch_id)
        cost = payout.amount + bonus_fee(payout.amount, on=now.date())
        if reservation is not None and reservation.free >= cost:
            reservations.keep(reservation, payout, cost, of_bonuses=ZERO)
        session.flush()

    booked_words = "" if there is None else f" Its booking of {display(there.amount)} is reversed."
    what = (
        f"The marketplace does not show payout {payout.reference}.{booked_words} It gets a new reference and is "
        "approved; `dynahit payments settle` sends it."
    )
    return Mend(payout.reference, what, deed)


def _promise(session: Session, payout: Payout, owed: Decimal, promised: Decimal, now: datetime) -> Mend:
    words = "owed" if payout.state in OWED else "not owed any more"
    what = f"Payout {payout.reference} is {words}: the ledger's promise of {display(promised)} becomes {display(owed)}."
    return Mend(payout.reference, what, lambda: _set_promised(session, payout, owed, now))


def _set_promised(session: Session, payout: Payout, wanted: Decimal, now: datetime) -> None:
    """Book what makes the ledger promise exactly ``wanted`` for a payout; nothing if it does."""
    cents = session.scalar(
        select(func.sum(Posting.cents))
        .join(LedgerTransaction, LedgerTransaction.id == Posting.transaction_id)
        .where(LedgerTransaction.reference == payout.reference, Posting.account.startswith("promised:"))
        .where(LedgerTransaction.kind != TransactionKind.REVERSAL, ~is_reversed())
    )
    more = wanted - from_cents(int(cents or 0))
    if not more:
        return
    kind = TransactionKind.PROMISE if more > 0 else TransactionKind.WITHDRAWAL
    code, worker = round_code(payout.round), payout.worker.pseudonym
    number = _times(session, f"{kind}:{payout.reference}:mended-")
    post(
        session,
        key=f"{kind}:{payout.reference}:mended-{number + 1}",
        kind=kind,
        reference=payout.reference,
        round_id=payout.round_id,
        postings={str(Account("promised", code, worker)): more, str(Account("promises", code, worker)): -more},
        now=now,
    )


def _mend_assignment(session: Session, marketplace: Marketplace, assignment: Assignment, now: datetime) -> Mend:
    assignment_id = assignment.mturk_assignment_id
    session.commit()
    seen = marketplace.assignment(assignment_id)
    payments = list(marketplace.bonus_payments(assignment_id=assignment_id))
    row = _assignment(session, assignment_id) or assignment
    there = booked(session, TransactionKind.REWARD, [assignment_id]).get(assignment_id)
    is_approved = row.state is AssignmentState.APPROVED
    if seen.status == "Approved" and not is_approved:
        at = seen.approval_time or now
        return Mend(
            assignment_id,
            f"Assignment {assignment_id} is approved here too, as of {at:%Y-%m-%d %H:%M} UTC, with its reward.",
            lambda: record_approval(session, row, at),
        )
    if is_approved and seen.status == "Submitted":
        return Mend(
            assignment_id,
            f"Assignment {assignment_id} is approved on the marketplace, which pays its reward.",
            lambda: _approve(session, marketplace, assignment_id, base_reward(row.hit.batch).reason),
        )
    if seen.status == "Rejected" and is_approved:
        return Mend(
            assignment_id,
            f"Assignment {assignment_id} is rejected here too, and its booked reward is reversed.",
            lambda: _as_rejected(session, row, seen.rejection_time or now, now),
        )
    if is_approved and (there is None or there.amount != row.hit.batch.reward):
        return Mend(
            assignment_id,
            f"The reward of assignment {assignment_id}, {display(row.hit.batch.reward)}, is booked"
            f"{'' if there is None else f' instead of {display(there.amount)}'}.",
            lambda: _book_reward(session, row, now),
        )
    if there is not None and not is_approved:
        return Mend(
            assignment_id,
            f"Assignment {assignment_id} is not approved; its booked reward of {display(there.amount)} is reversed.",
            lambda: _reverse_all(
                session, TransactionKind.REWARD, assignment_id, row.hit.batch_id, "the work is not approved", now
            ),
        )
    extras = _unbooked_extras(session, payments)
    if extras:
        total = sum((payment.amount for payment in extras.values()), ZERO)
        return Mend(
            assignment_id,
            f"{len(extras)} payments of {display(total)} on assignment {assignment_id} that were not sent from here "
            "are booked as bonuses, since the money has left.",
            lambda: _book_extras(session, row, extras),
        )
    raise Refused(f"Assignment {assignment_id} agrees with the marketplace and the ledger. There is nothing to mend.")


def _approve(session: Session, marketplace: Marketplace, assignment_id: str, reason: str) -> None:
    """Approve on the marketplace, outside any transaction; nothing changes here."""
    session.commit()
    marketplace.approve(assignment_id, reason)


def _as_rejected(session: Session, row: Assignment, at: datetime, now: datetime) -> None:
    row.approved_at = None
    note_rejected(session, row, at)
    _reverse_all(
        session, TransactionKind.REWARD, row.mturk_assignment_id, row.hit.batch_id, "rejected on the marketplace", now
    )


def _book_reward(session: Session, row: Assignment, now: datetime) -> None:
    """Book the reward that an assignment's HIT pays, in the place of what is booked for it."""
    name = row.mturk_assignment_id
    _reverse_all(session, TransactionKind.REWARD, name, row.hit.batch_id, "the amount was wrong", now)
    record_reward(session, row, now)


def _unbooked_extras(session: Session, payments: Iterable[BonusPayment]) -> dict[str, BonusPayment]:
    """Return the payments that neither outbox nor ledger know, by the names that they are booked under."""
    named = extra_references(payments)
    known = {
        name
        for name in {reference_of(payment) for payment in named.values()}
        if session.scalar(select(Payout.id).where(Payout.reference == name)) is not None
    }
    there = booked(session, TransactionKind.BONUS, named)
    seen: set[str] = set()
    found = {}
    for name, payment in named.items():
        reference = reference_of(payment)
        if reference in known and reference not in seen:
            seen.add(reference)
        elif name not in there:
            found[name] = payment
    return found


def _book_extras(session: Session, row: Assignment, extras: dict[str, BonusPayment]) -> None:
    code, worker, batch = round_code(row.hit.batch.round), row.worker.pseudonym, row.hit.batch
    for name, payment in extras.items():
        fee = bonus_fee(payment.amount, on=payment.granted_at.date())
        post(
            session,
            key=f"bonus:{name}",
            kind=TransactionKind.BONUS,
            reference=name,
            round_id=batch.round_id,
            postings={
                str(Account("bonuses", code, worker)): payment.amount,
                str(Account("bonus_fees", code, worker)): fee,
                marketplace_account(batch.endpoint): -(payment.amount + fee),
            },
            now=payment.granted_at,
        )


def _mend_transaction(session: Session, marketplace: Records, transaction: LedgerTransaction, now: datetime) -> Mend:
    kinds = {TransactionKind.BONUS: "paid", TransactionKind.REWARD: "approved"}
    if transaction.kind not in kinds:
        raise Refused(f"{transaction.key!r} is a {transaction.kind.value}; only rewards and bonuses are mended so.")
    name = transaction.reference
    known = {one.subject for one in reconcile(session, marketplace).findings}
    if not {f"payout {name}", f"assignment {name}"} & known:
        raise Refused(f"{transaction.key!r} agrees with the outbox. There is nothing to mend.")
    there = booked(session, transaction.kind, [name]).get(name)
    if there is None:
        raise Refused(f"{transaction.key!r} is reversed already. There is nothing to mend.")
    kind = transaction.kind
    return Mend(
        transaction.key,
        f"{transaction.key}, {display(there.cost)} with the fee, is reversed: nothing was {kinds[kind]} for it.",
        lambda: _reverse_all(session, kind, name, None, f"nothing was {kinds[kind]} for it", now),
    )


def _account(session: Session, marketplace: Records, now: datetime) -> Mend:
    more = unexplained(reconcile(session, marketplace))
    if not more:
        raise Refused("The balance holds nothing that other findings don't explain. There is nothing to mend.")
    endpoint = marketplace.endpoint

    def deed() -> None:
        # The address may be longer than a key; its account, which the postings name, says whose it is.
        prefix = f"deposit:difference:{hashlib.sha256(endpoint.encode()).hexdigest()[:16]}:"
        post(
            session,
            key=f"{prefix}{_times(session, prefix) + 1}",
            kind=TransactionKind.DEPOSIT,
            reference="difference that nobody could explain",
            round_id=None,
            postings={marketplace_account(endpoint): more, f"adjustments:{endpoint}": -more},
            now=now,
        )

    words = "more" if more > 0 else "less"
    what = (
        f"The marketplace holds {display(abs(more))} {words} than the books say; that is booked as a difference. Look "
        "for its cause first: what is booked so is forgotten."
    )
    return Mend(ACCOUNT, what, deed)


def _reservation(session: Session, code: str, now: datetime) -> Mend:
    found = {name: (held, reserved) for name, held, reserved in reservation_differences(session)}
    if code not in found:
        raise Refused(f"What is reserved for {code!r} agrees with the ledger. There is nothing to mend.")
    held, reserved = found[code]
    more = held - reserved
    kind = TransactionKind.RESERVATION if more > 0 else TransactionKind.RELEASE

    def deed() -> None:
        number = _times(session, f"{kind}:{code}:mended-")
        post(
            session,
            key=f"{kind}:{code}:mended-{number + 1}",
            kind=kind,
            reference=f"round {code}",
            round_id=_round_id(session, code),
            postings={str(Account("reserved", code, "")): more, str(Account("reservations", code, "")): -more},
            now=now,
        )

    what = f"The ledger's {display(reserved)} that are reserved for {code} become {display(held)}."
    return Mend(f"{_RESERVED}{code}", what, deed)


def _round_id(session: Session, code: str) -> int | None:
    task_code, _, number = code.partition("/")
    if not number.isdecimal():
        return None
    return session.scalar(select(Round.id).where(Round.task_code == task_code, Round.number == int(number)))


def _times(session: Session, prefix: str) -> int:
    return (
        session.scalar(
            select(func.count()).select_from(LedgerTransaction).where(LedgerTransaction.key.startswith(prefix))
        )
        or 0
    )


def _key_is_free(session: Session, key: str) -> bool:
    return session.scalar(select(LedgerTransaction.id).where(LedgerTransaction.key == key)) is None


def _reverse_all(
    session: Session, kind: TransactionKind, reference: str, batch_id: int | None, reason: str, now: datetime
) -> None:
    """Reverse what is booked for a reference and not reversed; what was taken off its batch's reservation goes back."""
    transactions = session.scalars(
        select(LedgerTransaction)
        .where(LedgerTransaction.kind == kind, LedgerTransaction.reference == reference)
        .options(selectinload(LedgerTransaction.postings))
        .order_by(LedgerTransaction.id)
    ).all()
    for transaction in transactions:
        if not _key_is_free(session, f"reversal:{transaction.key}"):
            continue
        reverse(session, transaction.key, reason=reason, now=now)
        _give_back(session, transaction, batch_id)


def _give_back(session: Session, transaction: LedgerTransaction, batch_id: int | None) -> None:
    reservation = reservations.locked(session, batch_id)
    if reservation is None:
        return
    sums = dict.fromkeys(("reserved", "marketplace"), ZERO)
    for line in transaction.postings:
        name = line.account.partition(":")[0]
        if name in sums:
            sums[name] += from_cents(line.cents)
    cost, from_reserved = -sums["marketplace"], -sums["reserved"]
    reservation.spent -= cost
    reservation.held -= cost - from_reserved
    session.flush()
