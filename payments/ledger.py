"""The books: double entry, append-only, whole cents. What is owed and why is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, selectinload

from hits.models import Assignment, Round
from hits.money import ZERO, from_cents, to_cents
from payments import reservations
from payments.closed_months import in_open_month
from payments.errors import AlreadyReversed, LedgerConflict, UnbalancedTransaction
from payments.fees import bonus_fee, for_masters, reward_fee
from payments.models import Budget, LedgerTransaction, Payout, Posting, Reservation, TransactionKind


@dataclass(frozen=True)
class Account:
    """An account of one round and one worker, by pseudonym: ``bonuses:sentiment/1:w-0123456789abcdef``.

    ``promised`` rises with every bonus that is owed and falls when it is paid or withdrawn; ``promises`` is its
    counterpart. ``reserved`` and ``reservations`` are the same for what is set aside, by round alone.
    """

    name: str
    round: str
    worker: str

    def __str__(self) -> str:
        return f"{self.name}:{self.round}:{self.worker}"

    @classmethod
    def parse(cls, text: str) -> Account:
        """Return the account that ``text`` names, one without round or worker with empty ones."""
        name, _, rest = text.partition(":")
        round_code, _, worker = rest.partition(":")
        return cls(name, round_code, worker)


def marketplace_account(endpoint: str) -> str:
    """Return the account of the money that a marketplace holds for us: deposits less all that was paid there."""
    return f"marketplace:{endpoint}"


def round_code(round: Round | None) -> str:
    """Return how accounts and reports name a round: ``sentiment/1``; empty for what belongs to none."""
    return "" if round is None else f"{round.task_code}/{round.number}"


def post(
    session: Session,
    *,
    key: str,
    kind: TransactionKind,
    reference: str,
    round_id: int | None,
    postings: Mapping[str, Decimal],
    now: datetime,
) -> LedgerTransaction:
    """Book a transaction and return it; lines of $0.00 are left out. Flushes, never commits.

    A key that is booked with the same contents returns what is booked, whatever the time. What is of a closed month
    is booked at the start of the first open one. Raises UnbalancedTransaction if the postings don't sum to zero,
    LedgerConflict if the key is booked with other contents.
    """
    lines = {account: to_cents(amount) for account, amount in postings.items() if amount}
    if total := sum(lines.values()):
        raise UnbalancedTransaction(key, total)
    booked = _booked(session, key)
    while booked is None:
        at = in_open_month(session, now)
        transaction = LedgerTransaction(
            key=key,
            kind=kind,
            reference=reference,
            round_id=round_id,
            at=at,
            postings=[Posting(account=account, cents=cents) for account, cents in lines.items()],
        )
        try:
            with session.begin_nested():
                session.add(transaction)
        except IntegrityError:
            # Another process booked the key, or closed the month, between our look and our insert; anything else is a
            # real error.
            booked = _booked(session, key)
            if booked is None and in_open_month(session, now) == at:
                raise
        else:
            return transaction
    wanted = (kind, reference, round_id, lines)
    there = (booked.kind, booked.reference, booked.round_id, {line.account: line.cents for line in booked.postings})
    if wanted != there:
        raise LedgerConflict(key, _words(*there), _words(*wanted))
    return booked


def _booked(session: Session, key: str) -> LedgerTransaction | None:
    return session.scalar(
        select(LedgerTransaction).where(LedgerTransaction.key == key).options(selectinload(LedgerTransaction.postings))
    )


def _words(kind: TransactionKind, reference: str, round_id: int | None, lines: Mapping[str, int]) -> str:
    amounts = ", ".join(f"{account} {cents:+d}" for account, cents in sorted(lines.items()))
    where = "" if round_id is None else f" in round id {round_id}"
    return f"{kind} of {reference}{where} ({amounts} cents)"


def record_reward(session: Session, assignment: Assignment, now: datetime) -> LedgerTransaction:
    """Book the reward and fee of an approved assignment, once, out of its batch's reservation.

    Flushes, never commits. What the reservation does not cover is booked all the same: the money has left.
    """
    hit = assignment.hit
    batch = hit.batch
    fee = reward_fee(
        batch.reward,
        hit.max_assignments,
        on=(hit.created_at or now).date(),
        masters=for_masters(batch.requirements),
    )
    code, worker = round_code(batch.round), assignment.worker.pseudonym
    return _post_spending(
        session,
        key=f"reward:{assignment.mturk_assignment_id}",
        kind=TransactionKind.REWARD,
        reference=assignment.mturk_assignment_id,
        round=batch.round,
        postings={
            str(Account("rewards", code, worker)): batch.reward,
            str(Account("reward_fees", code, worker)): fee,
            marketplace_account(batch.endpoint): -(batch.reward + fee),
        },
        batch_id=batch.id,
        cost=batch.reward + fee,
        kept_for=None,
        now=assignment.approved_at or now,
    )


def _post_spending(
    session: Session,
    *,
    key: str,
    kind: TransactionKind,
    reference: str,
    round: Round | None,
    postings: Mapping[str, Decimal],
    batch_id: int | None,
    cost: Decimal,
    kept_for: Payout | None,
    now: datetime,
) -> LedgerTransaction:
    """Book money that has left, once, and take it off what was set aside for its batch."""
    # The lock first: of two that book the same, the second one then finds it booked.
    reservation = reservations.locked(session, batch_id)
    key = _current_key(session, key)
    booked = _booked(session, key)
    lines = dict(postings)
    if booked is not None:
        there = {line.account: from_cents(line.cents) for line in booked.postings}
        lines |= {name: there[name] for name in _reserved(round, ZERO) if name in there}
    elif reservation is not None:
        missing = reservations.spend(reservation, cost, kept=kept_for.kept if kept_for is not None else ZERO)
        lines |= _reserved(round, -(cost - missing))
        session.flush()
    if kept_for is not None and booked is None:
        kept_for.kept = ZERO
    return post(
        session,
        key=key,
        kind=kind,
        reference=reference,
        round_id=None if round is None else round.id,
        postings=lines,
        now=now,
    )


def _current_key(session: Session, key: str) -> str:
    """Return the key that money which has left is booked under: its own, or a numbered one once that was reversed."""
    number, current = 1, key
    while (
        session.scalar(select(LedgerTransaction.id).where(LedgerTransaction.key == f"reversal:{current}")) is not None
    ):
        number += 1
        current = f"{key}:{number}"
    return current


def _reserved(round: Round | None, amount: Decimal) -> dict[str, Decimal]:
    """Return the two lines that set ``amount`` aside for a round, or take it off again."""
    code = round_code(round)
    return {str(Account("reserved", code, "")): amount, str(Account("reservations", code, "")): -amount}


def record_reservation(
    session: Session, reservation: Reservation, amount: Decimal, now: datetime
) -> LedgerTransaction | None:
    """Book what was set aside for a batch, once for each change of its reservation. Flushes, never commits."""
    return _change_reserved(session, reservation, TransactionKind.RESERVATION, amount, now)


def record_release(
    session: Session, reservation: Reservation, amount: Decimal, now: datetime
) -> LedgerTransaction | None:
    """Book what is given back of a batch's reservation, once for each change of it. Flushes, never commits."""
    return _change_reserved(session, reservation, TransactionKind.RELEASE, -amount, now)


