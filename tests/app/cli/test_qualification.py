"""`dynahit qualification`: grants, revokes and lists validators, who appear by pseudonym only."""

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


def listed(shell: Shell) -> list[dict[str, object]]:
    result = shell("qualification", "list", "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_a_worker_becomes_a_validator_and_is_one_no_more(shell: Shell, market: Market) -> None:
    worker_id = market.person("ada")
    assert listed(shell) == []

    granted = shell("qualification", "grant", worker_id)

    assert granted.exit_code == 0, granted.output
    [validator] = listed(shell)
    assert str(validator["validator"]).startswith("w-")
    assert worker_id not in json.dumps(validator)
    shown = shell("qualification", "list")
    assert str(validator["validator"]) in shown.output
    assert worker_id not in shown.output

    revoked = shell("qualification", "revoke", worker_id, "--reason", "asked for it", "--yes")

    assert revoked.exit_code == 0, revoked.output
    assert listed(shell) == []


def test_revoking_asks_first(shell: Shell, market: Market) -> None:
    worker_id = market.person("ada")
    shell("qualification", "grant", worker_id)

    refused = shell("qualification", "revoke", worker_id, answer="n\n")

    assert refused.exit_code == 1
    assert len(listed(shell)) == 1


def test_nobody_is_said_in_words(shell: Shell) -> None:
    assert "Nobody yet." in shell("qualification", "list").output


def test_an_unknown_worker_is_an_error_in_one_message(shell: Shell) -> None:
    result = shell("qualification", "grant", "ANOBODY0000000")

    assert result.exit_code == 1
    assert "Error: " in result.output
    assert "Traceback" not in result.output


def launched(shell: Shell) -> None:
    result = shell(
        "qualification", "quiz", "launch", "nli", "writer", "--reward", "0.50", "--places", "5", "--yes", "--json"
    )
    assert result.exit_code == 0, result.output


def test_a_quizs_qualification_is_granted_by_hand_listed_revoked_and_reset(shell: Shell, market: Market) -> None:
    worker_id = market.person("ada")
    launched(shell)

    granted = shell("qualification", "grant", worker_id, "--kind", "writer:nli", "--months", "6", "--json")
    assert granted.exit_code == 0, granted.output
    pseudonym = json.loads(granted.stdout)["worker"]
    again = shell("qualification", "grant", pseudonym, "--kind", "writer:nli", "--json")
    assert json.loads(again.stdout)["granted"] == 0

    result = shell("qualification", "list", "--kind", "writer:nli", "--json")
    [held] = json.loads(result.stdout)
    assert (held["worker"], held["version"], held["value"], held["state"]) == (pseudonym, 1, 1, "granted")
    assert held["expires_at"].startswith("2027-05-15")
    assert pseudonym in shell("qualification", "list", "--all").output

    revoked = shell("qualification", "revoke", pseudonym, "--kind", "writer:nli", "--reason", "Copied.", "--yes")
    assert revoked.exit_code == 0, revoked.output
    assert "Nobody yet." in shell("qualification", "list", "--all").output
    reset = shell("qualification", "reset", pseudonym, "--kind", "writer:nli", "--json")
    assert json.loads(reset.stdout) == {"worker": pseudonym, "kind": "writer:nli", "set_aside": 0}

    shown = shell("qualification", "history", pseudonym)
    told = json.loads(shell("qualification", "history", worker_id, "--json").stdout)
    assert [event["what"] for event in told["events"]] == ["grant planned", "granted", "revoked", "revocation lifted"]
    for text in (shown.output, json.dumps(told), result.output, granted.output, revoked.output):
        assert worker_id not in text


def test_plans_change_nothing(shell: Shell, market: Market) -> None:
    worker_id = market.person("ada")
    market.calls.clear()

    for arguments in (
        ("grant", worker_id),
        ("revoke", worker_id),
        ("quiz", "launch", "nli", "writer", "--reward", "0.50"),
        ("quiz", "publish", "nli", "writer"),
    ):
        planned = shell("qualification", *arguments, "--plan")
        assert planned.exit_code == 0, planned.output
        assert "Nothing was changed" in planned.output
        assert json.loads(shell("qualification", *arguments, "--plan", "--json").stdout)

    assert set(market.calls) <= {"GetAccountBalance"}
    assert listed(shell) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("grant", "w-0000"), "Nobody has the pseudonym"),
        (("grant", "ada"), "neither a pseudonym"),
        (("grant", "AADA", "--kind", "writer:poetry"), "There is no qualification 'writer:poetry'"),
        (("grant", "AADA", "--kind", "writer:nli"), "none yet"),
        (("history", "w-0000"), "Nobody has the pseudonym"),
        (("list", "--kind", "x", "--all"), "either --kind or --all"),
        (("revoke", "AADA", "--json"), "needs --plan or --yes"),
    ],
)
def test_what_can_not_be_done_is_one_message(shell: Shell, arguments: tuple[str, ...], message: str) -> None:
    result = shell("qualification", *arguments)

    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_level_is_shown_planned_and_set_for_a_reason(shell: Shell, market: Market) -> None:
    worker_id = market.person("ada")
    level = ("qualification", "level", worker_id, "nli")
    assert json.loads(shell(*level, "--json").stdout)["level"] == "novice"
    planned = shell(*level, "--to", "expert", "--reason", "Wrote the rules", "--plan")
    assert "would be set to expert. Nothing was changed." in planned.output
    assert shell(*level, "--to", "expert").exit_code == 1

    done = shell(*level, "--to", "expert", "--reason", "Wrote the rules")
    assert done.exit_code == 0, done.output
    assert done.output.strip().endswith("in nli: novice, now expert.")
    assert worker_id not in done.output
    held = json.loads(shell("qualification", "list", "--kind", "expert:nli", "--json").stdout)
    assert [one["state"] for one in held] == ["granted"]

    lowered = shell(*level, "--to", "writer", "--reason", "Copies", "--json")
    assert json.loads(lowered.stdout)["changed"] is True
    assert "Nobody yet." in shell("qualification", "list", "--kind", "expert:nli").output
