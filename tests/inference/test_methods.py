"""Leaving one word out: predictions are all it needs, and the numbers are differences of log odds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from hits.predictions import AnswerSpan, Attribution, Prediction
from inference.errors import CallerGone, MethodNotSupported, ModelNotLoaded
from inference.methods import AT_ONCE, LEAVE_ONE_WORD_OUT, MOST_WORDS, leave_one_word_out
from inference.right_of_way import stopping_at
from inference.target import ModelCard, ModelInput

WEIGHTS = {"good": 2.0, "bad": -3.0, "not": -1.0}


class Words:
    """The log odds of "positive" are the sum of its words' weights, so that the right scores are known."""

    model_id, revision = "words", "1"
    card = ModelCard("words", "1", ("negative", "positive"))

    def __init__(self) -> None:
        self.batches: list[int] = []

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        self.batches.append(len(inputs))
        return [self._predict(" ".join(item)) for item in inputs]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        return leave_one_word_out(self, item, target, fields=("text",))

    def _predict(self, text: str) -> Prediction:
        positive = 1 / (1 + math.exp(-sum(WEIGHTS.get(word, 0.0) for word in text.split())))
        label = "positive" if positive >= 0.5 else "negative"
        return Prediction("words", "1", label, {"negative": 1 - positive, "positive": positive}, 1.0)


def test_the_score_of_a_word_is_what_it_adds_to_the_log_odds() -> None:
    attribution = leave_one_word_out(Words(), ("a good bad  not good",), "positive", fields=("text",))

    assert [(word.text, round(word.score, 6)) for word in attribution.words] == [
        ("a", 0.0),
        ("good", 2.0),
        ("bad", -3.0),
        ("not", -1.0),
        ("good", 2.0),
    ]
    assert (attribution.method, attribution.steps, attribution.convergence_delta) == (LEAVE_ONE_WORD_OUT, 5, None)


def test_against_the_other_label_the_signs_turn() -> None:
    attribution = leave_one_word_out(Words(), ("good bad",), "negative", fields=("text",))

    assert [round(word.score, 6) for word in attribution.words] == [-2.0, 3.0]


def test_words_of_every_field_are_taken_out_of_that_field() -> None:
    attribution = leave_one_word_out(Words(), ("not good", "bad"), "positive", fields=("premise", "hypothesis"))

    assert [(word.field, word.text, word.start, round(word.score, 6)) for word in attribution.words] == [
        ("premise", "not", 0, -1.0),
        ("premise", "good", 4, 2.0),
        ("hypothesis", "bad", 0, -3.0),
    ]


def test_many_words_are_asked_in_batches_and_stop_at_checkpoints() -> None:
    model = Words()
    leave_one_word_out(model, ("good " * (2 * AT_ONCE + 1),), "positive", fields=("text",))
    assert model.batches == [1, AT_ONCE, AT_ONCE, 1]

    def end() -> None:
        raise CallerGone

    with stopping_at(end), pytest.raises(CallerGone):
        leave_one_word_out(model, ("good",), "positive", fields=("text",))


def test_more_words_than_are_affordable_are_not_supported() -> None:
    with pytest.raises(MethodNotSupported, match=rf"{MOST_WORDS + 1} words.*integrated-gradients"):
        leave_one_word_out(Words(), ("good " * (MOST_WORDS + 1),), "positive", fields=("text",))


def test_an_unknown_label_is_refused() -> None:
    with pytest.raises(ModelNotLoaded, match="'angry'"):
        leave_one_word_out(Words(), ("good",), "angry", fields=("text",))


class Finder(Words):
    """Answers with the last number of the passage, the surer the more words of the question it knows."""

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        return [self._find(*item) for item in inputs]

    def _find(self, passage: str, question: str) -> Prediction:
        numbers = [word for word in passage.split() if word.isdecimal()] or passage.split()[-1:]
        start = passage.rindex(numbers[-1])
        span = AnswerSpan(start, start + len(numbers[-1]), numbers[-1])
        confidence = 0.9 if "when" in question else 0.6
        return Prediction("finder", "1", "", {}, 1.0, span=span, confidence=confidence)


def test_of_a_span_it_is_the_log_odds_of_the_same_words_as_an_answer() -> None:
    passage = "built 1932 closed 1999"
    attribution = leave_one_word_out(Finder(), (passage, "when closed"), "18-22", fields=("passage", "question"))

    scores = {(word.field, word.text): word.score for word in attribution.words}
    odds = math.log(0.9 / 0.1)
    assert scores["passage", "built"] == scores["question", "closed"] == 0
    assert scores["question", "when"] == pytest.approx(odds - math.log(0.6 / 0.4))
    # Without 1999 the model says 1932 with 0.9, so 1999 can have 0.1 at most.
    assert scores["passage", "1999"] == pytest.approx(2 * odds)


@pytest.mark.parametrize("target", ["positive", "3-2", "0-99", ""])
def test_what_is_no_stretch_of_the_passage_is_refused(target: str) -> None:
    with pytest.raises(ModelNotLoaded):
        leave_one_word_out(Finder(), ("built 1932", "when"), target, fields=("passage", "question"))
