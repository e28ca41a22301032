"""Measures that can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hits.predictions import AnswerSpan, Attribution, Prediction
from inference.errors import NothingToRead
from inference.target import ModelCard, ModelInput
from inference.training.corpora import Asked, Row
from inference.training.measures import measure

LABELS = ("no", "yes")


class Parrot:
    """Says the label that its text is, or the first word of a passage whose question is not "what"; "…" is no word."""

    model_id, revision = "parrot", "1"
    card = ModelCard("parrot", "1", LABELS)

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        if any("…" in item for item in inputs):
            raise NothingToRead
        return [self._said(*item) for item in inputs]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        raise NotImplementedError

    def _said(self, text: str, question: str = "") -> Prediction:
        end = text.find(" ")
        span = AnswerSpan(0, end, text[:end]) if question else None
        return Prediction("parrot", "1", "" if question else text, {}, 0.0, span=span)


def test_accuracy_macro_f1_and_confusion_count_every_row() -> None:
    said_and_right = [("yes", "yes")] * 3 + [("yes", "no")] + [("no", "no")] * 4 + [("no", "yes")] * 2
    rows = [Row((said,), right, ()) for said, right in said_and_right]
    done: list[int] = []

    result = measure(Parrot(), rows, advance=done.append)

    assert result["confusion"] == {"no": {"no": 4, "yes": 1}, "yes": {"no": 2, "yes": 3}}
    assert (result["rows"], result["accuracy"]) == (10, 0.7)
    # no: 2 * 4 / (5 + 6); yes: 2 * 3 / (5 + 4)
    assert result["macro_f1"] == pytest.approx((8 / 11 + 6 / 9) / 2, abs=1e-4)
    assert sum(done) == 10


def test_of_several_answers_the_nearest_counts_and_less_than_four_tenths_is_not_right() -> None:
    rows = [
        Asked("May was warm", "when", (AnswerSpan(0, 12, "May was warm"), AnswerSpan(0, 3, "the May.")), "a"),
        Asked("May was warm and dry", "when", (AnswerSpan(0, 20, "May was warm and"),), "a"),
        Asked("May was warm and dry", "when", (AnswerSpan(0, 20, "May was warm and dry"),), "a"),
    ]

    result = measure(Parrot(), rows)

    assert (result["rows"], result["exact_match"]) == (3, pytest.approx(1 / 3, abs=1e-4))
    assert result["f1"] == pytest.approx((1 + 2 / 5 + 2 / 6) / 3, abs=1e-4)
    assert result["right"] == pytest.approx(2 / 3, abs=1e-4)


def test_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="no rows"):
        measure(Parrot(), [])


def test_a_row_of_which_no_word_is_seen_is_wrong_and_costs_no_other() -> None:
    rows = [Row(("yes",), "yes", ()), Row(("…",), "yes", ()), Row(("no",), "no", ())]
    done: list[int] = []

    result = measure(Parrot(), rows, advance=done.append)

    assert (result["rows"], result["unread"], result["accuracy"]) == (3, 1, pytest.approx(2 / 3, abs=1e-4))
    assert result["confusion"] == {"no": {"no": 1, "yes": 0}, "yes": {"no": 0, "yes": 1, "": 1}}
    # no: 1; yes: 2 * 1 / (1 + 2)
    assert result["macro_f1"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-4)
    assert sum(done) == 3
    asked = [Asked("May was warm", one, (AnswerSpan(0, 3, "May"),), "a") for one in ("when", "…")]
    spans = measure(Parrot(), asked)
    assert (spans["unread"], spans["exact_match"], spans["f1"], spans["right"]) == (1, 0.5, 0.5, 0.5)
    assert "unread" not in measure(Parrot(), rows[:1])
