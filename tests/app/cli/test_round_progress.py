"""``dynahit round progress``."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from hits import validations
from hits.clock import FixedClock
from tests.app.cli.test_hits import Shell, market, shell
from tests.factories import make_example, make_vote

__all__ = ["market", "shell"]

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def test_progress_is_printed_with_a_forecast_and_as_json(shell: Shell, session: Session, clock: FixedClock) -> None:
    verified, _ = make_example(session), make_example(session)
    for _ in range(2):
        make_vote(session, example=verified)
    clock.advance(timedelta(hours=1))
    validations.decide(session, verified, clock.now())
    session.commit()

    shown = shell("round", "progress", "sentiment", "1", "--target", "5")
    assert shown.exit_code == 0, shown.output
    assert "vMER: 50.0% (95% interval 9.5% to 90.5%)" in shown.stdout
    assert "Tries: 1.0 for one that fooled, 2.0 verified" in shown.stdout
    assert "4 of 5 are missing" in shown.stdout

    found = json.loads(shell("round", "progress", "sentiment", "1", "--json").stdout)
    assert (found["verified"], found["target"], found["forecast"]) == (1, None, None)
    assert "No target is set." in shell("round", "progress", "sentiment", "1").stdout
    assert shell("round", "progress", "sentiment", "7").exit_code == 1
