"""What the model said, made ready to be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from app.worker.answers import (
    AttemptView,
    attempt_view,
    mark,
    marked,
    overlap_percent,
    passages,
    percent,
    pieces,
    read_sentences,
)
from hits.attempts import store_attribution
from hits.models import Attempt
from hits.predictions import Attribution, WordAttribution
from hits.states import AttemptState
from hits.tasks import task
from hits.tasks.sentiment import TASK
from tests.app.four_tasks import CONTEXTS, PASSAGE, creation_hit, fooling_example
from tests.factories import make_attempt

NLI, QA = task("nli"), task("qa")


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (0.0, "under 1%"),
        (0.0049, "under 1%"),
        (0.0051, "1%"),
        (0.5, "50%"),
        (0.994, "99%"),
        (0.995, "over 99%"),
        (0.9999, "over 99%"),
        (1.0, "100%"),
    ],
)
def test_a_percentage_claims_no_more_certainty_than_there_is(probability: float, words: str) -> None:
    assert percent(probability) == words


@pytest.mark.parametrize(
    ("score", "expected"),
    [(1.0, "for-3"), (0.5, "for-2"), (0.2, "for-1"), (0.05, ""), (0.0, ""), (-0.05, ""), (-0.2, "against-1"),
     (-0.5, "against-2"), (-1.0, "against-3")],
)  # fmt: skip
def test_direction_and_weight_of_a_mark_follow_the_score(score: float, expected: str) -> None:
    assert mark(score, 1.0) == expected


def test_words_without_any_weight_stay_unmarked() -> None:
    assert mark(0.0, 0.0) == ""


@given(
    text=st.text(max_size=40),
    spans=st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50), st.floats(-1, 1)), max_size=8),
)
def test_the_pieces_are_always_the_whole_text(text: str, spans: list[tuple[int, int, float]]) -> None:
    words = [WordAttribution(max(start, 0), end, "", score) for start, end, score in spans]

    assert "".join(piece.text for piece in pieces(text, words, 1.0)) == text


def test_an_answered_attempt_shows_bars_in_the_tasks_order(session: Session) -> None:
    attempt = make_attempt(
        session, probabilities={"negative": 0.15, "positive": 0.8, "neutral": 0.05}, predicted_label="positive"
    )

    view = attempt_view(TASK, attempt, 1)

    assert [(bar.name, bar.percent, bar.width, bar.is_top, bar.is_goal) for bar in view.bars] == [
        ("negative", "15%", "15.0", False, True),
        ("positive", "80%", "80.0", True, False),
        ("neutral", "5%", "5.0", False, False),
    ]
    assert (view.fooled, view.predicted, view.percent, view.goal) == (True, "positive", "80%", "negative")
    assert view.explanation is None


def test_an_attempt_without_an_answer_has_no_bars(session: Session) -> None:
    view = attempt_view(TASK, make_attempt(session, state=AttemptState.UNANSWERED), 1)

    assert (view.answered, view.fooled, view.bars, view.predicted) == (False, False, (), "")


def test_a_stored_explanation_is_shown_with_its_words(session: Session) -> None:
    attempt = make_attempt(session, answer={"statement": "Cold soup, again."})
    words = (
        WordAttribution(0, 4, "Cold", -0.8),
        WordAttribution(5, 9, "soup", 0.02),
        WordAttribution(11, 16, "again", 0.4),
    )
    store_attribution(session, attempt, Attribution("m", "r", "ig", 20, "positive", words, 0.1, False, 0.5))

    explanation = attempt_view(TASK, attempt, 1).explanation

    assert explanation is not None
    (shown,) = explanation.texts
    assert shown.label == ""
    assert [(piece.text, piece.mark) for piece in shown.pieces] == [
        ("Cold", "against-3"),
        (" ", ""),
        ("soup", ""),
        (", ", ""),
        ("again", "for-2"),
        (".", ""),
    ]
    assert [(row.text, row.direction, row.share, row.number) for row in explanation.rows] == [
        ("Cold", "against", "100", "-0.800"),
        ("soup", "hardly any", "2", "+0.020"),
        ("again", "for", "50", "+0.400"),
    ]
    assert (explanation.method, explanation.steps, explanation.delta) == ("ig", 20, "0.1000")
    assert explanation.target == "positive"
    assert not explanation.exact


# Answers marked in a passage


def qa_view(session: Session, **answer: str) -> tuple[Attempt, AttemptView]:
    attempt = fooling_example(session, creation_hit(session, "qa"), **answer).attempt
    return attempt, attempt_view(QA, attempt, 1)


def test_a_marked_answer_is_shown_beside_the_models_with_their_overlap(session: Session) -> None:
    attempt, view = qa_view(session)

    assert (view.own_answer, view.predicted, view.overlap, view.percent) == ("stone", "“old bridge”", "0%", "60%")
    assert (view.bars, view.written) == ((), ("What was the second bridge made of?",))
    (passage,) = passages(QA, CONTEXTS["qa"], attempt)
    assert [(piece.text, piece.mark) for piece in passage.pieces if piece.mark] == [
        ("old bridge", "model"),
        ("stone", "mine"),
    ]
    assert "".join(piece.text for piece in passage.pieces) == PASSAGE
    assert (passage.markable, passage.model_mark) == (True, "4-14")


def test_the_models_mark_counts_as_the_browser_does(session: Session) -> None:
    hit = creation_hit(session, "qa", context={"passage": "\U0001f468\U0001f469 x old bridge, stone"})
    attempt = fooling_example(session, hit, answer_start="17").attempt
    attempt.predicted_answer = {"start": 5, "end": 15, "text": "old bridge"}

    (passage,) = passages(QA, hit.context.fields if hit.context else {}, attempt)

    assert passage.model_mark == "7-17"


@given(
    text=st.text(max_size=30),
    spans=st.dictionaries(st.sampled_from(["mine", "model"]), st.tuples(st.integers(0, 40), st.integers(0, 40))),
)
def test_marked_pieces_are_always_the_whole_text(text: str, spans: dict[str, tuple[int, int]]) -> None:
    found = marked(text, spans)

    assert "".join(piece.text for piece in found) == text
    for name, (start, end) in spans.items():
        if start <= end <= len(text):
            assert "".join(piece.text for piece in found if name in piece.mark.split()) == text[start:end]


@pytest.mark.parametrize(("f1", "words"), [(0.0, "0%"), (0.3999, "39%"), (0.4, "40%"), (0.58, "58%"), (1.0, "100%")])
def test_an_overlap_below_the_threshold_never_reads_as_the_threshold(f1: float, words: str) -> None:
    assert overlap_percent(f1) == words


def test_the_page_says_how_much_the_model_saw(session: Session) -> None:
    attempt, _ = qa_view(session)
    attempt.truncated, attempt.characters_read = True, {"passage": 120, "question": 35}

    assert read_sentences(QA, attempt) == [f"Of “Passage” it read 120 of {len(PASSAGE)} characters."]


def test_words_are_marked_in_every_text_that_the_model_read(session: Session) -> None:
    attempt = fooling_example(session, creation_hit(session, "nli")).attempt
    words = (
        WordAttribution(4, 7, "old", 1.0, "premise"),
        WordAttribution(4, 9, "first", -0.5, "hypothesis"),
        WordAttribution(0, 3, "The", 0.2),
    )
    target = "contradiction"
    store_attribution(session, attempt, Attribution("m", "r", "ig", 12, target, words, None, True, 0.5))

    explanation = attempt_view(NLI, attempt, 1).explanation

    assert explanation is not None
    assert [text.label for text in explanation.texts] == ["Passage", "Your statement"]
    assert [[piece.text for piece in text.pieces if piece.mark] for text in explanation.texts] == [
        ["old"],
        ["The", "first"],
    ]
    assert [(row.where, row.text) for row in explanation.rows] == [
        ("Passage", "old"),
        ("Your statement", "first"),
        ("Your statement", "The"),
    ]
    assert (explanation.target, explanation.delta) == ("definitely incorrect", "")


def test_a_span_is_named_by_its_words(session: Session) -> None:
    attempt, _ = qa_view(session)
    store_attribution(session, attempt, Attribution("m", "r", "ig", 12, "4-14", (), 0.0, True, 0.5))

    explanation = attempt_view(QA, attempt, 1).explanation

    assert explanation is not None
    assert explanation.target == "“old bridge”"
