"""What one worker was promised and paid, line by line from the postings, with the sentences that the worker reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import NotFound
from hits.models import Assignment, Hit, HitBatch, Round, Worker
from hits.money import ZERO, from_cents
from payments.ledger import Account, round_code
from payments.models import LedgerTransaction, Payout, Posting, TransactionKind
from payments.rules import base_reward
from payments.tables import Column, ColumnKind, Table

#: What reaches the worker, and what is owed to the worker; fees do neither.
PAY: Final = ("rewards", "bonuses")
OWED: Final = "promised"


@dataclass(frozen=True)
class StatementLine:
    """One event: what it added to what was paid, and to what is owed."""

    at: datetime
    kind: TransactionKind
    round: str
    reference: str
    reason: str
    paid: Decimal
    owed: Decimal


@dataclass(frozen=True)
class Statement:
    """All events of one worker, the oldest first."""

    worker: str
    lines: tuple[StatementLine, ...]

    @property
    def paid(self) -> Decimal:
        return sum((line.paid for line in self.lines), ZERO)

    @property
    def owed(self) -> Decimal:
        return sum((line.owed for line in self.lines), ZERO)


def statement(session: Session, pseudonym: str) -> Statement:
    """Return the statement of a worker. Raises NotFound for a pseudonym that nobody has."""
    # A NUL byte in the address is no text for PostgreSQL.
    known = "\0" not in pseudonym and session.scalar(select(Worker.id).where(Worker.pseudonym == pseudonym))
    if not known:
        raise NotFound(f"There is no worker {pseudonym!r}. The month's table by worker names those who were paid.")
    rounds = ["", *map(round_code, session.scalars(select(Round)))]
    accounts = [str(Account(name, code, pseudonym)) for code in rounds for name in (*PAY, OWED)]
    rows = session.execute(
        select(
            LedgerTransaction.id,
            LedgerTransaction.key,
            LedgerTransaction.at,
            LedgerTransaction.kind,
            LedgerTransaction.reference,
            Posting.account,
            Posting.cents,
        )
        .join(Posting, Posting.transaction_id == LedgerTransaction.id)
        .where(Posting.account.in_(accounts))
        .order_by(LedgerTransaction.at, LedgerTransaction.id)
    ).all()
    reasons = _reasons(session, pseudonym)
    lines = []
    for (_, key, at, kind, reference), postings in groupby(rows, key=lambda row: tuple(row[:5])):
        reason = reasons.get(reference, "")
        if kind is TransactionKind.REVERSAL:
            # Its own reference is the reason, and its key names what it reverses: "reversal:reward:ASSIGNMENT".
            reference, reason = key.split(":")[2], reference
        lines.append(_line(at, kind, reference, [(row.account, row.cents) for row in postings], reason))
    return Statement(pseudonym, tuple(lines))


def _line(
    at: datetime,
    kind: TransactionKind,
    reference: str,
    postings: Iterable[tuple[str, int]],
    reason: str,
) -> StatementLine:
    paid = owed = 0
    round_ = ""
    for name, cents in postings:
        account = Account.parse(name)
        round_ = account.round
        if account.name == OWED:
            owed += cents
        else:
            paid += cents
    return StatementLine(at, kind, round_, reference, reason, from_cents(paid), from_cents(owed))


def _reasons(session: Session, pseudonym: str) -> dict[str, str]:
    """Return the sentence of each bonus and each reward, by reference."""
    bonuses = session.execute(
        select(Payout.reference, Payout.reason).join(Payout.worker).where(Worker.pseudonym == pseudonym)
    )
    rewards = session.execute(
        select(Assignment.mturk_assignment_id, HitBatch)
        .select_from(Assignment)
        .join(Worker, Worker.id == Assignment.worker_id)
        .join(Hit, Hit.id == Assignment.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .where(Worker.pseudonym == pseudonym)
    )
    found: dict[str, str] = {row[0]: base_reward(row[1]).reason for row in rewards}
    found.update({row[0]: row[1] for row in bonuses})
    return found


def statement_table(found: Statement) -> Table:
    """Return a statement as a table."""
    columns = (
        Column("at", ColumnKind.MOMENT),
        Column("worker"),
        Column("what"),
        Column("round"),
        Column("reference"),
        Column("reason"),
        Column("paid", ColumnKind.MONEY),
        Column("owed", ColumnKind.MONEY),
    )
    rows = (
        (line.at, found.worker, line.kind.value, line.round, line.reference, line.reason, line.paid, line.owed)
        for line in found.lines
    )
    return Table(f"dynahit-{found.worker}", columns, rows)
