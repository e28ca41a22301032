"""What the finance pages show: payouts by standing, in words, with their postings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session, selectinload

from hits.errors import NotFound
from payments.due import due_bonuses
from payments.ledger import round_code
from payments.models import OWED, LedgerTransaction, Payout, PayoutState, TransactionKind
from payments.report import Amount, ExampleInWords, Standing, example_in_words, standing

PAGE_SIZE: Final = 100

#: The figures: name in the address, words, states that count.
GROUPS: Final[dict[str, tuple[str, tuple[PayoutState, ...]]]] = {
    "owed": ("owed", tuple(sorted(OWED - {PayoutState.DOUBTFUL, PayoutState.FAILED}))),
    "sent": ("sent", (PayoutState.SENT,)),
    "confirmed": ("confirmed", (PayoutState.CONFIRMED, PayoutState.COMPENSATED)),
    "doubtful": ("doubtful", (PayoutState.DOUBTFUL,)),
    "failed": ("failed", (PayoutState.FAILED,)),
    "no-budget": ("without budget", (PayoutState.NO_BUDGET,)),
}

#: How people read a state, and the shape of its status.
STATE_WORDS: Final[dict[PayoutState, tuple[str, str]]] = {
    PayoutState.PLANNED: ("To be paid", "wait"),
    PayoutState.APPROVED: ("Approved, to be paid", "wait"),
    PayoutState.SENDING: ("Being sent", "wait"),
    PayoutState.SENT: ("Sent", "good"),
    PayoutState.CONFIRMED: ("Confirmed", "good"),
    PayoutState.FAILED: ("Failed", "bad"),
    PayoutState.DOUBTFUL: ("Doubtful", "bad"),
    PayoutState.HELD: ("Held, flagged", "wait"),
    PayoutState.NOT_DUE: ("Not due any more", "off"),
    PayoutState.NOT_SUBMITTED: ("Work not handed in yet", "wait"),
    PayoutState.NO_BUDGET: ("No budget for it", "bad"),
    PayoutState.NEEDS_COMPENSATION: ("Needs a HIT of its own", "bad"),
    PayoutState.COMPENSATING: ("HIT of its own is open", "wait"),
    PayoutState.COMPENSATED: ("Paid by a HIT of its own", "good"),
}

_TRANSACTION_WORDS: Final[dict[TransactionKind, str]] = {
    TransactionKind.PROMISE: "Promised",
    TransactionKind.WITHDRAWAL: "Promise withdrawn",
    TransactionKind.BONUS: "Paid",
    TransactionKind.REWARD: "Reward",
    TransactionKind.DEPOSIT: "Deposit",
    TransactionKind.BUDGET: "Budget set",
    TransactionKind.RESERVATION: "Set aside",
    TransactionKind.RELEASE: "Given back to the budget",
    TransactionKind.COMPENSATION: "Paid by a HIT of its own",
    TransactionKind.REVERSAL: "Turned round",
}


@dataclass(frozen=True)
class PayoutLine:
    """One payout in a table."""

    reference: str
    worker: str
    round: str
    amount: Decimal
    state: str
    shape: str
    reason: str
    cause: str | None
    planned_at: datetime
    sent_at: datetime | None


@dataclass(frozen=True)
class PayoutPage:
    """One page of a table of payouts, with the totals of the whole table."""

    lines: tuple[PayoutLine, ...]
    total: Amount
    number: int
    pages: int


@dataclass(frozen=True)
class PostingLine:
    """One posting of a payout."""

    at: datetime
    what: str
    account: str
    cents: int


@dataclass(frozen=True)
class PayoutDetail:
    """One payout whole."""

    line: PayoutLine
    example: ExampleInWords | None
    tries: int
    confirmed_at: datetime | None
    postings: tuple[PostingLine, ...]


def standing_now(session: Session) -> Standing:
    """Return what is owed and paid now, verified examples that no pass has planned yet included."""
    return standing(session, [due.bonus.amount for due in due_bonuses(session)])


def payout_page(session: Session, states: tuple[PayoutState, ...], number: int) -> PayoutPage:
    """Return one page of the payouts in these states, the newest first. Raises NotFound for a page that is not there.

    An empty table has one page.
    """
    count, amount = session.execute(select(func.count(), func.sum(Payout.amount)).where(Payout.state.in_(states))).one()
    pages = max((count + PAGE_SIZE - 1) // PAGE_SIZE, 1)
    if not 1 <= number <= pages:
        raise NotFound(f"There is no page {number}; this table has {pages}.")
    rows = session.scalars(
        select(Payout)
        .where(Payout.state.in_(states))
        .options(selectinload(Payout.worker), selectinload(Payout.round))
        .order_by(Payout.id.desc())
        .limit(PAGE_SIZE)
        .offset((number - 1) * PAGE_SIZE)
    )
    total = Amount(count, amount) if count else Amount()
    return PayoutPage(tuple(_line(row) for row in rows), total, number, pages)


def payout_detail(session: Session, reference: str) -> PayoutDetail:
    """Return one payout with its example and postings. Raises NotFound."""
    # A NUL byte in the address is no text for PostgreSQL.
    payout = session.scalar(select(Payout).where(Payout.reference == reference)) if "\0" not in reference else None
    if payout is None:
        raise NotFound(f"There is no payout {reference!r}. Look for it in the tables of the finance page.")
    transactions = session.scalars(
        select(LedgerTransaction)
        .where(LedgerTransaction.reference == reference)
        .options(selectinload(LedgerTransaction.postings))
        .order_by(LedgerTransaction.id)
    )
    return PayoutDetail(
        line=_line(payout),
        example=None if payout.example is None else example_in_words(session, payout.example),
        tries=payout.tries,
        confirmed_at=payout.confirmed_at,
        postings=tuple(
            PostingLine(one.at, _TRANSACTION_WORDS[one.kind], posting.account, posting.cents)
            for one in transactions
            for posting in one.postings
        ),
    )


def _line(payout: Payout) -> PayoutLine:
    words, shape = STATE_WORDS[payout.state]
    return PayoutLine(
        reference=payout.reference,
        worker=payout.worker.pseudonym,
        round=round_code(payout.round),
        amount=payout.amount,
        state=words,
        shape=shape,
        reason=payout.reason,
        cause=payout.cause,
        planned_at=payout.planned_at,
        sent_at=payout.sent_at,
    )
