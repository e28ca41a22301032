"""The overlap of two answers, as SQuAD v1.1 reckons it."""

from __future__ import annotations

import re
import string
from collections import Counter
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


def official_words(answer: str) -> list[str]:
    """What SQuAD's evaluate-v1.1.py and evaluate-v2.0.py make of an answer, step by step as they do."""
    text = "".join(character for character in answer.lower() if character not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def official_f1(answer: str, reference: str) -> float:
    """evaluate-v2.0.py's compute_f1."""
    mine, theirs = official_words(answer), official_words(reference)
    shared = sum((Counter(mine) & Counter(theirs)).values())
    if not mine or not theirs:
        return float(mine == theirs)
    if shared == 0:
        return 0.0
    precision, recall = shared / len(mine), shared / len(theirs)
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("\u201cThe bridge\u201d", ["\u201c", "bridge\u201d"]),
        ("bridge\u2014the old one", ["bridge\u2014", "old", "one"]),
        ("an\u2013a", ["\u2013"]),
        ("the\u2019s", ["\u2019s"]),
        ("a\u0301 la carte", ["\u0301", "la", "carte"]),
        ("a-the", ["athe"]),
        ("the_end", ["theend"]),
        ("a\u00a0bee", ["bee"]),
        ("\u00e0 the\u00e2tre", ["\u00e0", "the\u00e2tre"]),
        ("plan A", ["plan"]),
    ],
)
def test_articles_go_wherever_the_official_script_sees_a_word_end(answer: str, words: list[str]) -> None:
    assert official_words(answer) == words
    assert answer_words(answer) == words


_PIECES = st.sampled_from(
    [*"aAnthe \n.,'-_$1", *"\u2019\u201c\u201d\u2014\u0301\u00e9\u00a0\u200d\u0130\u05d0", "the", "an"]
)


@given(st.lists(_PIECES, max_size=12).map("".join), st.lists(_PIECES, max_size=12).map("".join))
def test_the_words_and_their_overlap_are_those_of_the_official_script(answer: str, reference: str) -> None:
    assert answer_words(answer) == official_words(answer)
    assert token_f1(answer, reference) == pytest.approx(official_f1(answer, reference), abs=1e-12)


def test_an_exact_match_has_the_words_in_order() -> None:
    assert exact_match("The old bridge.", "old bridge")
    assert not exact_match("bridge old", "old bridge")
