"""The audit log: who did what to whom. Lines are added only; the database refuses to change or delete one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import or_, select

from hits.marketplace.console_pages import page_of
from hits.marketplace.console_views import Actor, AuditEntry, Page
from hits.marketplace.errors import OperatorError
from hits.marketplace.tables import AuditRow
from hits.marketplace.transactions import Transaction
from hits.marketplace.words import words

PAGE_SIZE: Final = 50
LONGEST_TOKEN: Final = 128


def record(
    transaction: Transaction,
    actor: Actor,
    action: str,
    subject_kind: str,
    subject_id: str,
    *,
    token: str | None = None,
    **details: Any,
) -> None:
    """Add a line, in the transaction of what it tells of; `details` are JSON."""
    transaction.session.add(
        AuditRow(
            at=transaction.now,
            actor_kind=actor.kind,
            actor=actor.name[:200],
            action=action,
            subject_kind=subject_kind,
            subject_id=subject_id,
            details=details,
            token=token,
        )
    )


def was_done(
    transaction: Transaction, token: str | None, action: str, subject_id: str | None = None, **details: Any
) -> AuditRow | None:
    """Return the line of a form that was sent before, so that sending it again does nothing.

    Raises OperatorError for a token that cannot be, or that did something else: another action, the same to another
    subject, or with other details than these.
    """
    if token is None:
        return None
    if not (token.isascii() and 16 <= len(token) <= LONGEST_TOKEN):
        raise OperatorError(words("The form's one-time token is not whole. Load the page again and repeat."))
    row = transaction.session.scalar(select(AuditRow).where(AuditRow.token == token))
    if row is None:
        return None
    is_same = row.action == action and (subject_id is None or row.subject_id == subject_id)
    if not is_same or any(row.details.get(name) != value for name, value in details.items()):
        raise OperatorError(
            words("The form's one-time token was used for something else. Load the page again and repeat.")
        )
    return row


def entries(transaction: Transaction, *, about: str = "", action: str = "", page: int = 1) -> Page[AuditEntry]:
    """Return lines, newest first; `about` is the id or name of a subject or an actor."""
    query = select(AuditRow)
    if about:
        query = query.where(or_(AuditRow.subject_id == about, AuditRow.actor == about))
    if action:
        query = query.where(AuditRow.action == action)
    return page_of(transaction, query.order_by(AuditRow.seq.desc()), _entry, page=page, page_size=PAGE_SIZE)


def actions(transaction: Transaction) -> list[str]:
    """Return the kinds of action that the log has."""
    return list(transaction.session.scalars(select(AuditRow.action).distinct().order_by(AuditRow.action)))


def _entry(row: AuditRow) -> AuditEntry:
    details: Mapping[str, Any] = dict(row.details)
    return AuditEntry(row.seq, row.at, row.actor_kind, row.actor, row.action, row.subject_kind, row.subject_id, details)
