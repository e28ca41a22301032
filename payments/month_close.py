"""Closing a month: its figures are frozen, its ledger is hashed, and nothing can be booked in it any more."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from payments.closed_months import MonthClose
from payments.errors import MonthNotClosable
from payments.journal import month_digest
from payments.models import LedgerTransaction
from payments.month import Month
from payments.report import Figures, MonthReport, figures_row, month_report

#: What the chain of hashes begins with.
_FIRST: Final = "0" * 64


@dataclass(frozen=True)
class Check:
    """A closed month against its postings of today. ``differs``: what is not as it was; empty when all is."""

    month: Month
    differs: tuple[str, ...]


def closed_months(session: Session) -> list[MonthClose]:
    """Return the closed months, the newest first."""
    return list(session.scalars(select(MonthClose).order_by(MonthClose.ends_at.desc())))


def closed_month(session: Session, month: Month) -> MonthClose | None:
    """Return a month's closing, None while it is open."""
    return session.scalar(select(MonthClose).where(MonthClose.month == str(month)))


def next_to_close(session: Session, now: datetime) -> Month | None:
    """Return the month that can be closed now: the first that is not, once it is over; None if there is none.

    Months are closed in order, from that of the first booking on, so that no month can be left out.
    """
    last = session.scalar(select(func.max(MonthClose.ends_at)))
    if last is None:
        first = session.scalar(select(func.min(LedgerTransaction.at)))
        if first is None:
            return None
        last = Month.of(first).start
    month = Month.of(last)
    return month if month.end <= now else None


def close_month(session: Session, month: Month, *, by: str, now: datetime) -> MonthClose:
    """Close a month and return its closing. Flushes, never commits.

    Whoever books at this moment is waited for; later ones book in the next month. Raises MonthNotClosable for a month
    that is closed, is not over, or has an open one before it.
    """
    if session.get_bind().dialect.name == "postgresql":
        # SQLite lets one transaction write at a time anyway.
        session.execute(text("SET LOCAL lock_timeout = '20s'"))
        session.execute(text("LOCK TABLE ledger_transaction IN SHARE ROW EXCLUSIVE MODE"))
    wanted = next_to_close(session, now)
    if wanted != month:
        raise MonthNotClosable(_why_not(session, month, wanted, now))
    digest = month_digest(session, month)
    previous = closed_month(session, month.previous)
    closing = MonthClose(
        month=str(month),
        ends_at=month.end,
        closed_at=now,
        closed_by=by,
        transactions=digest.transactions,
        postings=digest.postings,
        last_posting_id=digest.last_posting_id,
        figures=frozen_figures(month_report(session, month)),
        sha256=digest.sha256,
        chain_sha256=_chained(previous.chain_sha256 if previous else _FIRST, month, digest.sha256),
    )
    try:
        with session.begin_nested():
            session.add(closing)
    except IntegrityError as error:
        if closed_month(session, month) is None:
            raise
        raise MonthNotClosable(f"{month.words} has just been closed by somebody else.") from error
    return closing


def _why_not(session: Session, month: Month, wanted: Month | None, now: datetime) -> str:
    if closed_month(session, month) is not None:
        return f"{month.words} is closed already. What comes late is booked in the next open month."
    if month.end > now:
        return f"{month.words} is not over. It can be closed from {month.end:%Y-%m-%d} 00:00 UTC on."
    if wanted is None or month < wanted:
        return f"Nothing was booked in or before {month.words}, so there is nothing to close."
    return f"{wanted.words} is still open. Close it before {month.words}."


def _chained(before: str, month: Month, sha256: str) -> str:
    return hashlib.sha256(f"{before} {month} {sha256}".encode()).hexdigest()


def frozen_figures(report: MonthReport) -> dict[str, Any]:
    """Return a report's totals and sums by round as they are kept: counts as numbers, dollars as text."""
    return {
        "totals": _as_text(report.totals),
        "by_round": {name: _as_text(figures) for name, figures in report.by_round.items()},
    }


def _as_text(figures: Figures) -> dict[str, int | str]:
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in figures_row(figures).items()}


def check_closed_months(session: Session) -> Iterator[Check]:
    """Yield each closed month, the oldest first, with what is not as it was when it was closed."""
    chain = _FIRST
    for closing in session.scalars(select(MonthClose).order_by(MonthClose.ends_at)).all():
        month = Month.parse(closing.month)
        digest = month_digest(session, month)
        chain = _chained(chain, month, digest.sha256)
        differs = []
        if digest.sha256 != closing.sha256:
            differs.append(
                f"its ledger has the hash {digest.sha256[:16]}… instead of {closing.sha256[:16]}…, with "
                f"{digest.postings} postings instead of {closing.postings}"
            )
        elif chain != closing.chain_sha256:
            differs.append("its hash does not follow from the month before")
        if frozen_figures(month_report(session, month)) != closing.figures:
            differs.append("its figures are not the sums of its postings")
        # The months after it are judged by themselves.
        chain = closing.chain_sha256
        yield Check(month, tuple(differs))
