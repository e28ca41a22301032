"""The finance pages: figures that lead to their tables, the month, each payout with reason and postings."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.finance.figures import GROUPS
from app.models import AuditEntry, ReconcileRun, StaffUser
from app.operations.settle import settle
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Assignment, Worker
from hits.money import display, from_cents, usd
from hits.states import AssignmentState
from payments.closed_months import MonthClose
from payments.ledger import record_reward
from payments.models import LedgerTransaction, Payout, PayoutApproval, PayoutState, Posting
from payments.planning import plan_bonuses
from tests import factories
from tests.app.conftest import STAFF_PASSWORD, sign_in
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


def posted(session_factory: sessionmaker[Session], *names: str) -> str:
    """Return what accounts of these names hold, posting by posting, as a page shows it."""
    with session_factory() as session:
        lines = session.execute(select(Posting.account, Posting.cents)).all()
    return display(from_cents(sum(cents for account, cents in lines if account.partition(":")[0] in names)))


def test_where_the_money_stands_comes_first_and_every_figure_is_a_sum_of_postings(
    books: BonusDesk, finance: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    page = soup(finance, "/finance")

    spent = posted(session_factory, "rewards", "reward_fees", "bonuses", "bonus_fees")
    assert list(figures(page).items())[:5] == [
        ("spent: rewards, bonuses, fees", spent),
        ("reserved for open batches", posted(session_factory, "reserved")),
        ("promised in bonuses", "$1.20"),
        ("paid in bonuses", posted(session_factory, "bonuses")),
        ("cost of one verified fooling example, 5 so far", "$0.43"),
    ]
    assert spent == "$2.16"
    by_round, by_task = table(page, "All money by round"), table(page, "All money by task")
    cells = [
        *(posted(session_factory, name) for name in ("rewards", "bonuses")),
        posted(session_factory, "reward_fees", "bonus_fees"),
        spent,
        "$1.20",
        *(posted(session_factory, name) for name in ("promised", "reserved")),
        "5",
        "$0.43",
    ]
    assert by_round[1:] == [["sentiment/1", *cells], ["Total", *cells]]
    assert by_task[1:] == [["sentiment", *cells], ["Total", *cells]]
    assert table(page, "Paid by month")[1:] == [["2026-11", "$1.20", "$0.60", "$0.36", spent]]


def posted_by_state(session_factory: sessionmaker[Session], account: str, *states: PayoutState) -> str:
    """Return what the ledger holds on one account for the payouts in these states, posting by posting."""
    with session_factory() as session:
        names = set(session.scalars(select(Payout.reference).where(Payout.state.in_(states))))
        lines = session.execute(
            select(LedgerTransaction.reference, Posting.account, Posting.cents).join(LedgerTransaction.postings)
        ).all()
    return display(
        from_cents(sum(cents for name, of, cents in lines if name in names and of.partition(":")[0] == account))
    )


def test_every_figure_by_state_is_a_sum_of_postings(
    books: BonusDesk, finance: FlaskClient, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    # Without it the bonus of $0.50 that nobody has planned yet is owed, and stands in no book.
    with session_factory() as session:
        plan_bonuses(session, clock.now())
        session.commit()

    shown = figures(soup(finance, "/finance"))

    by_words = {name.partition(",")[0]: amount for name, amount in shown.items()}
    for words, states in GROUPS.values():
        account = "bonuses" if words in ("sent", "confirmed") else "promised"
        assert by_words[words] == posted_by_state(session_factory, account, *states), words
    assert [by_words[words] for words in ("owed", "confirmed", "doubtful")] == ["$0.50", "$0.60", "$0.30"]


def test_payouts_stand_by_state_and_each_figure_leads_to_its_table(books: BonusDesk, finance: FlaskClient) -> None:
    page = soup(finance, "/finance")

    assert list(figures(page).items())[5:] == [
        ("owed, 1 payout", "$0.50"),
        ("sent, 0 payouts", "$0.00"),
        ("confirmed, 2 payouts", "$0.60"),
        ("doubtful, 1 payout", "$0.30"),
        ("failed, 1 payout", "$0.30"),
        ("without budget, 0 payouts", "$0.00"),
    ]
    assert "could add $0.50" in page.get_text()
    for link in page.select("main a"):
        with finance.get(str(link["href"])) as response:
            assert response.status_code == 200, link["href"]


def test_the_month_stands_by_round_and_by_worker_with_totals_at_the_foot(
    books: BonusDesk, finance: FlaskClient
) -> None:
    page = soup(finance, "/finance/month?month=2026-11")

    by_round = table(page, "November 2026 by round")
    by_worker = table(page, "November 2026 by worker")
    cells = ["4", "$1.20", "2", "$1.20", "$0.60", "$0.36", "$2.16"]
    assert by_round[1:] == [["sentiment/1", *cells], ["Total", *cells]]
    assert by_worker[-1] == ["Total", *cells]
    assert len(by_worker) == 6
    assert all(row[0].startswith("w-") for row in by_worker[1:-1])
    for link in page.select("main a"):
        with finance.get(str(link["href"])) as response:
            assert response.status_code == 200, link["href"]


def test_another_month_is_empty_and_says_what_will_appear(books: BonusDesk, finance: FlaskClient) -> None:
    page = soup(finance, "/finance/month?month=2026-10")

    assert "Nothing was paid or promised in October 2026" in page.get_text()


def test_the_csv_holds_the_same_figures_as_plain_numbers(books: BonusDesk, finance: FlaskClient) -> None:
    response = finance.get("/finance/report.csv?month=2026-11")

    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert "filename=dynahit-2026-11.csv" in response.headers["Content-Disposition"]
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


def pages(rows: Callable[[type[Any]], list[Any]]) -> list[str]:
    """Every page and download of finance, for what there is."""
    return [
        "/finance",
        "/finance/month",
        *(f"/finance/report.{kind}" for kind in ("csv", "xlsx", "parquet")),
        *(f"/finance/ledger.{kind}" for kind in ("csv", "xlsx", "parquet", "beancount")),
        *(f"/finance/plots/{name}.svg" for name in ("spent-by-month", "promised-and-paid", "cost-per-verified")),
        "/finance/payouts/all",
        *(f"/finance/payout/{row.reference}" for row in rows(Payout)),
        *(f"/finance/workers/{row.pseudonym}" for row in rows(Worker)),
        *(f"/finance/workers/{row.pseudonym}/statement.csv" for row in rows(Worker)[:1]),
        "/finance/approvals",
        "/finance/reconcile",
        "/finance/audit",
        "/finance/month/2026-11/close",
    ]


def test_no_page_names_a_worker_s_id(
    books: BonusDesk, finance: FlaskClient, rows: Callable[[type[Any]], list[Any]]
) -> None:
    ids = [row.mturk_worker_id.encode() for row in rows(Worker)]

    contents = b""
    for path in pages(rows):
        contents += finance.get(path).data

    assert len(contents) > 50_000
    assert not [one for one in ids if one in contents]


def test_a_requester_without_the_role_is_refused_and_that_is_kept_and_logged(
    books: BonusDesk,
    client: FlaskClient,
    staff: Callable[..., StaffUser],
    rows: Callable[[type[Any]], list[Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    staff("robin", ("requester",))
    sign_in(client, "robin")
    paths = [*pages(rows), "/finance/payout/DH-X"]

    for path in paths:
        assert client.get(path).status_code == 403, path
    for path in ("/finance/approvals", "/finance/month/2026-11/close"):
        assert client.post(path, data={"payout": "DH-X"}).status_code == 403, path

    entries = rows(AuditEntry)
    assert len(entries) == len(paths) + 2
    assert {(entry.staff_name, entry.action) for entry in entries} == {("robin", "access.refused")}
    assert "page finance.worker" in {entry.subject for entry in entries}
    assert "robin was refused: access.refused, page finance.approve." in caplog.text


def test_nobody_sees_it_without_signing_in_a_worker_with_a_hit_s_token_neither(
    books: BonusDesk,
    client: FlaskClient,
    token: str,
    rows: Callable[[type[Any]], list[Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for path in pages(rows):
        response = client.get(path, query_string={"token": token})

        assert response.status_code == 302, path
        assert "/staff/sign-in" in response.headers["Location"]
    assert "GET finance.worker was asked for by somebody who is not signed in." in caplog.text


def test_a_wrong_address_is_answered_with_what_is_wrong(finance: FlaskClient) -> None:
    for path, status, words in (
        ("/finance/month?month=november", 422, "&#39;november&#39; is not a month"),
        ("/finance/month?month=2026-13", 422, "for example 2026-11"),
        ("/finance/report.csv?month=0000-01", 422, "is not a month"),
        ("/finance/payouts/nothing", 404, "The tables are all, owed"),
        ("/finance/payouts/all?page=7", 404, "There is no page 7"),
        ("/finance/payouts/all?page=x", 404, "this table has 1"),
        ("/finance/payout/DH-UNKNOWN", 404, "DH-UNKNOWN"),
        ("/finance/payout/DH%00X", 404, "There is no payout"),
        ("/finance/plots/nothing.svg", 404, "The pictures are spent-by-month"),
        ("/finance/report.docx", 404, "The kinds are csv, xlsx, parquet"),
        ("/finance/ledger.docx", 404, "The kinds are csv, xlsx, parquet"),
        ("/finance/workers/w-unknown", 404, "There is no worker"),
        ("/finance/workers/w%00", 404, "There is no worker"),
        ("/finance/audit?page=7", 404, "There is no page 7"),
        ("/finance/audit?who=%00", 422, "NUL"),
        ("/finance/month/2026-10/close", 409, "no month that is over is open"),
        ("/finance/month/x/close", 422, "is not a month"),
        ("/finance/month?month=9999-12", 422, "is not a month"),
    ):
        response = finance.get(path)

        assert response.status_code == status, path
        assert words in response.text
        assert "HIT" not in BeautifulSoup(response.text, "lxml").select_one("main").get_text()  # type: ignore[union-attr]


def test_an_empty_book_says_what_will_appear(finance: FlaskClient) -> None:
    page = soup(finance, "/finance")

    assert set(figures(page).values()) == {"$0.00", "none yet"}
    assert "A round appears here when" in page.get_text()
    assert "Rewards appear here when" in soup(finance, "/finance/month").get_text()
    assert "a day after the first booking" in soup(finance, "/finance/reconcile").get_text()
    assert "Set DYNAHIT_APPROVAL_LIMIT" in soup(finance, "/finance/approvals").get_text()
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


def test_the_pictures_are_plain_files_that_our_content_policy_lets_through(
    books: BonusDesk, finance: FlaskClient
) -> None:
    shown = [str(image["src"]) for image in soup(finance, "/finance").select("figure.plot img[alt]")]

    assert len(shown) == 3
    for path in shown:
        response = finance.get(path)
        assert response.headers["Content-Type"] == "image/svg+xml"
        assert response.text.rstrip().endswith("</svg>")
        assert "style" not in response.text
        assert "<script" not in response.text


def test_a_worker_s_statement_adds_up_and_can_be_taken_along(
    books: BonusDesk, finance: FlaskClient, rows: Callable[[type[Any]], list[Any]]
) -> None:
    paid = next(row for row in rows(Payout) if row.state is PayoutState.CONFIRMED)
    with_worker = {row.id: row.pseudonym for row in rows(Worker)}
    path = f"/finance/workers/{with_worker[paid.worker_id]}"

    page = soup(finance, path)
    lines = list(csv.DictReader(io.StringIO(finance.get(f"{path}/statement.csv?bom=1").text.removeprefix("\ufeff"))))

    assert figures(page) == {"paid: rewards and bonuses": "$0.60", "owed in bonuses": "$0.00"}
    shown = table(page, "What was promised and paid, the newest first")
    assert [row[1] for row in shown[1:-1]] == ["Reward paid", "Bonus paid", "Bonus owed"]
    assert paid.reason in page.get_text()
    assert shown[-1] == ["Total of 3", "$0.60", "$0.00"]
    assert [sum(Decimal(line[name]) for line in lines) for name in ("paid", "owed")] == [usd("0.60"), 0]


def token_of(client: FlaskClient, path: str) -> str:
    field = soup(client, path).select_one("main form[method=post] input[name=csrf_token]")
    assert field is not None
    return str(field["value"])


CLOSE = "/finance/month/2026-11/close"


def confirm(client: FlaskClient, password: str = STAFF_PASSWORD) -> int:
    data = {"csrf_token": token_of(client, f"/staff/confirm?next={CLOSE}"), "password": password, "next": CLOSE}
    return client.post("/staff/confirm", data=data).status_code


def test_a_month_is_closed_with_a_fresh_password_once_and_its_page_shows_what_was_frozen(
    books: BonusDesk, finance: FlaskClient, clock: FixedClock, rows: Callable[[type[Any]], list[Any]]
) -> None:
    clock.advance(timedelta(days=20))

    stale = finance.get(CLOSE)
    assert (stale.status_code, stale.headers["Location"]) == (303, f"/staff/confirm?next={CLOSE}")
    assert confirm(finance, "not the password") == 403
    assert finance.get(CLOSE).status_code == 303
    assert confirm(finance) == 302
    data = {"csrf_token": token_of(finance, CLOSE)}
    closed = finance.post(CLOSE, data=data)
    replayed = finance.post(CLOSE, data=data)

    assert (closed.status_code, replayed.status_code) == (302, 409)
    assert "November 2026 is closed already" in replayed.text
    [closing] = rows(MonthClose)
    page = soup(finance, "/finance/month?month=2026-11")
    assert closing.sha256 in page.get_text()
    assert table(page, "November 2026 by round")[-1] == [
        "Total", "4", "$1.20", "2", "$1.20", "$0.60", "$0.36", "$2.16",
    ]  # fmt: skip
    assert hashlib.sha256(finance.get("/finance/ledger.csv?month=2026-11").data).hexdigest() == closing.sha256
    assert "was changed after" not in page.get_text()
    assert [entry.action for entry in rows(AuditEntry)] == [
        "password.refused",
        "month.close",
        "month.close.refused",
    ]


def test_a_stale_password_closes_nothing_and_leads_back_to_the_question(
    books: BonusDesk, finance: FlaskClient, clock: FixedClock, rows: Callable[[type[Any]], list[Any]]
) -> None:
    clock.advance(timedelta(days=20))
    confirm(finance)
    data = {"csrf_token": token_of(finance, CLOSE)}
    clock.advance(timedelta(minutes=11))

    response = finance.post(CLOSE, data=data)

    assert (response.status_code, response.headers["Location"]) == (303, f"/staff/confirm?next={CLOSE}")
    assert "Nothing was done yet" in finance.get(response.headers["Location"]).text
    assert rows(MonthClose) == []


def test_a_form_from_elsewhere_is_refused_and_kept(
    books: BonusDesk, finance: FlaskClient, rows: Callable[[type[Any]], list[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    for path in (CLOSE, "/finance/approvals"):
        response = finance.post(path, data={"csrf_token": "forged", "payout": "DH-X"})
        assert response.status_code == 400

    assert [(entry.staff_name, entry.action) for entry in rows(AuditEntry)] == [("kim", "form.refused")] * 2
    assert "kim was refused: form.refused, page finance.approve." in caplog.text


@pytest.fixture
def above_the_limit(
    app: Flask, session_factory: sessionmaker[Session], clock: FixedClock, settings: Settings
) -> list[str]:
    """Two payouts of 0.30 that wait for two people each, since the limit is 0.20; their references."""
    settings.approval_limit = usd("0.20")
    with session_factory() as session:
        batch = factories.make_batch(session, bonus=usd("0.30"))
        for _ in range(2):
            verified_example(session, batch=batch)
        references = [row.reference for row in plan_bonuses(session, clock.now())]
        session.commit()
    return references


def approval_form(client: FlaskClient, *references: str) -> dict[str, Any]:
    page = soup(client, "/finance/approvals")
    hidden = {str(field["name"]): str(field["value"]) for field in page.select("main form input[type=hidden]")}
    return {**hidden, "payout": list(references)}


def test_two_people_approve_what_they_see_and_a_replay_is_refused_and_kept(
    above_the_limit: list[str],
    app: Flask,
    finance: FlaskClient,
    staff: Callable[..., StaffUser],
    rows: Callable[[type[Any]], list[Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, _ = above_the_limit
    shown = table(soup(finance, "/finance/approvals"), "Payouts that wait for an approval")
    form = approval_form(finance, first)

    assert finance.post("/finance/approvals", data=form).status_code == 303
    replayed = finance.post("/finance/approvals", data=form)
    assert {row.state for row in rows(Payout)} == {PayoutState.PLANNED}
    staff("robin", ("finance",))
    other = app.test_client()
    sign_in(other, "robin")
    assert other.post("/finance/approvals", data=approval_form(other, first)).status_code == 303

    assert shown[-1][:3] == ["Total of 2", "$0.60", "$0.12"]
    assert replayed.status_code == 409
    assert "A second approval must come from another person" in replayed.text
    assert {row.reference: row.state for row in rows(Payout)} == {
        first: PayoutState.APPROVED,
        above_the_limit[1]: PayoutState.PLANNED,
    }
    assert [(entry.staff_name, entry.action) for entry in rows(AuditEntry)] == [
        ("kim", "payout.approve"),
        ("kim", "payout.approve.refused"),
        ("robin", "payout.approve"),
    ]
    assert "An approval of payout" in caplog.text


def test_an_approval_of_something_else_than_was_shown_is_refused(
    above_the_limit: list[str],
    finance: FlaskClient,
    session_factory: sessionmaker[Session],
    rows: Callable[[type[Any]], list[Any]],
) -> None:
    first, second = above_the_limit
    form = approval_form(finance, first)
    forged = {**form, f"digest-{first}": form[f"digest-{second}"]}
    nothing = finance.post("/finance/approvals", data={"csrf_token": form["csrf_token"]})
    unknown = finance.post("/finance/approvals", data={**form, "payout": "DH-UNKNOWN"})
    no_text = finance.post("/finance/approvals", data={**form, "payout": f"{first}\0"})
    swapped = finance.post("/finance/approvals", data=forged)
    with session_factory() as session:
        session.query(Payout).filter_by(reference=first).one().amount = usd("9.00")
        session.commit()
    changed = finance.post("/finance/approvals", data=form)

    assert [one.status_code for one in (nothing, unknown, no_text, swapped, changed)] == [422, 409, 422, 409, 409]
    assert "it is $9.00 now" in changed.text
    assert rows(PayoutApproval) == []
    assert [entry.action for entry in rows(AuditEntry)] == ["payout.approve.refused"] * 3


def test_the_last_look_at_the_books_stands_with_each_finding_and_its_command(
    finance: FlaskClient, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    finding = {"kind": "missing", "subject": "payout DH-1", "what": "<b>gone</b>", "todo": "Run `dynahit x`."}
    with session_factory() as session:
        for number, found in enumerate(([], [finding])):
            session.add(
                ReconcileRun(
                    at=clock.now(), endpoint="http://m", clean=not found, summary=f"run {number}", findings=found
                )
            )
        session.commit()

    page = soup(finance, "/finance/reconcile")

    assert table(page, "What was found")[1:] == [["missing", "payout DH-1", "<b>gone</b>", "Rundynahit x."]]
    assert "run 0" not in page.get_text()
    assert "The books don't agree with the marketplace" in soup(finance, "/finance").get_text()


def test_the_audit_trail_is_read_by_person_and_by_deed_and_refusals_stand_out(
    finance: FlaskClient, session_factory: sessionmaker[Session], clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.finance.books.PAGE_SIZE", 2)
    with session_factory() as session:
        for name, action in (("kim", "month.close"), ("kim", "access.refused"), ("robin", "flag.uphold")):
            session.add(
                AuditEntry(at=clock.now(), staff_name=name, action=action, subject=SCRIPT, detail={"the_why": SCRIPT})
            )
        session.commit()

    everything = soup(finance, "/finance/audit")
    by_kim = table(soup(finance, "/finance/audit?who=kim"), "What members of staff did, the newest first")

    assert "Page 1 of 2" in everything.get_text()
    assert [row[1:3] for row in by_kim[1:]] == [["kim", "access.refused"], ["kim", "month.close"]]
    assert by_kim[1][3:] == [SCRIPT, f"the why:{SCRIPT}"]
    refusal = soup(finance, "/finance/audit?action=access.refused").select_one("td .status-bad")
    assert refusal is not None
    assert finance.get("/finance/audit?page=2").status_code == 200
