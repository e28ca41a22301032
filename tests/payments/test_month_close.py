"""Closing a month: in order, once, with figures and a hash that today's postings are held against."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from hits.money import usd
from payments.errors import MonthNotClosable
from payments.ledger import record_deposit, record_reward
from payments.models import LedgerTransaction
from payments.month import Month
from payments.month_close import (
    check_closed_months,
    close_month,
    closed_month,
    closed_months,
    frozen_figures,
    next_to_close,
)
from payments.planning import plan_bonuses
from payments.report import month_report
from tests import factories
from tests.payments.builders import assignment_of, verified_example
from tests.payments.senders import ENDPOINT

OCTOBER, NOVEMBER, DECEMBER = Month(2026, 10), Month(2026, 11), Month(2026, 12)
JANUARY = datetime(2027, 1, 2, tzinfo=UTC)


def deposit(session: Session, reference: str, at: datetime) -> LedgerTransaction:
    return record_deposit(session, ENDPOINT, usd("10.00"), reference=reference, now=at)


@pytest.fixture
def books(session: Session) -> Session:
    """October with a deposit, November with a reward and a promise, nothing in December."""
    deposit(session, "invoice", OCTOBER.start)
    example = verified_example(session, batch=factories.make_batch(session))
    record_reward(session, assignment_of(session, example), factories.NOON)
    plan_bonuses(session, factories.NOON)
    session.commit()
    return session


def test_a_closed_month_keeps_its_figures_hash_and_who_closed_it(books: Session) -> None:
    close_month(books, OCTOBER, by="kim", now=JANUARY)
    closing = close_month(books, NOVEMBER, by="kim", now=JANUARY)

    totals = month_report(books, NOVEMBER).totals
    assert closing.figures["totals"]["rewards"] == str(totals.rewards) == "0.30"
    assert closing.figures["by_round"]["sentiment/1"]["bonuses_promised"] == "0.30"
    assert (closing.transactions, closing.postings, closing.closed_by, closing.closed_at) == (3, 7, "kim", JANUARY)
    assert [one.month for one in closed_months(books)] == ["2026-11", "2026-10"]
    assert [check.differs for check in check_closed_months(books)] == [(), ()]


def test_months_are_closed_in_order_from_the_first_booking_once_they_are_over(books: Session) -> None:
    for month, now, why in (
        (NOVEMBER, JANUARY, "October 2026 is still open. Close it before November 2026."),
        (Month(2026, 9), JANUARY, "Nothing was booked in or before September 2026"),
        (
            OCTOBER,
            datetime(2026, 10, 31, 23, 59, tzinfo=UTC),
            "not over. It can be closed from 2026-11-01 00:00 UTC on",
        ),
    ):
        with pytest.raises(MonthNotClosable, match=why):
            close_month(books, month, by="kim", now=now)

    assert next_to_close(books, JANUARY) == OCTOBER
    close_month(books, OCTOBER, by="kim", now=OCTOBER.end)
    with pytest.raises(MonthNotClosable, match="October 2026 is closed already"):
        close_month(books, OCTOBER, by="kim", now=JANUARY)
    assert next_to_close(books, NOVEMBER.end - timedelta(seconds=1)) is None
    for month in (NOVEMBER, DECEMBER):
        assert next_to_close(books, JANUARY) == month
        close_month(books, month, by="kim", now=JANUARY)
    assert next_to_close(books, JANUARY) is None
    assert closed_month(books, DECEMBER) is not None


def test_before_anything_is_booked_there_is_nothing_to_close(session: Session) -> None:
    assert next_to_close(session, JANUARY) is None
    with pytest.raises(MonthNotClosable, match="Nothing was booked"):
        close_month(session, NOVEMBER, by="kim", now=JANUARY)


def test_a_posting_that_was_changed_past_the_guards_is_found_in_its_month_alone(books: Session) -> None:
    for month in (OCTOBER, NOVEMBER, DECEMBER):
        close_month(books, month, by="kim", now=JANUARY)
    books.commit()
    with books.get_bind().begin() as connection:  # type: ignore[union-attr]  # an engine
        if connection.dialect.name == "sqlite":
            connection.execute(text("DROP TRIGGER posting_no_update"))
        else:
            connection.execute(text("SET session_replication_role = replica"))
        connection.execute(text("UPDATE posting SET cents = cents + 1 WHERE account LIKE 'rewards:%'"))
        if connection.dialect.name != "sqlite":
            connection.execute(text("SET session_replication_role = origin"))

    checks = {str(check.month): check.differs for check in check_closed_months(books)}

    assert checks["2026-10"] == checks["2026-12"] == ()
    hash_differs, figures_differ = checks["2026-11"]
    assert "with 7 postings instead of 7" in hash_differs
    assert "not the sums of its postings" in figures_differ


def test_a_month_that_was_exchanged_breaks_the_chain(books: Session) -> None:
    close_month(books, OCTOBER, by="kim", now=JANUARY)
    november = close_month(books, NOVEMBER, by="kim", now=JANUARY)

    october = closed_month(books, OCTOBER)

    assert october is not None
    assert october.chain_sha256 not in (october.sha256, november.chain_sha256)
    assert frozen_figures(month_report(books, OCTOBER)) == october.figures


def test_who_books_while_a_month_is_closed_books_in_the_next_one_or_is_in_the_hash(
    books: Session, session_factory: sessionmaker[Session]
) -> None:
    """One process has booked and not committed, a second closes, a third wants to book meanwhile."""
    close_month(books, OCTOBER, by="kim", now=JANUARY)
    books.commit()
    deposit(books, "before", datetime(2026, 11, 20, tzinfo=UTC))

    def closing() -> None:
        with session_factory() as session:
            close_month(session, NOVEMBER, by="kim", now=JANUARY)
            started.set()
            session.commit()

    started = threading.Event()
    thread = threading.Thread(target=closing)
    thread.start()
    waited = not started.wait(0.3)
    books.commit()
    thread.join(timeout=30)
    late = deposit(books, "after", datetime(2026, 11, 21, tzinfo=UTC))
    books.commit()

    assert waited
    closed = closed_month(books, NOVEMBER)
    assert closed is not None
    assert closed.transactions == 4
    assert late.at == NOVEMBER.end
    assert all(not check.differs for check in check_closed_months(books))


# On SQLite nobody can close between the look and the insert: one transaction at a time.
@pytest.mark.parametrize("database_url", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True)
def test_a_booking_that_looked_before_the_month_was_closed_still_finds_its_place(
    books: Session, session_factory: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read that the month is open, and the month was closed before its row arrived."""
    from payments import ledger

    close_month(books, OCTOBER, by="kim", now=JANUARY)
    books.commit()
    real, looks = ledger.in_open_month, []

    def slow_look(session: Session, at: datetime) -> datetime:
        found = real(session, at)
        looks.append(found)
        if len(looks) == 1:
            with session_factory() as other:
                close_month(other, NOVEMBER, by="kim", now=JANUARY)
                other.commit()
        return found

    monkeypatch.setattr(ledger, "in_open_month", slow_look)

    booked = deposit(books, "late", datetime(2026, 11, 21, tzinfo=UTC))
    books.commit()

    assert booked.at == NOVEMBER.end
    assert len(looks) == 3


def test_two_who_close_the_same_month_close_it_once(books: Session, session_factory: sessionmaker[Session]) -> None:
    answers: list[str] = []
    barrier = threading.Barrier(2)

    def closing(name: str) -> None:
        barrier.wait()
        with session_factory() as session:
            try:
                close_month(session, OCTOBER, by=name, now=JANUARY)
                session.commit()
                answers.append("closed")
            except MonthNotClosable as error:
                answers.append(str(error))

    threads = [threading.Thread(target=closing, args=(name,)) for name in ("kim", "robin")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert sorted(answers)[1] == "closed"
    assert "closed already" in sorted(answers)[0]
    assert len(closed_months(books)) == 1
