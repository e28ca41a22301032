"""The overlap of two answers, as SQuAD v1.1 reckons it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.tasks import RIGHT_FROM_F1, exact_match, token_f1
from hits.tasks._squad import answer_words


@pytest.mark.parametrize(
    ("answer", "reference", "f1"),
    [
        ("Paris", "paris", 1.0),
        ("The old bridge", "an old bridge!", 1.0),
        ("in the year 1811", "1811", 0.5),
        ("black cat black cat", "black cat", 2 / 3),
        ("the flood of 1811", "1742", 0.0),
        ("", "1742", 0.0),
        ("the", "a", 1.0),
        ("the", "cat", 0.0),
        ("\U0001f44d\U0001f3fd great", "\U0001f44d\U0001f3fd", 2 / 3),
        ("\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u05e9\u05dc\u05d5\u05dd", 2 / 3),
        ("rock'n'roll", "rocknroll", 1.0),
        ("two\r\npence", "two pence", 1.0),
    ],
)
def test_the_overlap_counts_words_without_case_punctuation_and_articles(answer: str, reference: str, f1: float) -> None:
    assert token_f1(answer, reference) == pytest.approx(f1)
    assert token_f1(reference, answer) == token_f1(answer, reference)


def test_exactly_the_threshold_is_not_below_it() -> None:
    assert token_f1("one two", "one three four") == RIGHT_FROM_F1
    assert token_f1("one two three four five", "one two six seven eight") == RIGHT_FROM_F1
    assert token_f1("one two three", "one four five") < RIGHT_FROM_F1


@given(shared=st.integers(0, 40), mine=st.integers(0, 40), theirs=st.integers(0, 40))
def test_the_threshold_is_met_exactly_where_the_fraction_meets_it(shared: int, mine: int, theirs: int) -> None:
    answer = " ".join(["s"] * shared + [f"m{n}" for n in range(mine)])
    reference = " ".join(["s"] * shared + [f"t{n}" for n in range(theirs)])
    words = 2 * shared + mine + theirs
    expected = Fraction(2 * shared, words) if words else Fraction(1)

    assert (token_f1(answer, reference) >= RIGHT_FROM_F1) is (expected >= Fraction(2, 5))
    assert (token_f1(answer, reference) == RIGHT_FROM_F1) is (expected == Fraction(2, 5))


@given(st.text(), st.text())
def test_it_is_symmetric_from_0_to_1_and_1_for_the_same(answer: str, reference: str) -> None:
    assert 0.0 <= token_f1(answer, reference) <= 1.0
    assert token_f1(answer, reference) == token_f1(reference, answer)
    assert token_f1(answer, answer) == 1.0
    assert exact_match(answer, reference) is (answer_words(answer) == answer_words(reference))


def test_an_exact_match_has_the_words_in_order() -> None:
    assert exact_match("The old bridge.", "old bridge")
    assert not exact_match("bridge old", "old bridge")
