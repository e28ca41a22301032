"""``dynahit payments``: plans change nothing, settling asks first, reports and reconcile say what they found."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.cli.payments import group
from hits.clock import FixedClock
from hits.models import Assignment, Round, Worker
from hits.money import usd
from payments.ledger import record_reward
from payments.models import LedgerTransaction, Payout
from tests import factories
from tests.market import Market, failing
from tests.payments.builders import verified_example


@pytest.fixture
def market(clock: FixedClock, app: Flask, session_factory: sessionmaker[Session]) -> Market:
    """A marketplace where one writer has submitted one statement that the books call verified."""
    market = Market(clock)
    app.extensions["dynahit"].__dict__["mturk"] = market.mturk
    worker_id = market.person("writer")
    hit_type = market.mturk.create_hit_type(
        title="t", description="d", keywords="k", reward=usd("0.30"), assignment_seconds=600, auto_approval_seconds=600
    )
    hit_id = market.mturk.create_hit(
        hit_type,
        question_xml=(
            '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/'
            'ExternalQuestion.xsd"><ExternalURL>https://example.com/</ExternalURL><FrameHeight>0</FrameHeight>'
            "</ExternalQuestion>"
        ),
        max_assignments=1,
        lifetime_seconds=3600,
        annotation="a",
        request_token="t",
    ).hit_id
    assignment_id = market.accept(worker_id, hit_id)
    market.submit(assignment_id)
    market.mturk.approve(assignment_id)
    with session_factory() as session:
        batch = factories.make_batch(session, reward=usd("0.30"), bonus=usd("0.30"))
        example = verified_example(session, batch=batch, votes=2)
        example.attempt.answer = {"statement": "Fine [bold]soup[/bold], " + "said my aunt, " * 20}
        assignment = session.get_one(Assignment, example.attempt.assignment_id)
        assignment.mturk_assignment_id = assignment_id
        assignment.hit.mturk_hit_id = hit_id
        session.get_one(Worker, assignment.worker_id).mturk_worker_id = worker_id
        session.flush()
        record_reward(session, assignment, clock.now())
        session.commit()
    return market


def run(app: Flask, *arguments: str, answer: str | None = None) -> Result:
    return app.test_cli_runner(env={"COLUMNS": "80"}).invoke(group, list(arguments), input=answer)


def count(session_factory: sessionmaker[Session], table: type[Any]) -> int:
    with session_factory() as session:
        return int(session.scalar(select(func.count()).select_from(table)) or 0)


def bonuses(market: Market) -> int:
    return sum(len(list(market.mturk.bonus_payments(hit_id=hit["HITId"]))) for hit in market.hits())


def test_the_plan_shows_who_gets_what_for_which_statement_and_changes_nothing(
    app: Flask, market: Market, session_factory: sessionmaker[Session]
) -> None:
    before = count(session_factory, LedgerTransaction)

    result = run(app, "settle", "--plan")

    assert result.exit_code == 0, result.output
    for words in (
        "w-",
        "Fine [bold]soup[/bold]",
        "…",
        "writer: negative, model: positive",
        "2 negative",
        "$0.30",
        "$0.06",
        "$0.36",
    ):
        assert words in result.output
    assert "Nothing was changed" in result.output
    assert (count(session_factory, Payout), count(session_factory, LedgerTransaction)) == (0, before)
    assert bonuses(market) == 0


def test_the_plan_as_json_has_money_as_text(app: Flask, market: Market) -> None:
    plan = json.loads(run(app, "settle", "--plan", "--json").stdout)

    assert (plan["bonuses"], plan["fees"], plan["total"], plan["missing"]) == ("0.30", "0.06", "0.36", "0.00")
    [line] = plan["to_pay"]
    assert (line["worker"][:2], line["bonus"], line["state"]) == ("w-", "0.30", "planned")


def test_settling_asks_first_and_no_pays_nothing(app: Flask, market: Market) -> None:
    result = run(app, "settle", answer="n\n")

    assert result.exit_code == 1
    assert "Pay 1 bonus on" in result.output
    assert bonuses(market) == 0


def test_settling_pays_confirms_and_says_so(app: Flask, market: Market) -> None:
    result = run(app, "settle", answer="y\n")
    again = run(app, "settle", "--yes")

    assert result.exit_code == 0, result.output
    assert "Paid: 1 bonus, $0.30. Confirmed: 1." in result.output
    assert bonuses(market) == 1
    assert again.exit_code == 0
    assert "No bonus is waiting to be paid." in again.output


def test_what_became_due_after_the_question_is_not_paid_unasked(
    app: Flask, market: Market, session_factory: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(_question: str, **_: Any) -> bool:
        with session_factory() as session:
            verified_example(session, batch=factories.make_batch(session, round=session.get_one(Round, 1)))
            session.commit()
        return True

    monkeypatch.setattr("app.cli.payments.click.confirm", ask)

    result = run(app, "settle")

    assert result.exit_code == 0, result.output
    assert "Paid: 1 bonus, $0.30." in result.output
    assert "Still waiting: 1." in result.output


def test_json_without_plan_or_yes_is_refused_before_anything_is_paid(app: Flask, market: Market) -> None:
    result = run(app, "settle", "--json")

    assert result.exit_code == 2
    assert "--plan or --yes" in result.output
    assert bonuses(market) == 0


def test_a_doubtful_bonus_ends_with_1_and_what_to_do(app: Flask, market: Market) -> None:
    market.after = failing("SendBonus")

    result = run(app, "settle", "--yes")
    market.after = None
    again = run(app, "settle", "--yes", "--json")

    assert result.exit_code == 1
    assert "Doubtful: 1. Settle again" in result.output
    assert again.exit_code == 0
    assert json.loads(again.stdout)["settled"][0]["result"] == "found paid"
    assert bonuses(market) == 1


def test_the_report_adds_up_and_is_written_as_csv(app: Flask, market: Market, tmp_path: Path) -> None:
    run(app, "settle", "--yes")
    path = tmp_path / "november.csv"

    result = run(app, "report", "--month", "2026-11", "--csv", str(path))
    as_json = json.loads(run(app, "report", "--month", "2026-11", "--json").stdout)

    assert result.exit_code == 0, result.output
    for words in ("November 2026 by round", "November 2026 by worker", "sentiment/1", "$0.72", "owed $0.00"):
        assert words in result.output
    [row] = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert (row["rewards"], row["bonuses"], row["fees"], row["total"]) == ("0.30", "0.30", "0.12", "0.72")
    assert as_json["totals"]["total"] == "0.72"
    assert as_json["by_round"]["sentiment/1"]["bonuses_promised"] == "0.30"
    assert as_json["now"]["confirmed"] == {"count": 1, "amount": "0.30"}


def test_a_report_of_no_month_or_into_no_folder_is_refused_with_the_reason(
    app: Flask, market: Market, tmp_path: Path
) -> None:
    month = run(app, "report", "--month", "november")
    folder = run(app, "report", "--csv", str(tmp_path / "missing" / "x.csv"))

    assert "'november' is not a month" in str(month.exception)
    assert "No such file or directory. Choose another file." in str(folder.exception)


def test_the_status_counts_by_state_and_says_what_to_do(app: Flask, market: Market) -> None:
    before = run(app, "status")
    run(app, "settle", "--yes")
    after = json.loads(run(app, "status", "--json").stdout)

    assert "`dynahit payments settle` pays what is owed" in before.output
    assert after["confirmed"] == {"count": 1, "amount": "0.30"}
    assert after["verified_not_planned_yet"] == {"count": 0, "amount": "0.00"}


def test_clean_books_reconcile_with_one_line(app: Flask, market: Market) -> None:
    run(app, "settle", "--yes")
    run(app, "deposit", "10000.00", "--reference", "play money")

    result = run(app, "reconcile")

    assert result.exit_code == 0, result.output
    assert result.output.count("\n") == 1
    assert "The books agree with the marketplace: 1 rewards of $0.30, 1 bonuses of $0.30, balance" in result.output


def test_books_that_differ_print_each_finding_and_end_with_1(app: Flask, market: Market) -> None:
    run(app, "deposit", "10001.00", "--reference", "a mistake")

    result = run(app, "reconcile")
    as_json = run(app, "reconcile", "--json")

    assert result.exit_code == as_json.exit_code == 1
    assert "different: account: holds $1.00 less than the books say." in result.output
    assert json.loads(as_json.stdout)["findings"][0]["kind"] == "different"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("0.001", "--reference", "x"), "fraction of a cent"),
        (("-5", "--reference", "x"), "No such option"),
        (("0", "--reference", "x"), "is none"),
        (("ten", "--reference", "x"), "not an amount of money"),
        (("5.00", "--reference", ""), "1 to 80 are possible"),
    ],
)
def test_a_deposit_that_is_none_is_refused(
    app: Flask,
    market: Market,
    session_factory: sessionmaker[Session],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    before = count(session_factory, LedgerTransaction)

    result = run(app, "deposit", *arguments)

    assert words in f"{result.output}{result.exception}"
    assert result.exit_code != 0
    assert count(session_factory, LedgerTransaction) == before


def test_a_deposit_is_booked_once_for_each_reference(
    app: Flask, market: Market, session_factory: sessionmaker[Session]
) -> None:
    planned = run(app, "deposit", "5.00", "--reference", "invoice 7", "--plan")
    with session_factory() as session:
        deposits = select(LedgerTransaction.key).where(LedgerTransaction.key.startswith("deposit:"))
        assert session.scalars(deposits).all() == []
    done = run(app, "deposit", "5.00", "--reference", "invoice 7", "--json")
    again = run(app, "deposit", "5.00", "--reference", "invoice 7")
    other = run(app, "deposit", "6.00", "--reference", "invoice 7")

    assert "Nothing was changed" in planned.output
    assert (json.loads(done.output)["amount"], json.loads(done.output)["booked"]) == ("5.00", True)
    assert again.exit_code == 0
    assert "already booked" in str(other.exception)
    with session_factory() as session:
        assert session.scalars(deposits).all() == ["deposit:invoice 7"]
