"""What the data of a round give away: found once, stored, and a planted leak is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.operations.freeze import freeze_round
from app.operations.import_dataset import ImportTerms, import_dataset
from app.operations.measure_bias import _Reading, measure_bias, stored_bias, views_of
from hits.clock import FixedClock
from hits.errors import NotFound, Refused
from hits.manifest import SplitTerms
from hits.models import BiasReport, Worker
from hits.states import Split, Verdict
from hits.tasks import task
from tests import factories as make
from tests.measured import frozen_round
from tests.rounds import dynasent_file

#: What does not depend on the database.
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@ON_SQLITE
def test_a_report_is_made_once_and_names_nobody(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    frozen_round(session, tmp_path)
    read: list[int] = []

    found = measure_bias(session, clock, "sentiment", 2, advance=read.append)
    again = measure_bias(session, clock, "sentiment", 2)

    assert (found.fresh, again.fresh) == (True, False)
    assert again.report == json.loads(json.dumps(found.report))
    assert sum(read) == 120
    report = found.report
    assert report["examples"] == 120
    assert [one["view"] for one in report["baselines"]["views"]] == ["statement alone", "prompt alone"]
    assert report["baselines"]["majority"]["rows"] == report["baselines"]["test"]
    assert report["repeats"] == {
        "rows": 120,
        "distinct": 120,
        "repeats": 0,
        "most_often": 1,
        "with_several_labels": 0,
    }
    assert set(report["lengths"]["statement"]["by_label"]) == {"negative", "positive", "neutral"}
    assert report["skew"]["statement"]["words"] == []
    assert session.scalar(select(func.count()).select_from(BiasReport)) == 1
    said = json.dumps(report)
    for worker in session.scalars(select(Worker)):
        assert worker.mturk_worker_id not in said
        assert worker.pseudonym not in said


@ON_SQLITE
def test_a_planted_word_is_found_by_the_baseline_and_by_the_skew(
    session: Session, clock: FixedClock, tmp_path: Path
) -> None:
    path = dynasent_file(tmp_path, 240)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if row["gold_label"] == "positive":
            row["sentence"] += " Lovely!"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    import_dataset(session, clock, ImportTerms("dynasent", (path,), 2), key=make.PSEUDONYM_KEY, by="Ada")
    freeze_round(session, clock, "sentiment", 2, SplitTerms(seed=1, shares=(0.5, 0.0, 0.5)), by="Ada")

    report = measure_bias(session, clock, "sentiment", 2).report

    statement = report["baselines"]["views"][0]
    assert statement["above_majority"]["low"] > 0.1
    assert {(one["word"], one["label"]) for one in report["skew"]["statement"]["words"]} == {
        ("lovely", "positive"),
        ("!", "positive"),
    }
    assert report["lengths"]["statement"]["apart"]["longer"] == "positive"


@ON_SQLITE
def test_only_frozen_rounds_are_looked_at(session: Session, clock: FixedClock) -> None:
    make.make_round(session)

    with pytest.raises(Refused, match="dynahit round freeze sentiment 1"):
        measure_bias(session, clock, "sentiment", 1)
    with pytest.raises(NotFound):
        stored_bias(session, "sentiment", 7)
    assert stored_bias(session, "sentiment", 1) is None


@ON_SQLITE
def test_few_examples_give_no_baselines_but_the_rest(session: Session, clock: FixedClock, tmp_path: Path) -> None:
    frozen_round(session, tmp_path, count=12)

    report = measure_bias(session, clock, "sentiment", 2).report

    assert "20 of each are the least" in report["baselines"]["why_none"]
    assert report["repeats"]["rows"] == 12


def test_the_parts_of_the_input_follow_from_the_task() -> None:
    assert [(one.name, one.fields) for one in views_of(task("nli"))] == [
        ("hypothesis alone", ("hypothesis",)),
        ("premise alone", ("premise",)),
        ("words of premise and hypothesis", ("premise", "hypothesis")),
    ]
    assert [one.name for one in views_of(task("hate"))] == ["message alone", "prompt alone"]


class Stored:
    """An example of the QA or hate task as it is stored, with what the report looks at."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(
            {"published": None, "votes": (), "fooled": True, "origin": "x", "overridden": False} | fields
        )


def test_a_task_with_marked_answers_has_baselines_of_its_own() -> None:
    reading = _Reading(task("qa"))
    for number in range(80):
        passage = f"The long letter went to town {1800 + number} years ago and nobody had read it."
        place = passage.index(str(1800 + number))
        answer = {"question": "How long ago?", "answer": f"{1800 + number} years", "answer_start": str(place)}
        split = Split.TRAIN if number % 2 else Split.TEST
        reading.add(
            Stored(  # type: ignore[arg-type]  # only what is read
                context={"passage": passage},
                answer=answer,
                verdict=Verdict.NOT_VALIDATED,
                goal_label="right",
                final_label="right",
                split=split,
                fooled=number % 4 == 0,
            )
        )

    found = reading.report(0)

    question, passage_alone = found["baselines"]["views"]
    assert (question["view"], passage_alone["view"]) == ("the question alone", "the passage alone")
    # The word "years" is half of each answer.
    assert passage_alone["value"] == 1
    assert found["skew"] == {}
    assert set(found["lengths"]["question"]["by_label"]) == {"fooled the model", "did not"}


def test_errors_are_counted_by_the_group_that_is_attacked() -> None:
    reading = _Reading(task("hate"))
    for number in range(10):
        groups = ["religion"] if number < 4 else ["sex", "age"]
        reading.add(
            Stored(  # type: ignore[arg-type]  # only what is read
                context={"prompt": "Say something."},
                answer={"message": f"Message {number}."},
                verdict=Verdict.NOT_VALIDATED,
                goal_label="hateful",
                final_label="hateful",
                split=None,
                fooled=number % 2 == 0,
                published={"details": {"hate_target": groups}},
            )
        )

    errors = reading.report(0)["errors_by_part"]

    assert (errors["all"]["wrong"], errors["all"]["rows"]) == (5, 10)
    assert {name: (one["wrong"], one["rows"]) for name, one in errors["by"]["hate_target"].items()} == {
        "age": (3, 6),
        "religion": (2, 4),
        "sex": (3, 6),
    }
