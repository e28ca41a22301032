"""`dynahit qualification quiz`: launches ask and say what they cost, forms are published, standings are listed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from tests.app.cli.test_hits import Shell
from tests.market import Market
from tests.qualification.quiz_hits import ON_SQLITE

pytestmark = ON_SQLITE

LAUNCH = ("qualification", "quiz", "launch", "nli", "writer", "--reward", "0.50", "--places", "5")


@pytest.fixture
def market(clock: FixedClock) -> Market:
    return Market(clock)


@pytest.fixture
def shell(
    session_factory: sessionmaker[Session], database_url: str, market: Market, clock: FixedClock
) -> Iterator[Shell]:
    made = Shell(database_url, market, clock)
    yield made
    made.close()


def test_a_launch_shows_its_cost_asks_and_creates_once(shell: Shell, market: Market) -> None:
    refused = shell(*LAUNCH, answer="n\n")
    assert refused.exit_code == 1
    assert market.hits() == []

    done = shell(*LAUNCH, answer="y\n")

    assert done.exit_code == 0, done.output
    for words in ("7 of 16 each time; 6 right answers pass", "$6.00", "Create 2 HITs", "Created 2 quiz HITs"):
        assert words in done.output
    assert len(market.hits()) == 2
    assert "This launch is finished" in shell(*LAUNCH).output
    assert len(market.hits()) == 2


def test_a_launch_by_script_prints_json(shell: Shell) -> None:
    plan = json.loads(shell(*LAUNCH, "--plan", "--json").stdout)
    assert plan["cost"]["worst_case"] == "6.00"
    assert json.loads(shell(*LAUNCH, "--yes", "--json").stdout)["created"] == 2
    assert "needs --plan or --yes" in shell(*LAUNCH, "--json").output


def test_a_quiz_is_published_once_and_listed(shell: Shell, market: Market) -> None:
    assert "None yet." in shell("qualification", "quiz", "list").output

    first = shell("qualification", "quiz", "publish", "nli", "validator")
    again = shell("qualification", "quiz", "publish", "nli", "validator", "--json")

    assert first.exit_code == 0, first.output
    assert "Who passes holds the value 1" in first.output
    assert json.loads(again.stdout)["changed"] is False
    assert market.calls.count("UpdateQualificationType") == 1
    [one] = json.loads(shell("qualification", "quiz", "list", "--json").stdout)
    assert (one["quiz"], one["version"], one["current"], one["published"]) == ("validator:nli", 1, True, True)
    assert "validator:nli" in shell("qualification", "quiz", "list").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("launch", "poetry", "writer", "--reward", "0.50"), "There is no task 'poetry'"),
        (("launch", "nli", "reader", "--reward", "0.50"), "'reader' is not one of"),
        (("launch", "nli", "writer", "--reward", "half"), "'half' is not an amount"),
        (("launch", "nli", "writer", "--reward", "0.50", "--places", "0"), "places is 0"),
        (("publish", "poetry", "writer"), "There is no task 'poetry'"),
    ],
)
def test_what_can_not_be_done_is_one_message(shell: Shell, arguments: tuple[str, ...], message: str) -> None:
    result = shell("qualification", "quiz", *arguments)

    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_retired_version_is_accepted_by_new_hits_no_more(shell: Shell) -> None:
    shell(*LAUNCH, "--yes")

    assert "is retired" in shell("qualification", "quiz", "retire", "nli", "writer", "1").output
    assert "was retired before" in shell("qualification", "quiz", "retire", "nli", "writer", "1").output
    assert json.loads(shell("qualification", "quiz", "list", "--json").stdout)[0]["accepted"] is False
    assert shell("qualification", "quiz", "retire", "nli", "writer", "2").exit_code == 1
