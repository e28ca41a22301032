"""What makes signing out count: a cookie can be copied, so the store remembers which sessions are over."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from hits.marketplace.tables import EndedSessionRow
from hits.marketplace.transactions import Transaction

LONGEST_KEY: Final = 64


def new_key() -> str:
    """Return the key of a session that begins."""
    return secrets.token_urlsafe(24)


def end(transaction: Transaction, key: str, *, now: datetime, life: timedelta) -> None:
    """End a session for good, and forget those whose cookies are too old by now; ending it again changes nothing.

    `life` is how long a cookie that was written a moment ago is accepted.
    """
    session = transaction.session
    session.execute(delete(EndedSessionRow).where(EndedSessionRow.forget_at <= now))
    if is_over(transaction, key):
        return
    try:
        with session.begin_nested():
            session.add(EndedSessionRow(session_key=key, ended_at=now, forget_at=now + life))
    except IntegrityError:
        # Somebody else ended it in the meantime, which is all that is wanted.
        return


def is_over(transaction: Transaction, key: str) -> bool:
    """Whether a session was ended; one without a fit key never began."""
    if not 0 < len(key) <= LONGEST_KEY:
        return True
    query = select(EndedSessionRow.session_key).where(EndedSessionRow.session_key == key)
    return transaction.session.scalar(query) is not None
