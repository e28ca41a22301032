"""Remembers request tokens for 24 hours, per requester and operation, in the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import and_, delete, or_, select

from hits.marketplace.tables import RequestTokenRow
from hits.marketplace.transactions import Transaction

LIFE: Final = timedelta(hours=24)
_FORGOTTEN_AT_ONCE: Final = 20


def first_result(transaction: Transaction, requester_id: str, operation: str, token: str | None) -> str | None:
    """Return what the first request with this token made, or None if it is the first in 24 hours.

    The caller holds the account's lock, so that two equal requests cannot both be first.
    """
    if token is None:
        return None
    row = transaction.session.get(RequestTokenRow, (requester_id, operation, token))
    if row is None or row.created_at <= transaction.now - LIFE:
        return None
    return row.result


def remember(transaction: Transaction, requester_id: str, operation: str, token: str | None, result: str) -> None:
    """Store what a request with this token made, and forget some of the requester's that are over.

    The caller holds the account's lock, so that nobody else forgets the same ones.
    """
    if token is None:
        return
    row = RequestTokenRow(
        requester_id=requester_id, operation=operation, token=token, created_at=transaction.now, result=result
    )
    transaction.session.merge(row)
    _forget_some(transaction, requester_id)


def _forget_some(transaction: Transaction, requester_id: str) -> None:
    """Delete a few tokens that are over; more than a request adds, so that they go by and by."""
    old = select(RequestTokenRow.operation, RequestTokenRow.token).where(
        RequestTokenRow.requester_id == requester_id, RequestTokenRow.created_at <= transaction.now - LIFE
    )
    over = transaction.session.execute(old.limit(_FORGOTTEN_AT_ONCE)).all()
    if over:
        which = [
            and_(RequestTokenRow.operation == operation, RequestTokenRow.token == token) for operation, token in over
        ]
        transaction.session.execute(
            delete(RequestTokenRow).where(RequestTokenRow.requester_id == requester_id, or_(*which))
        )
