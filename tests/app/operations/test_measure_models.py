"""Measuring: figures are stored once, an interrupted run goes on, and what can't be measured is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from app.operations import measure_models
from app.operations.measure_models import key_of, measure_model
from hits.clock import FixedClock
from hits.errors import InvalidInput, Refused
from hits.measures.sets import LabelledRow, file_set, rows_set, split_set
from hits.measures.transfers import TRANSFERS
from hits.models import MeasuredSet, ModelAnswers, ModelScore
from hits.predictions import ModelUnavailable
from hits.states import Split
from hits.tasks import task
from inference.loading import load_model
from inference.target import ModelCard
from tests.factories import make_round
from tests.hits.measures.test_sets import AS_HATECHECK, HATECHECK, ROOT
from tests.measured import RuledModel, always, frozen_round, sentiment_set, told

#: What does not depend on the database.
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def count(session: Session, table: type) -> int:
    return session.scalar(select(func.count()).select_from(table)) or 0


def test_figures_are_stored_once_and_stay(session: Session, clock: FixedClock) -> None:
    model = RuledModel(lambda texts: "positive" if "neutral" in texts[0] else told(texts))

    first = measure_model(session, clock, model, sentiment_set(), model_task="sentiment")
    again = measure_model(session, clock, model, sentiment_set(), model_task="sentiment")

    assert first.fresh
    assert not again.fresh
    assert len(model.asked) == 30
    assert {name: one.value for name, one in first.scores.items()} == pytest.approx(
        {"error": 1 / 3, "accuracy": 2 / 3, "macro_f1": 5 / 9}
    )
    assert again.scores == first.scores
    assert (count(session, MeasuredSet), count(session, ModelAnswers), count(session, ModelScore)) == (1, 1, 3)
    for table in ("measured_set", "model_answers", "model_score"):
        with pytest.raises(DatabaseError, match="stays"):
            session.execute(text(f"DELETE FROM {table}"))
        session.rollback()


@ON_SQLITE
def test_an_interrupted_run_goes_on_where_it_was(
    session: Session, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_models, "PAGE", 8)
    model = RuledModel(told, lasts=20)
    done: list[int] = []

    with pytest.raises(ModelUnavailable):
        measure_model(session, clock, model, sentiment_set(), model_task="sentiment")
    model.lasts = None
    found = measure_model(session, clock, model, sentiment_set(), model_task="sentiment", advance=done.append)

    assert len(model.asked) == 30
    assert done == [16, 8, 6]
    assert found.scores["accuracy"].value == 1
    assert not session.in_transaction()


@ON_SQLITE
def test_a_frozen_round_is_measured_by_its_splits(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    frozen_round(session, tmp_path)
    test = split_set(session, "sentiment", 2, Split.TEST)

    found = measure_model(session, clock, always("positive"), test, model_task="sentiment")

    rows = test.load()
    assert found.rows == len(rows) > 20
    assert found.scores["accuracy"].value == sum(row.right == ("positive",) for row in rows) / len(rows)
    assert test.sha256 == split_set(session, "sentiment", 2, Split.TEST).sha256
    assert test.sha256 != split_set(session, "sentiment", 2, Split.TRAIN).sha256
    with pytest.raises(Refused, match="no dev split"):
        split_set(session, "sentiment", 2, Split.DEV)
    make_round(session, number=3)
    with pytest.raises(Refused, match="dynahit round freeze sentiment 3"):
        split_set(session, "sentiment", 3, Split.TEST)


@ON_SQLITE
def test_readers_of_passages_are_measured_by_the_best_of_the_answers(session: Session, clock: FixedClock) -> None:
    passage = "The queen wrote it in the spring of 1903."
    rows = [
        LabelledRow((passage, "When?"), ("1903", "the spring of 1903")),
        LabelledRow((passage, "Who?"), ("the queen",)),
        LabelledRow((passage, "What?"), ("it",)),
    ]
    model = RuledModel(lambda texts: {"When?": "spring of 1903", "Who?": "queen"}.get(texts[1]), labels=())

    found = measure_model(session, clock, model, rows_set(task("qa"), "three", rows), model_task="qa")

    assert {name: one.value for name, one in found.scores.items()} == pytest.approx(
        {"error": 1 / 3, "f1": 2 / 3, "exact_match": 2 / 3}
    )


@ON_SQLITE
def test_a_map_lets_a_model_answer_for_another_task(session: Session, clock: FixedClock) -> None:
    rows = [LabelledRow(("It was negative.",), ("hateful",)), LabelledRow(("It was neutral.",), ("hateful",))]
    row_set = rows_set(task("hate"), "two", rows)
    via = TRANSFERS["sentiment-as-hate"]

    found = measure_model(session, clock, RuledModel(told), row_set, model_task="sentiment", transfer=via)

    assert found.scores["accuracy"].value == 0.5
    assert session.scalars(select(ModelScore.transfer)).first() == "sentiment-as-hate"
    with pytest.raises(InvalidInput, match="no map"):
        measure_model(session, clock, RuledModel(told), row_set, model_task="sentiment")
    zero_shot = TRANSFERS["nli-as-hate"]
    assert zero_shot.reads(("Cold soup.",)) == ("Cold soup.", "This text is hateful.")


def test_a_model_is_known_by_its_weights_and_what_its_labels_mean() -> None:
    card = ModelCard("a", "one", ("x", "y"), {"0": "x", "1": "y"}, weights_sha256="f" * 64)

    assert key_of(card) == key_of(ModelCard("b", "one", ("x", "y"), {"0": "x", "1": "y"}, weights_sha256="f" * 64))
    assert key_of(card) != key_of(ModelCard("a", "one", ("x", "y"), {"0": "y", "1": "x"}, weights_sha256="f" * 64))
    assert key_of(ModelCard("a", "one", ())) != key_of(ModelCard("b", "one", ()))


@ON_SQLITE
@pytest.mark.slow
@pytest.mark.model
@pytest.mark.skipif(not HATECHECK.exists(), reason="HateCheck is not here: set DYNAHIT_DATA to the published data")
def test_on_hatecheck_the_embedded_model_reaches_what_its_card_says(session: Session, clock: FixedClock) -> None:
    spec = task("hate")
    tests = file_set(spec, "HateCheck", HATECHECK, AS_HATECHECK, functions=True)
    model = load_model(spec, spec.default_model, local_files_only=True)

    found = measure_model(session, clock, model, tests, model_task="hate")

    card = json.loads((ROOT / "inference/embedded/hate/card.json").read_text(encoding="utf-8"))
    stated = card["evaluation"]["HateCheck"]
    assert found.rows == stated["rows"] == 3728
    assert found.scores["accuracy"].value == pytest.approx(stated["accuracy"], abs=0.005)
    assert found.scores["macro_f1"].value == pytest.approx(stated["macro_f1"], abs=0.005)
    parts = session.scalars(select(ModelScore.parts).where(ModelScore.metric == "error")).one() or {}
    assert len(parts["functionality"]) == 29
    assert sum(one["rows"] for one in parts["functionality"].values()) == 3728
