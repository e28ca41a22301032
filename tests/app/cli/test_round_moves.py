"""`dynahit round list`, `status` and the moves: plans change nothing, what is missing is said, JSON holds the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.models import Round
from hits.states import RoundState
from tests import factories as make
from tests.app.cli.test_hits import Shell, contexts, launch, market, shell
from tests.market import Market

__all__ = ["contexts", "market", "shell"]

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
ROUND = ("sentiment", "1")


def state(session: Session) -> RoundState:
    found = session.scalars(select(Round.state)).one()
    session.rollback()
    return found


def test_a_round_is_walked_from_its_pilot_to_the_archive(
    shell: Shell, contexts: Path, market: Market, session: Session
) -> None:
    assert "There is no round yet" in shell("round", "list").output
    launched = launch(shell, contexts, "--pilot", "1", "--yes")
    assert "Created 1 HITs" in launched.output
    assert "2 more wait: `dynahit round pilot sentiment 1`" in launched.output
    assert "2 HITs of batch 1 wait behind its pilot" in shell("hits", "status").output

    report = shell("round", "pilot", *ROUND).output
    assert "0 of 1 assignments" in report
    assert "Missing for the release: 1 of the pilot's 1 HITs are not closed" in report
    assert "Nothing was changed; leave --plan out" in shell("round", "release", *ROUND, "--plan").output
    assert "can't be released yet" in shell("round", "release", *ROUND, "--yes").output
    assert (state(session), len(market.hits())) == (RoundState.PILOTING, 1)
    assert "Created 2 HITs in batch 1" in shell("round", "release", *ROUND, "--early", answer="y\n").output
    assert (state(session), len(market.hits())) == (RoundState.COLLECTING, 3)

    assert "3 open HITs are taken off" in shell("round", "close", *ROUND, "--plan").output
    assert state(session) is RoundState.COLLECTING
    assert "Closed: 3 HITs are off the site, 0 were never created" in shell("round", "close", *ROUND, "--yes").output
    shell("jobs", "run", "--once")
    found = json.loads(shell("round", "status", *ROUND, "--json").stdout)
    assert found["state"] == "validating"
    assert [one["to"] for one in found["moves"]] == ["draft", "piloting", "collecting", "validating"]
    assert {one["to"]: one["missing"] for one in found["next"]} == {
        "frozen": ["it has no examples"],
        "collecting": [],
        "archived": [],
    }
    said = shell("round", "status", *ROUND).output
    assert "Can become frozen: dynahit round freeze sentiment 1" in said
    assert "missing: it has no examples" in said

    assert "would become archived" in shell("round", "archive", *ROUND, "--plan").output
    assert "Archived." in shell("round", "archive", *ROUND, answer="y\n").output
    assert state(session) is RoundState.ARCHIVED
    assert json.loads(shell("round", "list", "--json").stdout) == []
    assert [one["state"] for one in json.loads(shell("round", "list", "--all", "--json").stdout)] == ["archived"]
    assert "is archived and can't become" in shell("round", "open", *ROUND).output


def test_stop_rules_are_set_shown_and_taken_away(shell: Shell, session: Session) -> None:
    make.make_round(session)
    session.commit()
    rules = ("round", "stop-rules", *ROUND)
    assert "It never stops by itself." in shell(*rules).output

    given = ("--validated", "5", "--spent", "900", "--at", "2026-12-24T18:00+01:00", "--plateau", "100")
    assert "This is a plan" in shell(*rules, *given, "--plan").output
    assert "It never stops by itself." in shell(*rules).output
    said = shell(*rules, *given).output
    for part in ("5 verified fooling examples: 0 of 5", "$0.00 of $900.00", "2026-12-24 17:00 UTC", "200 are needed"):
        assert part in said

    changed = json.loads(shell(*rules, "--spent", "none", "--json").stdout)
    assert (changed["spent"], changed["validated"], changed["changed"]) == (None, 5, True)
    assert "is no time" in shell(*rules, "--at", "tomorrow").output
    assert "before the year 1" in shell(*rules, "--at", "9999-12-31T23:00-12:00").output
    assert "is no whole number" in shell(*rules, "--validated", "many").output
    assert "1 to 10,000,000" in shell(*rules, "--validated", "0").output