def _change_reserved(
    session: Session, reservation: Reservation, kind: TransactionKind, amount: Decimal, now: datetime
) -> LedgerTransaction | None:
    if not amount:
        return None
    round_ = session.get_one(Round, reservation.round_id)
    return post(
        session,
        key=f"{kind}:batch-{reservation.batch_id}:{reservation.changes}",
        kind=kind,
        reference=f"batch {reservation.batch_id}",
        round_id=reservation.round_id,
        postings=_reserved(round_, amount),
        now=now,
    )


def record_budget(session: Session, budget: Budget, change: Decimal, now: datetime) -> LedgerTransaction | None:
    """Book a change of a budget, once. Flushes, never commits; a change of $0.00 books nothing."""
    if not change:
        return None
    name = f"{budget.scope}:{budget.key}" if budget.key else f"{budget.scope}:"
    return post(
        session,
        key=f"budget:{name}:{budget.changes}",
        kind=TransactionKind.BUDGET,
        reference=f"budget {name}".rstrip(":"),
        round_id=None,
        postings={f"budget:{name}": change, f"budgets:{name}": -change},
        now=now,
    )


def reverse(session: Session, key: str, *, reason: str, now: datetime) -> LedgerTransaction:
    """Book the transaction ``key`` turned round, once, with the reason as its reference. Flushes, never commits.

    Reservations and payouts are not changed: this mends books, it moves no money. Raises LookupError for a key that is
    not booked, AlreadyReversed for a reversal and for a second reason.
    """
    booked = _booked(session, key)
    if booked is None:
        raise LookupError(f"No transaction {key!r} is booked.")
    if booked.kind is TransactionKind.REVERSAL:
        raise AlreadyReversed(key, "it is a reversal itself")
    try:
        return post(
            session,
            key=f"reversal:{key}",
            kind=TransactionKind.REVERSAL,
            reference=reason,
            round_id=booked.round_id,
            postings={line.account: -from_cents(line.cents) for line in booked.postings},
            now=now,
        )
    except LedgerConflict as error:
        raise AlreadyReversed(key, "it was reversed before, for another reason") from error


