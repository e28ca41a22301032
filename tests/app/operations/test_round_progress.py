"""How a round comes along."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy.orm import Session

from app.operations.round_progress import round_progress
from hits import validations
from hits.clock import FixedClock
from hits.models import Round, Worker
from payments.ledger import record_reward
from payments.overview import overview
from tests.factories import make_example, make_round, make_vote

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def round_(session: Session, clock: FixedClock) -> Round:
    """Three examples that fooled the model, of which readers have verified one; one reward is paid."""
    verified, *_ = [make_example(session) for _ in range(3)]
    for _ in range(2):
        make_vote(session, example=verified)
    clock.advance(timedelta(hours=1))
    validations.decide(session, verified, clock.now())
    record_reward(session, verified.attempt.assignment, clock.now())
    session.commit()
    return verified.round


def test_the_figures_are_those_of_rows_and_postings(session: Session, round_: Round, clock: FixedClock) -> None:
    clock.advance(timedelta(hours=1))
    found = round_progress(session, round_, clock.now(), target=3)

    assert (found.verified, found.rates.kept, found.target) == (1, 3, 3)
    assert (found.pace.tries_fooling, found.pace.tries_verified) == (1.0, 3.0)
    assert (found.pace.seconds, found.pace.seconds_verified, found.pace.assignments) == (360.0, 1080.0, 3)
    # As finance reads them from the same postings.
    money = overview(session).by_round["sentiment/1"]
    assert found.spent == money.total > Decimal("0.30")
    assert found.cost_per_verified == money.cost_per_verified
    assert found.forecast is not None
    assert found.forecast.missing == 2
    assert found.forecast.at is not None
    assert found.writers.writers == 3
    printed = json.dumps(found.as_json())
    assert "1 valid_and_model_wrong / (3 collected - 0 retracted)" in printed
    for worker in session.query(Worker):
        assert worker.mturk_worker_id not in printed


def test_a_target_comes_from_the_stop_rules_or_there_is_none(
    session: Session, round_: Round, clock: FixedClock
) -> None:
    assert round_progress(session, round_, clock.now()).forecast is None
    round_.stop_validated = 1
    session.commit()

    found = round_progress(session, round_, clock.now())

    assert found.target == 1
    assert found.forecast is not None
    assert found.forecast.reached


def test_an_empty_round_divides_by_nothing(session: Session, clock: FixedClock) -> None:
    found = round_progress(session, make_round(session), clock.now(), target=10)

    assert (found.pace.tries_fooling, found.pace.seconds, found.cost_per_verified) == (None, None, None)
    assert found.forecast is not None
    assert found.forecast.at is None
    assert json.dumps(found.as_json())
