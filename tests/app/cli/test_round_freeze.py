"""`dynahit round freeze` and `manifest`: asks first, lists what is missing, and shows what was frozen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.models import Round
from tests import factories as make
from tests.app.cli.test_hits import Shell, contexts, launch, market, shell
from tests.rounds import collected

__all__ = ["contexts", "market", "shell"]

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
FREEZE = ("round", "freeze", "sentiment", "1")


def test_it_shows_the_splits_and_asks_before_it_freezes(shell: Shell, session: Session) -> None:
    collected(session, 8)
    session.commit()

    said = shell(*FREEZE, "--shares", "50,25,25", answer="n\n")

    assert said.exit_code == 1
    assert "8 examples (4 train, 2 dev, 2 test, 0 withheld)" in said.output
    assert session.scalars(select(Round.frozen_at)).one() is None
    session.rollback()
    done = shell(*FREEZE, "--shares", "50,25,25", "--by", "Ada", answer="y\n")
    assert done.exit_code == 0, done.output
    session.expire_all()
    round_ = session.scalars(select(Round)).one()
    assert round_.manifest_sha256 is not None
    assert round_.manifest_sha256 in done.output
    assert round_.frozen_by == "Ada"
    session.rollback()
    shown = json.loads(shell("round", "manifest", "sentiment", "1").stdout)
    assert shown["sha256"] in done.output
    assert shown["manifest"]["examples"]["count"] == 8
    assert "nothing was changed" in shell(*FREEZE).output


def test_what_is_missing_is_listed(shell: Shell, session: Session) -> None:
    make.make_example(session)
    session.commit()

    planned = json.loads(shell(*FREEZE, "--plan", "--json").stdout)
    assert len(planned["missing"]) == 2
    result = shell(*FREEZE)

    assert result.exit_code == 1
    assert "Missing: 1 example without a verdict yet" in result.output
    assert "can't be frozen yet" in shell(*FREEZE, "--yes").output
    assert "has no manifest yet" in shell("round", "manifest", "sentiment", "1").output


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--shares", "80,20", "--yes"), "are not three shares"),
        (("--shares", "a,b,c", "--yes"), "are not three shares"),
        (("--shares", "80,30,10", "--yes"), "sum to 1"),
        (("--test-writer", "w-nobody", "--yes"), "Nobody has the pseudonym 'w-nobody'"),
        (("--json",), "needs --plan or --yes"),
    ],
)
def test_terms_that_can_not_be_used_are_said(shell: Shell, session: Session, more: tuple[str, ...], said: str) -> None:
    collected(session, 4)
    session.commit()

    result = shell(*FREEZE, *more)

    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


def test_nothing_is_launched_into_a_frozen_round_nor_its_policy_changed(
    shell: Shell, session: Session, contexts: Path
) -> None:
    collected(session, 4)
    session.commit()
    assert shell(*FREEZE, "--yes").exit_code == 0

    for more in (("--plan",), ("--yes",)):
        refused = launch(shell, contexts, *more)
        assert refused.exit_code == 1
        assert "was frozen on" in refused.output
    assert "was frozen on" in shell("round", "policy", "sentiment", "1", "--non-fooling", "50").output
