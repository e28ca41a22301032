"""What several models say about one input."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.operations.ask_models import BROKE, ask_models
from hits.errors import InvalidAnswer
from hits.predictions import AnswerSpan, Attribution, MemberAnswer, ModelUnavailable, Prediction
from hits.tasks import task

SENTIMENT, QA = task("sentiment"), task("qa")
TEXT = {"statement": "The soup was cold."}


@dataclass
class Model:
    """A model that says what it is told to say."""

    prediction: Prediction | Exception
    explain_error: Exception | None = None
    explained: list[tuple[str, Any]] = field(default_factory=list)

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        if isinstance(self.prediction, Exception):
            raise self.prediction
        return self.prediction

    def explain(
        self, task_code: str, fields: Mapping[str, str], target: str, *, model: Any = None, **_: object
    ) -> Attribution:
        if self.explain_error is not None:
            raise self.explain_error
        self.explained.append((target, model))
        return Attribution("m", "1", "rule", 1, target, (), None, True, 0.0)


def says(label: str, **fields: Any) -> Prediction:
    return Prediction("m", "1", label, {label: 1.0}, 2.0, **fields)


def test_each_model_is_asked_and_explains_its_own_answer_or_the_label_that_is_wanted() -> None:
    one, other = Model(says("negative")), Model(says("positive"))

    found = ask_models(SENTIMENT, TEXT, [("a", lambda: one), ("b", lambda: other)])
    ask_models(SENTIMENT, TEXT, [("b", lambda: other)], label="neutral")

    assert [(said.reference, said.answer.label if said.answer else "") for said in found] == [
        ("a", "negative"),
        ("b", "positive"),
    ]
    assert one.explained == [("negative", None)]
    assert other.explained == [("positive", None), ("neutral", None)]


def test_a_model_that_fails_is_told_in_words_and_the_others_still_answer(caplog: pytest.LogCaptureFixture) -> None:
    def missing() -> Model:
        raise ModelUnavailable("It is not here.")

    models = [
        ("missing", missing),
        ("busy", lambda: Model(ModelUnavailable("It is busy."))),
        ("broken", lambda: Model(RuntimeError("The soup was cold."))),
        ("mute", lambda: Model(says("negative"), ModelUnavailable("No words."))),
        ("lame", lambda: Model(says("negative"), RuntimeError("x"))),
    ]
    with caplog.at_level(logging.ERROR):
        found = ask_models(SENTIMENT, TEXT, models)

    assert [said.failure for said in found] == ["It is not here.", "It is busy.", BROKE, "", ""]
    assert [said.unexplained for said in found[3:]] == ["No words.", BROKE]
    assert "broken raised" in caplog.text
    assert "cold" not in caplog.text


def test_the_members_of_an_ensemble_follow_it_each_with_its_words() -> None:
    members = tuple(
        MemberAnswer(name, "1", label, {label: 1.0}) for name, label in (("x", "negative"), ("y", "positive"))
    )
    ensemble = Model(says("negative", members=members, policy="majority"))

    found = ask_models(SENTIMENT, TEXT, [("e", lambda: ensemble)])

    assert [(said.model_id, said.attribution is not None) for said in found] == [("m", False), ("x", True), ("y", True)]
    assert ensemble.explained == [("negative", ("x", "1")), ("positive", ("y", "1"))]


def test_a_reader_of_passages_explains_its_stretch_if_it_marked_one() -> None:
    marked = Model(Prediction("m", "1", "", {}, 1.0, span=AnswerSpan(4, 8, "soup")))
    nothing = Model(Prediction("m", "1", "", {}, 1.0))
    fields = {"passage": "The soup was cold.", "question": "What was cold?"}

    found = ask_models(QA, fields, [("a", lambda: marked), ("b", lambda: nothing)], label="right")

    assert marked.explained == [("4-8", None)]
    assert found[1].unexplained.startswith("It marked no answer")


def test_a_text_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidAnswer):
        ask_models(SENTIMENT, TEXT, [("a", lambda: Model(InvalidAnswer("statement", "Nothing to read.")))])
