"""Answers to many inputs: in their order, one unreadable text costs no other, and a failing model is said."""

from __future__ import annotations

import pytest

from hits.predictions import ModelUnavailable
from inference.answers import AT_ONCE, answers
from tests.measured import RuledModel


def test_answers_come_in_the_order_of_the_inputs_and_a_text_without_a_word_has_none() -> None:
    texts = [("x" * (7 * number % 50 + 1),) for number in range(2 * AT_ONCE + 3)]
    model = RuledModel(lambda item: None if len(item[0]) == 8 else f"{len(item[0])}")

    said = answers(model, texts)

    assert [None if one is None else one.label for one in said] == [
        None if len(text) == 8 else str(len(text)) for (text,) in texts
    ]
    assert None in said


def test_a_model_that_fails_counts_for_nothing() -> None:
    with pytest.raises(ModelUnavailable, match="gone"):
        answers(RuledModel(lambda item: "a", lasts=0), [("text",)])
