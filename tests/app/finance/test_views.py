"""The finance pages: figures that lead to their tables, the month, each payout with reason and postings."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.models import StaffUser
from app.operations.settle import settle
from hits.clock import FixedClock
from hits.models import Assignment, Worker
from hits.money import usd
from hits.states import AssignmentState
from payments.ledger import record_reward
from payments.models import Payout
from payments.planning import plan_bonuses
from tests import factories
from tests.app.conftest import sign_in
from tests.payments.builders import fooling_example, verified_example
from tests.payments.senders import BonusDesk, Fault

SCRIPT = '<script>alert("x")</script>'


@pytest.fixture
def books(session_factory: sessionmaker[Session], clock: FixedClock) -> BonusDesk:
    """Five verified statements: two confirmed, one doubtful, one failed, one not planned; one still in validation."""
    desk = BonusDesk(clock)
    with session_factory() as session:
        batch = factories.make_batch(session, reward=usd("0.30"), bonus=usd("0.30"))
        for _ in range(4):
            verified_example(session, batch=batch, votes=2)
        for assignment in session.scalars(select(Assignment).where(Assignment.state == AssignmentState.APPROVED)).all():
            record_reward(session, assignment, clock.now())
        session.commit()
        desk.faults.extend([Fault.NONE, Fault.NONE, Fault.ERROR_AFTER, Fault.REFUSED])
        settle(session, desk, clock)
        late = factories.make_batch(session, round=batch.round, bonus=usd("0.50"))
        verified_example(session, batch=late)
        fooling_example(session, batch=late)
        session.commit()
    return desk


@pytest.fixture
def finance(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff("kim", ("finance",))
    sign_in(client, "kim")
    return client


def soup(client: FlaskClient, path: str) -> BeautifulSoup:
    response = client.get(path)
    assert response.status_code == 200, response.text[:2000]
    return BeautifulSoup(response.text, "lxml")


def figures(page: BeautifulSoup) -> dict[str, str]:
    return {
        box.dt.get_text(): box.dd.get_text(strip=True) for box in page.select("dl.figures > div") if box.dt and box.dd
    }


def table(page: BeautifulSoup, caption: str) -> list[list[str]]:
    for found in page.find_all("table"):
        if found.caption and found.caption.get_text() == caption:
            return [[cell.get_text(strip=True) for cell in row.find_all(["th", "td"])] for row in found.find_all("tr")]
    raise AssertionError(f"no table {caption!r}")


def test_the_five_figures_stand_first_and_each_leads_to_its_table(books: BonusDesk, finance: FlaskClient) -> None:
    page = soup(finance, "/finance")

    assert figures(page) == {
        "owed, 1 bonus": "$0.50",
        "sent, 0 bonuses": "$0.00",
        "confirmed, 2 bonuses": "$0.60",
        "doubtful, 1 bonus": "$0.30",
        "failed, 1 bonus": "$0.30",
        "without budget, 0 bonuses": "$0.00",
    }
    assert "could add $0.50" in page.get_text()
    for link in page.select("dl.figures a"):
        assert finance.get(str(link["href"])).status_code == 200


def test_the_month_stands_by_round_and_by_worker_with_totals_at_the_foot(
    books: BonusDesk, finance: FlaskClient
) -> None:
    page = soup(finance, "/finance?month=2026-11")

    by_round = table(page, "November 2026 by round")
    by_worker = table(page, "November 2026 by worker")
    cells = ["4", "$1.20", "2", "$1.20", "$0.60", "$0.36", "$2.16"]
    assert by_round[1:] == [["sentiment/1", *cells], ["Total", *cells]]
    assert by_worker[-1] == ["Total", *cells]
    assert len(by_worker) == 6
    assert all(row[0].startswith("w-") for row in by_worker[1:-1])


def test_another_month_is_empty_and_says_what_will_appear(books: BonusDesk, finance: FlaskClient) -> None:
    page = soup(finance, "/finance?month=2026-10")

    assert "Nothing was paid or promised in October 2026" in page.get_text()


def test_the_csv_holds_the_same_figures_as_plain_numbers(books: BonusDesk, finance: FlaskClient) -> None:
    response = finance.get("/finance/report.csv?month=2026-11")

    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert 'filename="dynahit-2026-11.csv"' in response.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert sum(usd(row["total"]) for row in rows) == usd("2.16")
    assert sum(usd(row["bonuses"]) for row in rows) == usd("0.60")


def test_a_payout_shows_the_worker_s_sentence_the_statement_and_postings_that_sum_to_zero(
    books: BonusDesk, finance: FlaskClient, rows: Callable[[type[Payout]], list[Payout]]
) -> None:
    first = rows(Payout)[0]

    page = soup(finance, f"/finance/payout/{first.reference}")

    assert first.reason in page.get_text()
    assert books.paid[0].reason == first.reason
    assert "The soup came cold" in page.get_text()
    assert "2 negative" in page.get_text()
    postings = table(page, "Postings of this payout")
    assert postings[-1] == ["Sum, always zero", "$0.00"]
    assert [row[1] for row in postings[1:-1]].count("Paid") == 7


def test_the_tables_show_each_payout_with_its_reason_cause_and_the_total(
    books: BonusDesk, finance: FlaskClient
) -> None:
    failed = soup(finance, "/finance/payouts/failed")
    everything = soup(finance, "/finance/payouts/all")

    assert "AssignmentDoesNotExist" in failed.get_text()
    assert table(failed, "Payouts, the newest first")[-1][:3] == ["Total of 1", "", "$0.30"]
    assert table(everything, "Payouts, the newest first")[-1][:3] == ["Total of 4", "", "$1.20"]


def test_no_page_names_a_worker_s_id(
    books: BonusDesk, finance: FlaskClient, rows: Callable[[type[object]], list[object]]
) -> None:
    references = [row.reference for row in rows(Payout)]  # type: ignore[attr-defined]
    ids = [row.mturk_worker_id for row in rows(Worker)]  # type: ignore[attr-defined]
    paths = ["/finance", "/finance/report.csv", "/finance/payouts/all", *(f"/finance/payout/{r}" for r in references)]

    text = "".join(finance.get(path).text for path in paths)

    assert not [one for one in ids if one in text]


def test_a_requester_without_the_role_is_refused(client: FlaskClient, staff: Callable[..., StaffUser]) -> None:
    staff("robin", ("requester",))
    sign_in(client, "robin")

    for path in ("/finance", "/finance/payouts/all", "/finance/payout/DH-X", "/finance/report.csv"):
        assert client.get(path).status_code == 403, path


def test_nobody_sees_it_without_signing_in(client: FlaskClient) -> None:
    for path in ("/finance", "/finance/report.csv?month=2026-11"):
        response = client.get(path)

        assert response.status_code == 302, path
        assert "/staff/sign-in" in response.headers["Location"]


def test_a_wrong_address_is_answered_with_what_is_wrong(finance: FlaskClient) -> None:
    for path, status, words in (
        ("/finance?month=november", 422, "&#39;november&#39; is not a month"),
        ("/finance?month=2026-13", 422, "for example 2026-11"),
        ("/finance/report.csv?month=0000-01", 422, "is not a month"),
        ("/finance/payouts/nothing", 404, "The tables are all, owed"),
        ("/finance/payouts/all?page=7", 404, "There is no page 7"),
        ("/finance/payouts/all?page=x", 404, "this table has 1"),
        ("/finance/payout/DH-UNKNOWN", 404, "DH-UNKNOWN"),
        ("/finance/payout/DH%00X", 404, "There is no payout"),
        ("/finance?month=9999-12", 422, "is not a month"),
    ):
        response = finance.get(path)

        assert response.status_code == status, path
        assert words in response.text
        assert "HIT" not in BeautifulSoup(response.text, "lxml").select_one("main").get_text()  # type: ignore[union-attr]


def test_an_empty_book_says_what_will_appear(finance: FlaskClient) -> None:
    page = soup(finance, "/finance")

    assert set(figures(page).values()) == {"$0.00"}
    assert "Rewards appear here when" in page.get_text()
    assert "A payout appears when" in soup(finance, "/finance/payouts/owed").get_text()


def test_a_statement_with_markup_is_shown_as_text(session_factory: sessionmaker[Session], finance: FlaskClient) -> None:
    with session_factory() as session:
        example = verified_example(session, batch=factories.make_batch(session))
        example.attempt.answer = {"statement": SCRIPT}
        [planned] = plan_bonuses(session, datetime(2026, 11, 15, tzinfo=UTC))
        reference = planned.reference
        session.commit()

    response = finance.get(f"/finance/payout/{reference}")

    assert SCRIPT not in response.text
    assert "&lt;script&gt;" in response.text


def test_a_long_table_comes_in_pages(
    session_factory: sessionmaker[Session], finance: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.finance.figures.PAGE_SIZE", 2)
    with session_factory() as session:
        batch = factories.make_batch(session)
        for _ in range(3):
            verified_example(session, batch=batch)
        plan_bonuses(session, datetime(2026, 11, 15, tzinfo=UTC))
        session.commit()

    first, second = (soup(finance, f"/finance/payouts/owed?page={number}") for number in (1, 2))

    assert (len(table(first, "Payouts, the newest first")), len(table(second, "Payouts, the newest first"))) == (4, 3)
    assert "Page 2 of 2" in second.get_text()
    assert table(first, "Payouts, the newest first")[-1][:3] == ["Total of 3", "", "$0.90"]
