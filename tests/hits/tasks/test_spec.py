"""What a task takes and refuses."""

from __future__ import annotations

import dataclasses

import pytest

from hits.errors import InvalidAnswer, InvalidInput
from hits.tasks import digest_of, incomplete, task
from hits.tasks._spec import checked_text

SENTIMENT = task("sentiment")


def test_a_text_is_trimmed_outside_and_untouched_inside() -> None:
    text = checked_text("statement", "Your statement", "  so\r\nwhat?  \u202b\u05e9\u05dc\u05d5\u05dd\u202c 👍\t", 100)

    assert text == "so\nwhat?  \u202b\u05e9\u05dc\u05d5\u05dd\u202c 👍"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "is missing"),
        (7, "must be text, not int"),
        ("", "is empty"),
        (" \u200b\n ", "is empty"),
        ("x" * 101, r"has 101 characters; 100 are the most"),
        ("x" * 100_000, r"has 100,000 characters"),
        ("a\0b", r"U\+0000 at 2"),
        ("a\ud800", r"U\+D800 at 2"),
    ],
)
def test_unusable_text_is_refused_with_the_reason(value: object, message: str) -> None:
    with pytest.raises(InvalidAnswer, match=message) as caught:
        checked_text("statement", "Your statement", value, 100)
    assert caught.value.field == "statement"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "expected an object with 'prompt', not list"),
        ({"prompt": "p", "extra": "x"}, "unknown field 'extra'"),
        ({}, "Prompt is missing"),
    ],
)
def test_an_unusable_context_is_refused_with_the_reason(raw: object, message: str) -> None:
    with pytest.raises(InvalidAnswer, match=message):
        SENTIMENT.check_context(raw)


def test_the_model_reads_the_model_fields_only() -> None:
    assert SENTIMENT.model_input({"prompt": "p"}, {"statement": "s"}) == {"statement": "s"}


def test_a_model_is_fooled_when_it_says_another_label() -> None:
    assert SENTIMENT.is_fooled("negative", "neutral")
    assert not SENTIMENT.is_fooled("neutral", "neutral")
    with pytest.raises(InvalidInput, match="'sad' is not a label of the sentiment task"):
        SENTIMENT.is_fooled("sad", "neutral")


def test_the_goal_is_a_sentence() -> None:
    assert SENTIMENT.goal_sentence("neutral") == "Write a NEUTRAL statement that the model takes for something else."


def test_equal_fields_have_equal_digests_whatever_their_order() -> None:
    assert digest_of({"a": "1", "b": "2"}) == digest_of({"b": "2", "a": "1"})
    assert digest_of({"a": "1"}) != digest_of({"a": "2"})


def test_every_finding_about_a_task_is_told() -> None:
    broken = dataclasses.replace(
        SENTIMENT,
        labels=(SENTIMENT.labels[0], SENTIMENT.labels[0]),
        model_fields=("nowhere",),
        answer_fields=(dataclasses.replace(SENTIMENT.answer_fields[0], name="prompt"),),
    )

    findings = incomplete(broken)

    assert len(findings) > 5
    assert incomplete(SENTIMENT) == []
