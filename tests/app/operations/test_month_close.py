"""Closing a month as an operation: committed, with who did it and the hash in the audit trail."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry
from app.operations.month_close import close_month
from hits.clock import FixedClock
from hits.money import usd
from payments.closed_months import MonthClose
from payments.errors import MonthNotClosable
from payments.ledger import record_deposit
from payments.month import Month
from tests.payments.senders import ENDPOINT

NOVEMBER = Month(2026, 11)


def test_a_closed_month_is_committed_with_its_entry_in_the_audit_trail(
    session: Session, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    record_deposit(session, ENDPOINT, usd("10.00"), reference="invoice", now=clock.now())
    session.commit()
    clock.advance(timedelta(days=20))

    closing = close_month(session, clock, NOVEMBER, by="kim")

    with session_factory() as other:
        [stored] = other.scalars(select(MonthClose)).all()
        [entry] = other.scalars(select(AuditEntry)).all()
    assert (stored.month, stored.sha256) == ("2026-11", closing.sha256)
    assert (entry.staff_name, entry.action, entry.subject) == ("kim", "month.close", "month 2026-11")
    assert entry.detail == {"sha256": closing.sha256, "total": "0.00"}


def test_a_month_that_can_not_be_closed_leaves_nothing(session: Session, clock: FixedClock) -> None:
    with pytest.raises(MonthNotClosable):
        close_month(session, clock, NOVEMBER, by="kim")
    session.rollback()

    assert session.scalars(select(AuditEntry)).all() == []
