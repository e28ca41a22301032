"""Words at exact offsets, whatever a worker types."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.words import gather, word_spans


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The food, sadly, was cold.", ["The", "food", ",", "sadly", ",", "was", "cold", "."]),
        ("I don't, he won’t", ["I", "don't", ",", "he", "won’t"]),
        ("'quoted'", ["'", "quoted", "'"]),
        ("a\r\nb\tc\u00a0d", ["a", "b", "c", "d"]),
        ("cafe\u0301 noe\u0308l", ["cafe\u0301", "noe\u0308l"]),
        ("good 👍🏽👨‍👩‍👧 day", ["good", "👍🏽👨‍👩‍👧", "day"]),
        ("!\u0301 ok", ["!\u0301", "ok"]),
        ("האוכל היה טעים!", ["האוכל", "היה", "טעים", "!"]),
        ("مطعم رائع؟", ["مطعم", "رائع", "؟"]),
        ("好吃 very", ["好", "吃", "very"]),
        ("a\x00b", ["a\x00b"]),
        ("", []),
        (" \r\n\t ", []),
    ],
)
def test_words_are_the_texts_own_characters(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text())
def test_words_are_in_order_apart_and_cover_all_that_is_no_white_space(text: str) -> None:
    spans = word_spans(text)

    covered = [index for start, end in spans for index in range(start, end)]
    assert covered == sorted(set(covered))
    assert all(start < end for start, end in spans)
    left = set(range(len(text))) - set(covered)
    assert all(text[index].isspace() for index in left)
    assert not any(text[index].isspace() for index in covered)


def test_a_piece_over_two_words_makes_them_one() -> None:
    spans, owners = gather([(0, 2), (3, 5), (6, 8)], [(0, 1), (1, 5), (6, 8), (0, 0)])

    assert spans == [(0, 5), (6, 8)]
    assert owners == [0, 0, 1, None]


@given(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=10))
def test_every_piece_lies_in_its_word(text: str, raw: list[tuple[int, int]]) -> None:
    pieces = sorted((min(pair), max(pair)) for pair in raw)

    spans, owners = gather(word_spans(text), pieces)

    assert spans == sorted(spans)
    for (start, end), owner in zip(pieces, owners, strict=True):
        if owner is not None:
            assert spans[owner][0] < end
            assert start < spans[owner][1]


def test_a_hundred_kilobytes_split_in_no_time() -> None:
    text = "Das Essen war gut, naïve 👍🏽! " * 4000
    started = time.perf_counter()

    assert len(word_spans(text)) == 4000 * 8
    assert time.perf_counter() - started < 2
