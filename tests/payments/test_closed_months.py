"""No posting reaches a closed month: not by the ledger's own way, and not past it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError, IntegrityError
from sqlalchemy.orm import Session

from hits.money import usd
from payments.closed_months import closed_until, in_open_month
from payments.ledger import record_deposit
from payments.models import LedgerTransaction, Posting, TransactionKind
from payments.month import Month
from payments.month_close import close_month
from tests.payments.senders import ENDPOINT

NOVEMBER = Month(2026, 11)
IN_NOVEMBER = datetime(2026, 11, 15, tzinfo=UTC)
IN_DECEMBER = datetime(2026, 12, 3, tzinfo=UTC)


@pytest.fixture
def closed(session: Session) -> Session:
    """A session on books whose November is closed with one deposit in it."""
    record_deposit(session, ENDPOINT, usd("10.00"), reference="invoice 1", now=IN_NOVEMBER)
    close_month(session, NOVEMBER, by="kim", now=IN_DECEMBER)
    session.commit()
    return session


def test_without_a_closed_month_everything_is_booked_when_it_happened(session: Session) -> None:
    assert closed_until(session) is None
    assert in_open_month(session, IN_NOVEMBER) == IN_NOVEMBER


def test_what_comes_late_is_booked_at_the_start_of_the_first_open_month(closed: Session) -> None:
    late = record_deposit(closed, ENDPOINT, usd("1.00"), reference="found in a drawer", now=IN_NOVEMBER)
    later = record_deposit(closed, ENDPOINT, usd("2.00"), reference="invoice 2", now=IN_DECEMBER)

    assert (late.at, later.at) == (NOVEMBER.end, IN_DECEMBER)


def test_what_is_booked_already_stays_where_it_is(closed: Session) -> None:
    again = record_deposit(closed, ENDPOINT, usd("10.00"), reference="invoice 1", now=IN_NOVEMBER)

    assert again.at == IN_NOVEMBER


def test_the_database_refuses_a_transaction_and_a_posting_in_a_closed_month(closed: Session) -> None:
    booked = closed.query(LedgerTransaction).one()
    into_the_month = LedgerTransaction(key="k", kind=TransactionKind.DEPOSIT, reference="r", at=IN_NOVEMBER)
    into_the_transaction = Posting(transaction_id=booked.id, account="deposits:x", cents=1)

    for row in (into_the_month, into_the_transaction):
        with pytest.raises(IntegrityError, match="this month is closed"), closed.begin_nested():
            closed.add(row)


@pytest.mark.parametrize("statement", ["UPDATE month_close SET closed_by = 'nobody'", "DELETE FROM month_close"])
def test_a_closing_can_not_be_changed_or_taken_away(closed: Session, statement: str) -> None:
    with pytest.raises(DatabaseError, match="a closed month stays closed"):
        closed.execute(text(statement))


def test_the_first_moment_of_the_next_month_is_open(closed: Session) -> None:
    with closed.begin_nested():
        closed.add(LedgerTransaction(key="k", kind=TransactionKind.DEPOSIT, reference="r", at=NOVEMBER.end))

    assert closed_until(closed) == NOVEMBER.end
