"""Close a month of the books: figures frozen, ledger hashed, who did it kept. Commits."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.models import AuditEntry
from hits.clock import Clock
from payments import month_close
from payments.closed_months import MonthClose
from payments.month import Month


def close_month(session: Session, clock: Clock, month: Month, *, by: str) -> MonthClose:
    """Close a month and return its closing. Raises MonthNotClosable; nothing can open it again."""
    closing = month_close.close_month(session, month, by=by, now=clock.now())
    session.add(
        AuditEntry(
            at=clock.now(),
            staff_name=by,
            action="month.close",
            subject=f"month {month}",
            detail={"sha256": closing.sha256, "total": closing.figures["totals"]["total"]},
        )
    )
    session.commit()
    return closing
