"""What the model said, made ready to be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from app.worker.answers import attempt_view, mark, percent, pieces
from hits.attempts import store_attribution
from hits.predictions import Attribution, WordAttribution
from hits.states import AttemptState
from hits.tasks.sentiment import TASK
from tests.factories import make_attempt


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
