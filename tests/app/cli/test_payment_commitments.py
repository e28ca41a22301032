"""``dynahit payments plan | approve | compensate | budget``: plans change nothing, nobody is let by unasked."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.cli.payments import group
from app.models import AuditEntry, StaffUser
from hits.clock import FixedClock
from hits.models import Assignment
from hits.money import usd
from hits.states import AssignmentState
from payments.models import Budget, Payout, PayoutApproval, PayoutState
from tests import factories
from tests.app.conftest import STAFF_PASSWORD
from tests.market import Market
from tests.payments.builders import verified_example

Rows = Callable[[type[Any]], list[Any]]


@pytest.fixture
def market(clock: FixedClock, app: Flask) -> Market:
    """An empty marketplace; above $1.00 two people are asked."""
    market = Market(clock)
    app.extensions["dynahit"].__dict__["mturk"] = market.mturk
    app.extensions["dynahit"].settings.approval_limit = Decimal("1.00")
    return market


@pytest.fixture
def owed(session_factory: sessionmaker[Session], market: Market, staff: Callable[..., StaffUser]) -> None:
    """Bonuses of $5.00 and $0.50 that are owed; ann and ben may give their word for the large one, cy may not."""
    with session_factory() as session:
        large = factories.make_batch(session, bonus=usd("5.00"))
        verified_example(session, batch=large)
        verified_example(session, batch=factories.make_batch(session, round=large.round, bonus=usd("0.50")))
        session.commit()
    for name, role in (("ann", "finance"), ("ben", "finance"), ("cy", "requester")):
        staff(name, (role,))


def run(app: Flask, *arguments: str, text: str | None = None, password: str = "") -> Result:
    return app.test_cli_runner(env={"COLUMNS": "80", "DYNAHIT_STAFF_PASSWORD": password}).invoke(
        group, list(arguments), input=text
    )


def the_large_one(rows: Rows) -> Payout:
    found: list[Payout] = [row for row in rows(Payout) if row.amount == usd("5.00")]
    return found[0]


@pytest.mark.usefixtures("owed")
def test_planning_promises_and_pays_nothing(app: Flask, rows: Rows) -> None:
    shown = run(app, "plan", "--plan", "--json")
    before = rows(Payout)
    planned = run(app, "plan")
    again = json.loads(run(app, "plan", "--json").output)

    assert before == []
    plan = json.loads(shown.output)
    assert [line["bonus"] for line in plan["to_pay"]] == ["0.50"]
    assert [line["bonus"] for line in plan["not_paid_now"]] == ["5.00"]
    assert "Planned 2 bonuses; 0 changed" in planned.output
    assert "1 may be paid now" in planned.output
    assert again == {"new": 0, "followed": 0, "approved": 0, "released": 0}
    assert {str(row.state) for row in rows(Payout)} == {"planned", "approved"}


@pytest.mark.usefixtures("owed")
def test_two_people_let_a_large_payment_go(app: Flask, rows: Rows) -> None:
    run(app, "plan")
    reference = the_large_one(rows).reference

    listed = run(app, "approve")
    first = run(app, "approve", reference, "--by", "ann", text=f"y\n{STAFF_PASSWORD}\n")
    twice = run(app, "approve", reference, "--by", "ann", "--yes", password=STAFF_PASSWORD)
    second = run(app, "approve", "--all", "--by", "ben", "--yes", "--json", password=STAFF_PASSWORD)

    assert reference in listed.output
    assert "2 to go" in listed.output
    assert "Approved 1 bonus of $5.00; 0 may be paid now" in first.output
    assert STAFF_PASSWORD not in first.output
    assert "ann has approved payout" in str(twice.exception)
    assert json.loads(second.output) == {"approved": 1, "amount": "5.00", "free": 1}
    row = the_large_one(rows)
    assert (row.state, row.approved_by) == (PayoutState.APPROVED, "ann, ben")
    trail = [(entry.staff_name, entry.action) for entry in rows(AuditEntry)]
    assert trail == [("ann", "payout.approve"), ("ann", "payout.approve.refused"), ("ben", "payout.approve")]


@pytest.mark.usefixtures("owed")
@pytest.mark.parametrize(
    ("by", "password", "words"),
    [
        ("ann", "a guess of somebody's", "not that of 'ann'"),
        ("nobody", STAFF_PASSWORD, "not that of 'nobody'"),
        ("cy", STAFF_PASSWORD, "nobody with the role finance"),
    ],
)
def test_who_may_not_approve_is_refused_and_it_is_kept(
    app: Flask, rows: Rows, by: str, password: str, words: str
) -> None:
    run(app, "plan")

    result = run(app, "approve", "--all", "--by", by, "--yes", password=password)

    assert words in str(result.exception)
    assert rows(PayoutApproval) == []
    [entry] = rows(AuditEntry)
    assert (entry.staff_name, entry.action) == (by, "payout.approve.refused")
    assert password not in str(entry.detail)


@pytest.mark.usefixtures("owed")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["approve", "--all", "--json"], "needs --plan or --yes"),
        (["approve", "--all", "--yes"], "--by NAME"),
        (["approve", "DH-NONE", "--by", "ann", "--yes"], "DH-NONE does not wait"),
        (["budget", "set", "planet", "1.00", "--yes"], "no kind of budget"),
        (["budget", "set", "project", "ten", "--yes"], "not an amount of money"),
        (["budget", "set", "round", "1.00", "--yes"], "Name the round"),
        (["budget", "set", "round", "a", "b", "c", "--yes"], "at most a name and an amount"),
        (["budget", "set", "project", "1.00", "--json"], "needs --plan or --yes"),
        (["compensate", "A1", "--cause", "c", "--json"], "needs --plan or --yes"),
        (["compensate", "A1", "--cause", "c", "--yes"], "No assignment 'A1'"),
    ],
)
def test_what_can_not_be_is_refused_with_the_next_step(app: Flask, arguments: list[str], words: str) -> None:
    result = run(app, *arguments)

    assert result.exit_code != 0
    assert words in result.output + str(result.exception)


@pytest.mark.usefixtures("market")
def test_a_budget_is_shown_planned_set_and_taken_away(app: Flask, rows: Rows) -> None:
    planned = run(app, "budget", "set", "project", "500", "--plan")
    before = rows(Budget)
    done = run(app, "budget", "set", "project", "500", "--by", "kim", text="y\n")
    run(app, "budget", "set", "worker-day", "10", "--yes")
    shown = run(app, "budget", "show")
    as_json = json.loads(run(app, "budget", "show", "--json").output)
    gone = json.loads(run(app, "budget", "set", "project", "none", "--yes", "--json").output)

    assert planned.output == "project: no limit -> $500.00. $0.00 are spent or set aside.\n"
    assert before == []
    assert done.output.endswith("Set.\n")
    assert "worker day" in shown.output
    assert as_json[0] == {"scope": "project", "key": "", "limit": "500.00", "committed": "0.00", "left": "500.00"}
    assert gone["after"]["limit"] is None
    assert [entry.staff_name for entry in rows(AuditEntry)] == ["kim", "command line", "command line"]


def test_a_compensation_is_planned_owed_and_offered_by_settling(
    app: Flask, rows: Rows, market: Market, session_factory: sessionmaker[Session]
) -> None:
    worker_id = market.person("writer")
    with session_factory() as session:
        hit = factories.make_hit(session, batch=factories.make_batch(session, reward=usd("0.30")))
        worker = factories.make_worker(session, mturk_worker_id=worker_id)
        row = factories.make_assignment(session, hit=hit, worker=worker, state=AssignmentState.OPENED)
        assignment_id = row.mturk_assignment_id
        session.commit()
    asked = ["compensate", assignment_id, "--cause", "our pages were down"]

    planned = run(app, *asked, "--plan")
    before = rows(Payout)
    owed = run(app, *asked, "--by", "kim", text="y\n")
    settled = run(app, "settle", text="y\n")

    assert "gets $0.30 (fee $0.06) by a HIT that only this worker can take" in planned.output
    assert worker_id not in planned.output + owed.output + settled.output
    assert before == []
    assert "is needs compensation" in owed.output
    assert "offer 1 HITs that pay compensations" in settled.output
    assert "Compensations offered: 1 HITs." in settled.output
    [payout] = rows(Payout)
    assert (payout.state, payout.requested_by) == (PayoutState.COMPENSATING, "kim")
    assert [hit["Reward"] for hit in market.hits()] == ["0.30"]
    with session_factory() as session:
        assert session.scalars(select(Assignment)).one().state is AssignmentState.OPENED


@pytest.mark.usefixtures("market")
def test_without_a_limit_nobody_is_asked(app: Flask) -> None:
    app.extensions["dynahit"].settings.approval_limit = None

    assert "No approval is asked for" in run(app, "approve").output


@pytest.mark.usefixtures("market")
def test_with_nothing_to_approve_it_says_so(app: Flask) -> None:
    assert "Nothing above $1.00 waits" in run(app, "approve").output
    assert json.loads(run(app, "approve", "--plan", "--json").output) == {"limit": "1.00", "waiting": []}
