"""The figures of a round in one piece, as they are printed."""

from __future__ import annotations

import json

import pytest
from sqlalchemy.orm import Session

from app.operations.import_dataset import ImportTerms, import_dataset
from app.operations.round_stats import round_stats
from hits import validations
from hits.clock import FixedClock
from hits.errors import NotFound
from hits.models import Worker
from tests.app.operations.test_import_dataset import ON_SQLITE, published
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


@ON_SQLITE
def test_an_imported_round_of_dynasent_has_the_published_error_rate_and_agreement(
    session: Session, clock: FixedClock
) -> None:
    """Its dev split holds 80 examples of each pair of gold label and model's answer: the model errs on two thirds."""
    file = published("sentiment_dynasent/dynasent-v1.1-round02-dynabench-dev.jsonl")
    import_dataset(session, clock, ImportTerms("dynasent", (file,), 2), key="a key", by="Ada")

    found = round_stats(session, "sentiment", 2).as_json()

    assert found["vmer"]["is"] == "480 valid_and_model_wrong / (720 collected - 0 retracted)"
    assert found["vmer"]["share"] == found["mer"]["share"] == found["resolved_vmer"]["share"] == 2 / 3
    assert found["verdicts"]["valid_and_model_right"] == 240
    assert found["agreement"]["round"]["alpha"] == pytest.approx(0.681, abs=0.002)


@pytest.mark.slow
@ON_SQLITE
@pytest.mark.parametrize(
    ("number", "name", "rows"),
    [
        (1, "anli_r1_dev_annotated.csv", 1000),
        (2, "anli_r2_dev_annotated.csv", 1000),
        (3, "anli_r3_dev_annotated.csv.gz", 1198),
    ],
)
def test_all_that_anli_published_for_evaluation_is_verified_and_fooled_its_model(
    session: Session, clock: FixedClock, number: int, name: str, rows: int
) -> None:
    files = (published(f"nli_anli/{name}"), published("nli_anli/verifier_labels_dev.jsonl"))
    import_dataset(session, clock, ImportTerms("anli", files, number), key="a key", by="Ada")

    found = round_stats(session, "nli", number).as_json()

    assert found["vmer"]["is"] == f"{rows} valid_and_model_wrong / ({rows} collected - 0 retracted)"
    assert found["vmer"]["share"] == 1
