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
from hits.money import from_cents, to_cents
from payments.closed_months import in_open_month
from payments.errors import LedgerConflict, UnbalancedTransaction
from payments.fees import bonus_fee, reward_fee
from payments.models import LedgerTransaction, Payout, Posting, TransactionKind


@dataclass(frozen=True)
class Account:
    """An account of one round and one worker, by pseudonym: ``bonuses:sentiment/1:w-0123456789abcdef``.

    ``promised`` rises with every bonus that is owed and falls when it is paid or withdrawn; ``promises`` is its
    counterpart.
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


def round_code(round: Round) -> str:
    """Return how accounts and reports name a round: ``sentiment/1``."""
    return f"{round.task_code}/{round.number}"


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
    """Book the reward and fee of an approved assignment, once. Flushes, never commits."""
    hit = assignment.hit
    batch = hit.batch
    fee = reward_fee(batch.reward, hit.max_assignments, on=(hit.created_at or now).date())
    code, worker = round_code(batch.round), assignment.worker.pseudonym
    return post(
        session,
        key=f"reward:{assignment.mturk_assignment_id}",
        kind=TransactionKind.REWARD,
        reference=assignment.mturk_assignment_id,
        round_id=batch.round_id,
        postings={
            str(Account("rewards", code, worker)): batch.reward,
            str(Account("reward_fees", code, worker)): fee,
            marketplace_account(batch.endpoint): -(batch.reward + fee),
        },
        now=assignment.approved_at or now,
    )


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
    """Book a paid bonus with its fee and the promise it keeps, once. Flushes, never commits."""
    fee = bonus_fee(payout.amount, on=sent_at.date())
    code, worker = round_code(payout.round), payout.worker.pseudonym
    return post(
        session,
        key=f"bonus:{payout.reference}",
        kind=TransactionKind.BONUS,
        reference=payout.reference,
        round_id=payout.round_id,
        postings={
            str(Account("bonuses", code, worker)): payout.amount,
            str(Account("bonus_fees", code, worker)): fee,
            marketplace_account(payout.endpoint): -(payout.amount + fee),
            str(Account("promised", code, worker)): -payout.amount,
            str(Account("promises", code, worker)): payout.amount,
        },
        now=sent_at,
    )


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
