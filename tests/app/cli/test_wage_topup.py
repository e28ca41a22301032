"""`dynahit hits topup`: a plan changes nothing, the deed asks first, and doing it again owes nothing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from hits.states import AssignmentState
from payments.models import Payout
from tests.app.cli.test_hits import Shell
from tests.factories import NOON, make_assignment, make_batch, make_hit
from tests.market import Market

#: What they call is tested on both databases.
pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def shell(session_factory: sessionmaker[Session], database_url: str, clock: FixedClock) -> Iterator[Shell]:
    made = Shell(database_url, Market(clock), clock)
    yield made
    made.close()


@pytest.fixture
def batch(session: Session) -> str:
    """The number of a batch of $0.30 for 6 minutes whose HITs took 6 and 12."""
    row = make_batch(session, minutes=6)
    for minutes in (6, 12):
        make_assignment(
            session,
            hit=make_hit(session, batch=row),
            state=AssignmentState.APPROVED,
            accepted_at=NOON,
            submitted_at=NOON + timedelta(minutes=minutes),
        )
    session.commit()
    return str(row.id)


def owed(session: Session) -> int:
    found = len(session.scalars(select(Payout)).all())
    session.rollback()
    return found


def test_a_plan_shows_the_wage_and_what_is_missing(shell: Shell, batch: str, session: Session) -> None:
    result = shell("hits", "topup", batch, "--plan")

    assert result.exit_code == 0, result.output
    for shown in ("stated $3.00 an hour", "median $1.50 an hour", "$0.30 for workers, $0.06 of fees", "w-"):
        assert shown in result.output
    assert owed(session) == 0
    shown = json.loads(shell("hits", "topup", batch, "--plan", "--json").stdout)
    assert (shown["total"], len(shown["rows"])) == ("0.30", 1)


def test_it_asks_pays_once_and_then_says_that_nothing_is_missing(shell: Shell, batch: str, session: Session) -> None:
    assert shell("hits", "topup", batch, answer="n\n").exit_code == 1
    assert owed(session) == 0

    done = shell("hits", "topup", batch, answer="y\n")
    again = shell("hits", "topup", batch, "--yes")

    assert "Planned 1 bonuses of $0.30" in done.output
    assert "Nothing is missing." in again.output
    assert "1 were topped up before" in again.output
    assert owed(session) == 1
    assert json.loads(shell("hits", "topup", batch, "--yes", "--json").stdout)["rows"] == []


def test_another_wage_can_be_aimed_at(shell: Shell, batch: str) -> None:
    shown = json.loads(shell("hits", "topup", batch, "--hourly", "6.00", "--yes", "--json").stdout)

    assert [row["amount"] for row in shown["rows"]] == ["0.30", "0.90"]


def test_what_can_not_be_meant_is_one_message(shell: Shell, batch: str) -> None:
    for arguments, cause in (
        (("999",), "There is no batch 999."),
        ((batch, "--hourly", "0.001"), "fraction of a cent"),
        ((batch, "--json"), "it needs --plan or --yes"),
    ):
        result = shell("hits", "topup", *arguments)
        assert result.exit_code != 0
        assert cause in result.output
        assert "Traceback" not in result.output


def test_the_wage_stands_in_the_status(shell: Shell, batch: str) -> None:
    [found] = json.loads(shell("hits", "status", "--json").stdout)

    assert found["hourly_wage"] == {
        "stated": "3.00",
        "median": "1.50",
        "mean": "2.00",
        "left_open": 0,
        "reason_below_floor": None,
    }
    assert "median $1.50" in shell("hits", "status").output
