"""The figures of a round in one piece, as they are printed."""

from __future__ import annotations

import json

import pytest
from sqlalchemy.orm import Session

from app.operations.round_stats import round_stats
from hits import validations
from hits.clock import FixedClock
from hits.errors import NotFound
from hits.models import Worker
from tests.factories import make_example, make_round, make_vote


def test_the_figures_are_those_of_the_rows(session: Session, clock: FixedClock) -> None:
    verified, disputed = make_example(session), make_example(session)
    for _ in range(2):
        make_vote(session, example=verified)
    for label in ("negative", "positive"):
        make_vote(session, example=disputed, label=label)
    for example in (verified, disputed):
        validations.decide(session, example, clock.now())
    session.commit()

    found = json.loads(json.dumps(round_stats(session, "sentiment", 1).as_json()))

    assert (found["collected"], found["retracted"], found["fooled"]) == (2, 0, 2)
    assert (found["verdicts"]["valid_and_model_wrong"], found["verdicts"]["pending"]) == (1, 1)
    assert (found["vmer"]["count"], found["vmer"]["of"], found["vmer"]["share"]) == (1, 2, 0.5)
    assert found["vmer"]["is"] == "1 valid_and_model_wrong / (2 collected - 0 retracted)"
    assert found["vmer"]["interval"] == pytest.approx([0.0945, 0.9055], abs=1e-4)
    assert (found["resolved_vmer"]["of"], found["mer"]["share"]) == (1, 1.0)
    assert found["agreement"]["round"]["votes"] == 4
    assert found["waiting"] == {"waits for readers": 1}
    assert len(found["validators"]) == 4
    assert found["policy"]["max_votes"] == 3
    for worker in session.query(Worker):
        assert worker.mturk_worker_id not in json.dumps(found)


def test_the_tasks_agreement_is_over_all_its_rounds(session: Session, clock: FixedClock) -> None:
    for label in ("negative", "positive"):
        make_vote(session, example=make_example(session), label=label)
    make_round(session, number=2)
    session.commit()

    second = round_stats(session, "sentiment", 2)

    assert (second.round_agreement.votes, second.readers, dict(second.waiting)) == (0, (), {})
    assert second.rates.vmer.percent == "none yet"
    with pytest.raises(NotFound, match="rounds are 1, 2"):
        round_stats(session, "sentiment", 3)
