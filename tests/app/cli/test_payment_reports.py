"""``dynahit payments report | ledger | month | reconcile | mend``: files that read back, plans that change nothing."""

from __future__ import annotations

import csv
import hashlib
import json
from datetime import timedelta
from pathlib import Path

import openpyxl
import pytest
from click.testing import Result
from flask import Flask
from pyarrow import parquet
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.cli.payments import group
from app.models import AuditEntry
from hits.clock import FixedClock
from hits.money import from_cents, usd
from payments.closed_months import MonthClose
from payments.ledger import record_deposit, reverse
from payments.models import LedgerTransaction, Posting
from tests.app.cli.test_payments import market, run
from tests.market import Market
from tests.payments.year import make_year

__all__ = ["market"]

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def year(app: Flask, session_factory: sessionmaker[Session]) -> Flask:
    """A service whose books hold a year, of which November is the current month."""
    with session_factory() as session:
        make_year(session, events=120)
        session.commit()
    return app


def sums(session_factory: sessionmaker[Session], *names: str) -> str:
    with session_factory() as session:
        rows = session.execute(select(Posting.account, func.sum(Posting.cents)).group_by(Posting.account)).all()
    return str(from_cents(sum(int(cents) for account, cents in rows if account.partition(":")[0] in names)))


def test_a_month_is_written_as_csv_xlsx_and_parquet_with_the_same_figures(year: Flask, tmp_path: Path) -> None:
    paths = [tmp_path / f"report.{kind}" for kind in ("csv", "xlsx", "parquet")]

    result = run(year, "report", "--month", "2026-03", "--bom", *(f"--{path.suffix[1:]}={path}" for path in paths))

    assert result.exit_code == 0, result.output
    assert paths[0].read_bytes().startswith(b"\xef\xbb\xbfmonth,round,worker")
    rows = list(csv.DictReader(paths[0].read_text(encoding="utf-8-sig").splitlines()))
    sheet = list(openpyxl.load_workbook(paths[1]).worksheets[0].iter_rows(min_row=2, values_only=True))
    table = parquet.read_table(paths[2]).to_pylist()
    totals = [sum(usd(row["total"]) for row in rows), sum(usd(str(row[-1])) for row in sheet)]
    assert totals == [sum(row["total"] for row in table)] * 2
    assert totals[0] > 0
    assert f"{len(rows)} rows, by round and worker, are in {paths[2]}." in " ".join(result.output.split())


def test_the_ledger_is_written_whole_and_sums_to_zero(
    year: Flask, session_factory: sessionmaker[Session], tmp_path: Path
) -> None:
    result = run(
        year, "ledger", "--csv", str(tmp_path / "l.csv"), "--beancount", str(tmp_path / "l.beancount"),
        "--parquet", str(tmp_path / "l.parquet"),
    )  # fmt: skip

    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((tmp_path / "l.csv").read_text(encoding="utf-8").splitlines()))
    with session_factory() as session:
        assert len(rows) == session.scalar(select(func.count()).select_from(Posting))
        transactions = session.scalar(select(func.count()).select_from(LedgerTransaction))
    assert sum(int(row["amount"].replace(".", "")) for row in rows) == 0
    assert (tmp_path / "l.beancount").read_text(encoding="utf-8").count("\n  key: ") == transactions


def test_a_month_is_shown_then_closed_once_with_the_hash_of_its_file(
    year: Flask, clock: FixedClock, session_factory: sessionmaker[Session], tmp_path: Path
) -> None:
    plan = run(year, "month", "close", "2026-01", "--plan")
    early = json.loads(run(year, "month", "close", "2026-02", "--plan", "--json").stdout)
    closed = run(year, "month", "close", "2026-01", "--yes")
    again = run(year, "month", "close", "2026-01", "--yes")
    run(year, "ledger", "--month", "2026-01", "--csv", str(tmp_path / "january.csv"))

    assert "It can be closed now. This is a plan." in " ".join(plan.output.split())
    assert early["closable"] is False
    assert closed.exit_code == 0, closed.output
    assert hashlib.sha256((tmp_path / "january.csv").read_bytes()).hexdigest() in closed.output
    assert "January 2026 is closed already" in str(again.exception)
    assert "2026-01" in run(year, "month", "list").output
    [listed] = json.loads(run(year, "month", "list", "--json").stdout)
    assert listed["closed_by"] == "(command line)"
    assert "1 closed months are as they were closed." in run(year, "month", "check").output
    with session_factory() as session:
        assert session.scalar(select(func.count()).select_from(MonthClose)) == 1
        assert [entry.action for entry in session.scalars(select(AuditEntry))] == ["month.close"]


def test_closing_asks_first_and_nothing_happens_on_no(year: Flask, session_factory: sessionmaker[Session]) -> None:
    result = year.test_cli_runner().invoke(group, ["month", "close", "2026-01"], input="n\n")

    assert "Close January 2026 for good?" in result.output
    assert result.exit_code == 1
    with session_factory() as session:
        assert session.scalar(select(func.count()).select_from(MonthClose)) == 0


def test_a_finding_s_own_command_is_planned_done_and_clean(
    app: Flask, market: Market, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    with session_factory() as session:
        record_deposit(session, market.mturk.endpoint, usd("10000.00"), reference="x", now=clock.now())
        key = session.scalars(select(LedgerTransaction.key).where(LedgerTransaction.kind == "reward")).one()
        reverse(session, key, reason="by mistake", now=clock.now() + timedelta(seconds=1))
        session.commit()
    found = run(app, "reconcile")
    command = found.output.partition("`dynahit payments ")[2].partition("`")[0].split()

    plan = run(app, *command, "--plan")
    still = run(app, "reconcile")
    done: Result = run(app, *command, "--yes")

    assert found.exit_code == still.exit_code == 1
    assert "The reward of assignment" in plan.output
    assert done.exit_code == 0, done.output
    assert run(app, "reconcile").exit_code == 0
    assert "There is nothing to mend" in str(run(app, *command, "--yes").exception)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ledger",), "Name a file"),
        (("ledger", "--beancount", "x", "--month", "2026-01"), "the whole ledger"),
        (("report", "--bom"), "--bom is about a CSV file"),
        (("report", "--csv", "/nonexistent/x.csv"), "can't be written"),
        (("report", "--xlsx", "/nonexistent/x.xlsx"), "can't be written"),
        (("month", "close", "January"), "is not a month"),
        (("month", "close", "2026-01", "--json"), "--json asks nothing"),
        (("mend", "account", "--json"), "--json asks nothing"),
    ],
)
def test_what_can_not_be_done_says_why(app: Flask, arguments: tuple[str, ...], words: str) -> None:
    result = run(app, *arguments)

    assert result.exit_code != 0
    assert words in f"{result.output}{result.exception}"
