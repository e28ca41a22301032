"""What the pages on months, statements and the audit trail show: pages that add up, figures that were kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy.orm import Session

from app.finance import books
from app.finance.books import audit_page, frozen, last_runs, month_options, page_number, spent_by_month, statement_page
from app.models import AuditEntry, ReconcileRun
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound
from payments.month import Month
from payments.month_close import close_month
from payments.report import Figures, month_report
from tests import factories
from tests.payments.year import WORKERS, make_year

NEXT_YEAR = datetime(2027, 1, 2, tzinfo=UTC)

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("12", 12), ("", 0), ("x", 0), ("-1", 0), ("1" * 9, 0), ("²", 0)]
)
def test_a_page_is_a_number_or_none(text: str, number: int, database_url: str) -> None:
    assert page_number(text) == number


def test_frozen_figures_are_those_of_the_month_a_negative_promise_included(session: Session) -> None:
    make_year(session, events=60)
    january = Month(2026, 1)
    wanted = month_report(session, january)

    kept = frozen(close_month(session, january, by="kim", now=NEXT_YEAR))

    assert kept.totals == wanted.totals
    assert kept.by_round == wanted.by_round
    closing = close_month(session, Month(2026, 2), by="kim", now=NEXT_YEAR)
    closing.figures["totals"]["bonuses_promised"] = "-0.30"
    assert str(frozen(closing).totals.promised) == "-0.30"


def test_the_last_months_come_oldest_first_and_add_up(session: Session) -> None:
    make_year(session, events=60)

    found = spent_by_month(session)

    assert list(found) == [f"2026-{number:02d}" for number in range(1, 13)]
    assert sum(found.values(), Figures()).total == sum(
        (month_report(session, Month.parse(name)).totals.total for name in found), Figures().total
    )


def test_a_statement_comes_in_pages_with_the_sums_of_the_whole(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_year(session, events=60)
    factories.make_worker(session, pseudonym=WORKERS[0])
    whole, page = statement_page(session, WORKERS[0], 1)
    monkeypatch.setattr(books, "PAGE_SIZE", 3)

    pages = [statement_page(session, WORKERS[0], number)[1] for number in range(1, (page.count + 2) // 3 + 1)]

    assert [line for one in pages for line in one.rows] == list(reversed(whole.lines))
    for number in (0, len(pages) + 1):
        with pytest.raises(NotFound, match=f"this list has {len(pages)}"):
            statement_page(session, WORKERS[0], number)


def test_the_audit_trail_tells_refusals_from_deeds(session: Session, clock: FixedClock) -> None:
    for action in ("month.close", "month.close.refused"):
        session.add(AuditEntry(at=clock.now(), staff_name="kim", action=action, subject="s", detail={"b_c": 1, "a": 2}))
    session.flush()

    page = audit_page(session, "kim", "", 1)

    assert [line.is_refusal for line in page.rows] == [True, False]
    assert page.rows[0].detail == (("a", "2"), ("b c", "1"))
    assert audit_page(session, "nobody", "", 1).rows == []
    with pytest.raises(InvalidInput):
        audit_page(session, "\0", "", 1)


def test_of_each_marketplace_the_last_run_counts(session: Session, clock: FixedClock) -> None:
    for number, endpoint in enumerate(("http://a", "http://b", "http://a")):
        run = ReconcileRun(at=clock.now(), endpoint=endpoint, clean=True, summary=f"run {number}", findings=[])
        session.add(run)
        session.flush()

    assert [run.summary for run in last_runs(session)] == ["run 2", "run 1"]


def test_a_month_that_nothing_was_booked_in_can_be_chosen_all_the_same(database_url: str) -> None:
    known = [Month(2026, 2), Month(2026, 1)]

    assert month_options(known, Month(2026, 3))[0] == ("2026-03", "March 2026")
    assert month_options(known, known[1]) == [("2026-02", "February 2026"), ("2026-01", "January 2026")]
