"""The ledger as it is written down: every posting in the order of booking, as a table that can be hashed and read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.money import from_cents
from payments.models import LedgerTransaction, Posting
from payments.month import Month
from payments.tables import Cell, Column, ColumnKind, Table, csv_lines

_TRANSACTIONS_AT_ONCE: Final = 1_000

#: The hashes of closed months are made over these columns in this order: a change would break every one of them.
_COLUMNS: Final = (
    Column("transaction", ColumnKind.COUNT),
    Column("posting", ColumnKind.COUNT),
    Column("at", ColumnKind.MOMENT),
    Column("kind"),
    Column("key"),
    Column("reference"),
    Column("account"),
    Column("amount", ColumnKind.MONEY),
)


@dataclass(frozen=True)
class Entry:
    """One posting with what its transaction says."""

    transaction_id: int
    posting_id: int
    at: datetime
    kind: str
    key: str
    reference: str
    account: str
    cents: int


def entries(session: Session, start: datetime | None = None, end: datetime | None = None) -> Iterator[Entry]:
    """Yield the postings of a span of time (all of them without one), by transaction in the order of booking.

    They are read in portions, each by the primary key after the last one, so that memory stays flat. Transactions and
    postings are read apart: a join of the two might be made from the beginning for every portion.
    """
    bounds = [] if start is None else [LedgerTransaction.at >= start]
    if end is not None:
        bounds.append(LedgerTransaction.at < end)
    after = 0
    while True:
        transactions = session.execute(
            select(
                LedgerTransaction.id,
                LedgerTransaction.at,
                LedgerTransaction.kind,
                LedgerTransaction.key,
                LedgerTransaction.reference,
            )
            .where(LedgerTransaction.id > after, *bounds)
            .order_by(LedgerTransaction.id)
            .limit(_TRANSACTIONS_AT_ONCE)
        ).all()
        heads = {row.id: row for row in transactions}
        postings = session.execute(
            select(Posting.transaction_id, Posting.id, Posting.account, Posting.cents)
            .where(Posting.transaction_id.in_(heads))
            .order_by(Posting.transaction_id, Posting.id)
        ).all()
        for transaction_id, posting_id, account, cents in postings:
            head = heads[transaction_id]
            yield Entry(transaction_id, posting_id, head.at, head.kind.value, head.key, head.reference, account, cents)
        if len(transactions) < _TRANSACTIONS_AT_ONCE:
            return
        after = transactions[-1].id


def journal_table(session: Session, start: datetime | None = None, end: datetime | None = None) -> Table:
    """Return the ledger of a span of time as a table, one row for each posting."""
    rows = (_row(entry) for entry in entries(session, start, end))
    return Table("dynahit-ledger", _COLUMNS, rows)


def month_journal(session: Session, month: Month) -> Table:
    """Return the ledger of a month as a table."""
    return Table(f"dynahit-ledger-{month}", _COLUMNS, journal_table(session, month.start, month.end).rows)


def _row(entry: Entry) -> Sequence[Cell]:
    return (
        entry.transaction_id,
        entry.posting_id,
        entry.at,
        entry.kind,
        entry.key,
        entry.reference,
        entry.account,
        from_cents(entry.cents),
    )


@dataclass(frozen=True)
class Digest:
    """How much a month's ledger holds, and the SHA-256 of its CSV without a byte order mark."""

    transactions: int
    postings: int
    last_posting_id: int | None
    sha256: str


def month_digest(session: Session, month: Month) -> Digest:
    """Return the digest of a month's ledger; that of an empty month is the digest of the head alone."""
    transactions = postings = last_transaction = 0
    last_posting = None

    def rows() -> Iterator[Sequence[Cell]]:
        nonlocal transactions, postings, last_transaction, last_posting
        for entry in entries(session, month.start, month.end):
            transactions += entry.transaction_id != last_transaction
            postings += 1
            last_transaction = entry.transaction_id
            last_posting = entry.posting_id if last_posting is None else max(last_posting, entry.posting_id)
            yield _row(entry)

    digest = hashlib.sha256()
    for part in csv_lines(Table("digest", _COLUMNS, rows())):
        digest.update(part.encode())
    return Digest(transactions, postings, last_posting, digest.hexdigest())
