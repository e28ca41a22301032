"""The operator's commands, run in process on a database of their own."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.cli import marketplace as cli
from app.marketplace.settings import settings_from_environment
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import hit_params

PASSWORD = "a long enough password"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("MARKETPLACE_DATABASE_URL", f"sqlite:///{tmp_path / 'marketplace.db'}")
    monkeypatch.setenv("MARKETPLACE_SECRET_KEY", "0123456789abcdef0123456789abcdef")
    monkeypatch.setenv("MARKETPLACE_SITE_URL", "http://127.0.0.1:8000")
    assert run("init").exit_code == 0
    settings = settings_from_environment()
    opened = Marketplace(settings.database_url, settings=settings.engine_settings())
    yield opened
    opened.close()


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli.marketplace, list(arguments), input=stdin)


def run_json(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def requester_id(engine: Marketplace) -> str:
    made = engine.create_requester("Lab", email="lab@example.org").requester_id
    engine.top_up(made, Decimal(100))
    return made


@pytest.fixture
def worker_id(engine: Marketplace) -> str:
    return engine.register_worker(engine.create_invitation(), "ada", PASSWORD).worker_id


def rejected(engine: Marketplace, requester_id: str, worker_id: str) -> str:
    hit = engine.call(requester_id, "CreateHIT", hit_params())["HIT"]
    assignment_id = engine.accept(worker_id, hit["HITId"]).assignment_id
    engine.external_submit(assignment_id, {"a": ["1"]})
    reject = {"AssignmentId": assignment_id, "RequesterFeedback": "Too short."}
    engine.call(requester_id, "RejectAssignment", reject)
    return assignment_id


def test_operators_are_added_listed_and_closed(engine: Marketplace) -> None:
    added = run("operator", "add", "olga", "--password-stdin", stdin=f"{PASSWORD}\n")
    assert "http://127.0.0.1:8000/operator/sign-in" in added.output
    asked = run("operator", "password", "olga", stdin="another long password\nanother long password\n")
    assert asked.exit_code == 0, asked.output
    assert engine.authenticate_operator("olga", "another long password").name == "olga"
    short = run("operator", "add", "otto", "--password-stdin", stdin="short\n")
    assert short.exit_code == 1
    assert "12 to 256 characters" in short.output

    assert run("operator", "close", "olga").exit_code == 0

    (found,) = run_json("operator", "list")
    assert found["name"] == "olga"
    assert found["closed_at"] is not None
    assert "password" not in found
    assert "closed" in run("operator", "list").output
    assert run("operator", "close", "nobody").exit_code == 1


def test_workers_are_found_and_described(engine: Marketplace, worker_id: str) -> None:
    assert run("worker", "master", "ada", "on").output == "ada is a master.\n"
    assert run("worker", "adult", worker_id, "on").exit_code == 0
    assert run("worker", "locale", "ada", "US", "CA").output == "ada lives in US-CA.\n"
    assert run("worker", "disable", "ada").exit_code == 0

    shown = run_json("worker", "show", "ada")
    assert shown["worker"] | {"is_master": True, "is_adult": True, "country": "US"} == shown["worker"]
    assert shown["disabled_at"] is not None
    assert shown["payouts"]["earned"] == "0.00"
    assert "disabled" in run("worker", "list", "--query", "AD").output
    assert run_json("worker", "list")["total"] == 1
    assert run("worker", "enable", "ada").exit_code == 0
    assert run("worker", "locale", "ada").output == "ada has no locale.\n"
    assert run("worker", "locale", "ada", "Norway").exit_code == 1
    assert "There is no worker “zoe”" in run("worker", "show", "zoe").output


def test_requesters_are_disabled_and_enabled(engine: Marketplace, requester_id: str) -> None:
    assert run("requester", "disable", "Lab").exit_code == 0
    assert engine.requester(requester_id).is_disabled
    assert run("requester", "enable", "lab@example.org").exit_code == 0
    assert not engine.requester(requester_id).is_disabled


def test_a_dispute_is_planned_and_overturned(engine: Marketplace, requester_id: str, worker_id: str) -> None:
    assignment_id = rejected(engine, requester_id, worker_id)
    dispute_id = engine.open_dispute(worker_id, assignment_id, "It was [fine].\x1b[2J").dispute_id
    assert assignment_id in run("dispute", "list").output
    assert "It was [fine].\\x1b[2J" in run("dispute", "show", dispute_id).output

    plan = run("dispute", "overturn", dispute_id, "Yes.", "--plan")
    assert "$0.36 (reward $0.30 and fee) would be taken from Lab" in plan.output
    assert engine.dispute(dispute_id).state == "Open"
    done = run_json("dispute", "overturn", dispute_id, "Yes.")

    assert (done["state"], done["cost"]) == ("Overturned", "0.36")
    again = run("dispute", "uphold", dispute_id, "No.")
    assert again.exit_code == 1
    assert "was overturned by" in again.output
    assert run_json("dispute", "list", "--state", "all")["total"] == 1


def test_a_rejection_is_upheld(engine: Marketplace, requester_id: str, worker_id: str) -> None:
    dispute_id = engine.open_dispute(worker_id, rejected(engine, requester_id, worker_id), "Unfair.").dispute_id

    assert "The rejection is upheld." in run("dispute", "uphold", dispute_id, "It was empty.").output
    assert "It was empty." in run("dispute", "show", dispute_id).output


def test_a_payout_run_from_plan_to_paid(engine: Marketplace, requester_id: str, worker_id: str, tmp_path: Path) -> None:
    assignment_id = rejected(engine, requester_id, worker_id)
    approve = {"AssignmentId": assignment_id, "OverrideRejection": True}
    engine.call(requester_id, "ApproveAssignment", approve)
    engine.set_payout_details(worker_id, PASSWORD, "=HYPERLINK(1)")
    assert "$0.30 is owed to 1 workers" in run("payout-run", "draft", "--plan").output
    assert engine.payout_runs().total == 0

    run_id = run_json("payout-run", "draft")["run_id"]
    out = tmp_path / "run.csv"
    assert run("payout-run", "csv", run_id, "--out", str(out)).exit_code == 0

    (row,) = csv.DictReader(out.read_text(encoding="utf-8").splitlines())
    assert (row["worker_id"], row["amount_cents"], row["pay_to"]) == (worker_id, "30", "'=HYPERLINK(1)")
    assert out.stat().st_mode & 0o077 == 0
    assert run("payout-run", "csv", run_id).stdout.startswith("run_id,worker_id")
    assert "$0.30" in run("payout-run", "show", run_id).output
    assert run_json("payout-run", "show", run_id)["lines"]["entries"][0]["rewards_cents"] == 30
    assert run_json("payout-run", "paid", run_id, "bank 7")["state"] == "Paid"
    assert run("payout-run", "cancel", run_id).exit_code == 1
    assert "bank 7" in run("payout-run", "list").output
    nothing = run("payout-run", "draft")
    assert nothing.exit_code == 1
    assert "left to pay out" in nothing.output


def test_a_run_is_cancelled_and_bounded_by_a_time(engine: Marketplace, requester_id: str, worker_id: str) -> None:
    assignment_id = rejected(engine, requester_id, worker_id)
    approve = {"AssignmentId": assignment_id, "OverrideRejection": True}
    engine.call(requester_id, "ApproveAssignment", approve)

    assert run("payout-run", "draft", "--until", "2020-01-01").exit_code == 1
    assert run("payout-run", "draft", "--until", "soon").exit_code == 2
    run_id = run_json("payout-run", "draft")["run_id"]

    assert run_json("payout-run", "cancel", run_id)["state"] == "Cancelled"
    assert run_json("payout-run", "draft", "--plan")["total"] == "0.30"


def test_reports_are_listed_and_closed_and_a_hit_taken_down(
    engine: Marketplace, requester_id: str, worker_id: str
) -> None:
    hit = engine.call(requester_id, "CreateHIT", hit_params())["HIT"]
    report_id = engine.report_hit(worker_id, hit["HITId"], "personal-data", "It asks for my [password].")
    listed = run("report", "list").output
    assert "my [password]" in listed
    assert "personal data" in listed

    assert run("take-down", hit["HITId"], "No passwords.", "--type").output == "1 HIT is taken down.\n"
    assert run("report", "close", report_id, "Thank you.").exit_code == 0

    assert run_json("report", "list")["total"] == 0
    assert run_json("report", "list", "--all")["reports"][0]["note"] == "Thank you."
    assert engine.any_hit(hit["HITId"]).taken_down_at is not None
    assert run("take-down", "3NONE", "x").exit_code == 1


def test_the_log_says_who_did_what(engine: Marketplace, requester_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "root-of-all")
    assert run("top-up", "Lab", "5.00", "--note", "invoice [7]").exit_code == 0
    assert run("key", "create", "Lab").exit_code == 0

    lines = run_json("audit", "--about", requester_id)["entries"]

    assert [(one["action"], one["actor"], one["actor_kind"]) for one in lines] == [
        ("access key created", "root-of-all", "command line"),
        ("top-up", "root-of-all", "command line"),
    ]
    assert "invoice [7]" in run("audit", "--action", "top-up").output
    assert "Nothing in the log." in run("audit", "--about", "nobody").output


def test_what_opens_an_account_is_in_the_log(engine: Marketplace, requester_id: str, worker_id: str) -> None:
    for command in (
        ("invite", "--count", "3", "--note", "course"),
        ("requester", "create", "Other"),
        ("requester", "webhook-secret", "Lab"),
        ("reset-link", "ada"),
        ("reset-link", "Lab", "--requester"),
    ):
        assert run(*command).exit_code == 0, command

    found = [(one["action"], one["subject_id"]) for one in run_json("audit")["entries"]]

    assert found[0] == ("reset link made", requester_id)
    assert found[1] == ("reset link made", worker_id)
    assert found[2] == ("webhook secret shown", requester_id)
    assert [action for action, _subject in found[3:5]] == ["requester created", "invitations made"]


def test_long_lists_say_how_to_go_on(engine: Marketplace) -> None:
    from hits.marketplace.console_views import Actor

    for number in range(51):
        engine.record_act("thing done", "worker", f"A{number}", by=Actor.operator("olga"))

    result = run("audit")

    assert "--page 2" in result.output
    assert len(run_json("audit", "--page", "2")["entries"]) == 1
