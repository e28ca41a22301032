"""What events and mail on their way out have in common: leases, attempts that grow apart, an end, and forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from sqlalchemy import ColumnElement, delete, exists, func, select
from sqlalchemy.orm import Session

from hits.marketplace.database import Store
from hits.marketplace.tables import EventRow, MailRow

# A process that takes something and dies leaves it to others after this long.
LEASE: Final = timedelta(minutes=2)
KEPT_FOR: Final = timedelta(days=30)
_FIRST_DELAY: Final = 10
_LONGEST_DELAY: Final = 3600

RowT = TypeVar("RowT", EventRow, MailRow)


def claim(
    session: Session, table: type[RowT], now: datetime, size: int, *conditions: ColumnElement[bool]
) -> Sequence[RowT]:
    """Take up to `size` rows that are due, oldest first, so that no other process takes them during the lease."""
    query = (
        select(table)
        .where(table.state == "Waiting", table.next_attempt_at <= now, *conditions)
        .order_by(table.seq)
        .limit(size)
        .with_for_update(skip_locked=True)
    )
    rows = session.scalars(query).all()
    for row in rows:
        row.attempts += 1
        row.next_attempt_at = now + LEASE
    return rows


def is_due(store: Store, table: type[RowT], now: datetime) -> bool:
    """Tell whether anything is due, without the write lock that a claim takes."""
    query = select(exists().where(table.state == "Waiting", table.next_attempt_at <= now))
    with store.session(writes=False) as session:
        return session.scalar(query) is True


def note(
    store: Store, table: type[RowT], seq: int, attempt: int, problem: str | None, *, now: datetime, give_up_at: datetime
) -> bool:
    """Write down how an attempt went, and return whether the row is done with.

    An attempt that outlived its lease changes nothing any more: another one has begun since.
    """
    with store.session(writes=True) as session:
        row = session.get(table, seq, with_for_update=True)
        if row is None or row.state != "Waiting" or row.attempts != attempt:
            return False
        row.last_error = problem
        if problem is None:
            row.state = "Delivered"
        elif give_up_at <= now:
            row.state = "Failed"
        else:
            # 10 s, 40 s, 160 s and so on: the exponent is bounded, so that the number is too.
            delay = min(_FIRST_DELAY * 4 ** min(attempt - 1, 8), _LONGEST_DELAY)
            row.next_attempt_at = now + timedelta(seconds=delay)
        if row.state != "Waiting":
            row.ended_at = now
        return row.state != "Waiting"


def waiting(store: Store, table: type[RowT]) -> int:
    """Return how many rows still wait."""
    with store.session(writes=False) as session:
        return session.scalar(select(func.count()).select_from(table).where(table.state == "Waiting")) or 0


def forget_old(store: Store, table: type[RowT], now: datetime) -> None:
    """Delete what was done with a month ago."""
    old = (table.state != "Waiting", table.ended_at <= now - KEPT_FOR)
    with store.session(writes=False) as session:
        if session.scalar(select(exists().where(*old))) is not True:
            return
    with store.session(writes=True) as session:
        session.execute(delete(table).where(*old))
