"""`dynahit qualification limit, exclude, allow, set-aside, rules`: by pseudonym, and told to the marketplace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from tests.app.cli.test_hits import Shell
from tests.market import Market, failing

#: What they call is tested on both databases.
pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


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


def done(shell: Shell, *arguments: str) -> str:
    result = shell("qualification", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def refused(shell: Shell, *arguments: str) -> str:
    result = shell("qualification", *arguments)
    assert result.exit_code != 0
    assert "Traceback" not in result.output
    return result.output


def rules(shell: Shell) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell("qualification", "rules", "--json").stdout)
    return found


def test_limits_are_set_shown_and_lifted(shell: Shell) -> None:
    assert "No rules: all may work." in done(shell, "rules")
    done(shell, "limit", "nli", "--per", "day", "--most", "20")
    done(shell, "limit", "nli", "--per", "hit-type", "--most", "3", "--round", "2", "--work", "judging")

    assert [(one["round"], one["rule"]) for one in rules(shell)] == [
        (0, "writing: each worker at most 20 HITs in a day (UTC)"),
        (2, "judging: each worker at most 3 HITs of one HIT type"),
    ]
    assert "each worker at most 20 HITs" in done(shell, "rules", "--task", "nli")
    done(shell, "limit", "nli", "--per", "day", "--lift")
    assert len(rules(shell)) == 1


def test_exclusions_are_set_and_lifted(shell: Shell) -> None:
    done(shell, "exclude", "nli", "--round", "3", "--wrote-in", "1", "--wrote-in", "2")
    done(shell, "exclude", "nli", "--round", "4", "--exclusive")
    assert [one["round"] for one in rules(shell)] == [3, 3, 4]

    done(shell, "exclude", "nli", "--round", "4", "--exclusive", "--lift")
    assert [one["round"] for one in rules(shell)] == [3, 3]


def test_workers_are_invited_by_id_or_pseudonym_and_shown_by_pseudonym(shell: Shell, market: Market) -> None:
    ada, bea = market.person("ada"), market.person("bea")
    said = done(shell, "allow", "nli", ada, bea, "--round", "2")
    pseudonym = next(word for word in said.split() if word.startswith("w-"))

    again = done(shell, "allow", "nli", pseudonym, "--round", "2")

    assert f"{pseudonym} is invited, as before." in again
    assert not {ada, bea} & set((said + again).split())
    [rule] = rules(shell)
    assert (rule["rule"], rule["people"]) == ("only invited workers", 2)
    type_id = market.mturk.find_qualification("dynahit: invited to nli, round 2")
    assert type_id is not None
    assert {grant.worker_id for grant in market.mturk.holders(type_id)} == {ada, bea}

    done(shell, "allow", "nli", ada, "--round", "2", "--remove")
    assert {grant.worker_id for grant in market.mturk.holders(type_id)} == {bea}
    done(shell, "allow", "nli", "--round", "2", "--everybody")
    assert rules(shell) == []


def test_somebody_is_set_aside_and_taken_back(shell: Shell, market: Market) -> None:
    ada = market.person("ada")
    said = done(shell, "set-aside", "hate", ada, "--reason", "copied texts")
    assert "is set aside." in said
    assert ada not in said
    assert "already" in done(shell, "set-aside", "hate", ada, "--reason", "again")
    type_id = market.mturk.find_qualification("dynahit: other work than hate")
    assert type_id is not None
    assert [grant.worker_id for grant in market.mturk.holders(type_id)] == [ada]
    assert market.call("ListWorkerBlocks")["WorkerBlocks"] == []

    assert "again" in done(shell, "set-aside", "hate", ada, "--lift")
    assert list(market.mturk.holders(type_id)) == []


def test_without_the_marketplace_the_rule_holds_and_is_told_later(shell: Shell, market: Market) -> None:
    ada = market.person("ada")
    market.before = failing("AssociateQualificationWithWorker")

    result = shell("qualification", "set-aside", "hate", ada, "--reason", "copied texts")

    assert result.exit_code == 0, result.output
    assert "the next pass of `dynahit jobs run` tells it" in result.output
    assert [one["people"] for one in rules(shell)] == [1]


REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("limit", "nli", "--per", "day"), "Say --most NUMBER, or --lift."),
    (("limit", "nli", "--per", "day", "--most", "3", "--lift"), "Say --most NUMBER, or --lift."),
    (("limit", "nli", "--per", "day", "--most", "0"), "it must be from 1"),
    (("limit", "nli", "--per", "day", "--lift"), "There is no such limit"),
    (("limit", "poems", "--per", "day", "--most", "3"), "poems"),
    (("exclude", "nli", "--round", "2"), "--wrote-in ROUND"),
    (("exclude", "nli", "--round", "2", "--wrote-in", "1", "--exclusive"), "--wrote-in ROUND"),
    (("exclude", "nli", "--round", "2", "--wrote-in", "2"), "can't exclude its own writers"),
    (("allow", "nli", "--remove"), "Say whose invitations"),
    (("allow", "nli", "AWORKER1", "--everybody"), "--everybody ends the whole list"),
    (("allow", "nli", "nobody"), "neither a pseudonym"),
    (("set-aside", "nli", "w-0000"), "Nobody has the pseudonym"),
    (("set-aside", "nli", "AWORKER1"), "for a reason only"),
)


def test_what_can_not_be_meant_is_one_message_and_changes_nothing(shell: Shell) -> None:
    for arguments, cause in REFUSED:
        assert cause in " ".join(refused(shell, *arguments).split()), arguments
    # An allow-list begins before its first worker is looked up, and lets nobody in meanwhile.
    assert [one["kind"] for one in rules(shell)] == ["allow-list"]
