"""`dynahit qualification`: grants, revokes and lists validators, who appear by pseudonym only."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from tests.app.cli.test_hits import Shell
from tests.market import Market


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
