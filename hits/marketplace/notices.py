"""What the operator tells workers and requesters, read in the worker's inbox and in the requester console."""

from __future__ import annotations

from typing import Final

from sqlalchemy import func, select

from hits.marketplace.console_pages import page_of
from hits.marketplace.console_views import Notice, Page
from hits.marketplace.tables import MessageRow, NoticeRow
from hits.marketplace.transactions import Transaction

PAGE_SIZE: Final = 25


def to_worker(transaction: Transaction, worker_id: str, subject: str, text: str) -> None:
    """Put a message of the operator's into a worker's inbox."""
    transaction.session.add(
        MessageRow(worker_id=worker_id, requester_id=None, sent_at=transaction.now, subject=subject, text=text)
    )


def to_requester(transaction: Transaction, requester_id: str, subject: str, text: str) -> None:
    """Put a notice into a requester's console."""
    transaction.session.add(NoticeRow(requester_id=requester_id, at=transaction.now, subject=subject, text=text))


def of_requester(transaction: Transaction, requester_id: str, *, page: int = 1) -> Page[Notice]:
    """Return a requester's notices, newest first."""
    query = select(NoticeRow).where(NoticeRow.requester_id == requester_id)
    return page_of(transaction, query.order_by(NoticeRow.seq.desc()), _notice, page=page, page_size=PAGE_SIZE)


def unread(transaction: Transaction, requester_id: str) -> int:
    """Return how many notices a requester has not seen."""
    query = select(func.count()).select_from(NoticeRow)
    return (
        transaction.session.scalar(query.where(NoticeRow.requester_id == requester_id, NoticeRow.read_at.is_(None)))
        or 0
    )


def mark_read(transaction: Transaction, requester_id: str) -> None:
    """Mark all of a requester's notices as read."""
    rows = transaction.session.scalars(
        select(NoticeRow).where(NoticeRow.requester_id == requester_id, NoticeRow.read_at.is_(None))
    )
    for row in rows:
        row.read_at = transaction.now


def _notice(row: NoticeRow) -> Notice:
    return Notice(row.seq, row.at, row.subject, row.text, row.read_at is not None)