def record_promise(session: Session, payout: Payout, now: datetime) -> LedgerTransaction:
    """Book that a bonus is owed, once for each time it is promised. Flushes, never commits."""
    return _promise(session, payout, TransactionKind.PROMISE, payout.amount, now)


def record_withdrawal(session: Session, payout: Payout, now: datetime) -> LedgerTransaction:
    """Book that an unpaid bonus is owed no more. Flushes, never commits."""
    return _promise(session, payout, TransactionKind.WITHDRAWAL, -payout.amount, now)


def _promise(
    session: Session, payout: Payout, kind: TransactionKind, amount: Decimal, now: datetime
) -> LedgerTransaction:
    code, worker = round_code(payout.round), payout.worker.pseudonym
    return post(
        session,
        key=f"{kind}:{payout.reference}:{payout.promise_number}",
        kind=kind,
        reference=payout.reference,
        round_id=payout.round_id,
        postings={
            str(Account("promised", code, worker)): amount,
            str(Account("promises", code, worker)): -amount,
        },
        now=now,
    )


def record_bonus(session: Session, payout: Payout, sent_at: datetime) -> LedgerTransaction:
    """Book a paid bonus with its fee and the promise it keeps, once, out of its batch's reservation.

    Flushes, never commits.
    """
    fee = bonus_fee(payout.amount, on=sent_at.date())
    code, worker = round_code(payout.round), payout.worker.pseudonym
    return _post_spending(
        session,
        key=f"bonus:{payout.reference}",
        kind=TransactionKind.BONUS,
        reference=payout.reference,
        round=payout.round,
        postings={
            str(Account("bonuses", code, worker)): payout.amount,
            str(Account("bonus_fees", code, worker)): fee,
            marketplace_account(payout.endpoint): -(payout.amount + fee),
            str(Account("promised", code, worker)): -payout.amount,
            str(Account("promises", code, worker)): payout.amount,
        },
        batch_id=payout.batch_id,
        cost=payout.amount + fee,
        kept_for=payout,
        now=sent_at,
    )


def record_compensation(session: Session, payout: Payout, now: datetime) -> LedgerTransaction:
    """Book that a promise was kept by the reward of a HIT of its own, once. Flushes, never commits."""
    return _promise(session, payout, TransactionKind.COMPENSATION, -payout.amount, now)


def record_deposit(
    session: Session, endpoint: str, amount: Decimal, *, reference: str, now: datetime
) -> LedgerTransaction:
    """Book money that was put into the account on a marketplace, once for each reference. Flushes, never commits."""
    return post(
        session,
        key=f"deposit:{reference}",
        kind=TransactionKind.DEPOSIT,
        reference=reference,
        round_id=None,
        postings={marketplace_account(endpoint): amount, f"deposits:{endpoint}": -amount},
        now=now,
    )


def booked_balance(session: Session, endpoint: str) -> Decimal:
    """Return what the marketplace should hold for us by the books: deposits less all that was paid there."""
    account = marketplace_account(endpoint)
    return from_cents(int(session.scalar(select(func.sum(Posting.cents)).where(Posting.account == account)) or 0))


def booked_deposits(session: Session, endpoint: str) -> Decimal:
    """Return what was put into the account on a marketplace, by the books."""
    account = f"deposits:{endpoint}"
    return -from_cents(int(session.scalar(select(func.sum(Posting.cents)).where(Posting.account == account)) or 0))
