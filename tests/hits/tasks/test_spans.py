"""Stretches of a passage, whatever characters it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.tasks._spans import character_offset, occurrences, utf16_offset

EMOJI = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
#: Emoji of several characters, combining marks, right-to-left words, line ends.
MIXED = f"Ze\u0301bra {EMOJI} \u05e9\u05dc\u05d5\u05dd\nZebra 10\u202f\u20ac \U0001f600 cafe\u0301"
texts = st.text(st.characters(exclude_categories=["Cs"]))


def in_utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@given(texts, st.integers(0, 200))
def test_offsets_agree_with_the_browsers_in_both_directions(text: str, at: int) -> None:
    at = min(at, len(text))

    assert utf16_offset(text, at) == in_utf16(text[:at])
    assert character_offset(text, in_utf16(text[:at])) == at


@given(texts, st.integers(-3, 200))
def test_an_offset_that_is_no_place_in_the_text_is_refused(text: str, units: int) -> None:
    places = {in_utf16(text[:at]) for at in range(len(text) + 1)}

    if units in places:
        assert in_utf16(text[: character_offset(text, units)]) == units
    else:
        with pytest.raises(ValueError, match="offset"):
            character_offset(text, units)


@pytest.mark.parametrize("at", [-1, len(MIXED) + 1])
def test_a_character_offset_outside_the_text_is_refused(at: int) -> None:
    with pytest.raises(ValueError, match="offset"):
        utf16_offset(MIXED, at)


@given(st.data(), texts.filter(str.strip))
def test_every_stretch_is_found_where_it_stands(data: st.DataObject, text: str) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))

    found = occurrences(text, text[start:end])

    assert found
    assert all(text[one.start : one.end] == text[start:end] for one in found)


@pytest.mark.parametrize(
    ("passage", "answer", "found"),
    [
        ("The toll was two pence.", "two pence", ["two pence"]),
        ("The toll was two pence.", "TWO\r\n pence", ["two pence"]),
        ("art is a party", "art", ["art"]),
        ("a party", "art", ["art"]),
        ("aaa", "aa", ["aa", "aa"]),
        ("\u201cRun\u201d, she said: it\u2019s late", "it's late", ["it\u2019s late"]),
        ("in 1914\u20131918 or so", "1914-1918", ["1914\u20131918"]),
        ("a cafe\u0301 there", "caf\u00e9", ["cafe\u0301"]),
        ("a caf\u00e9 there", "cafe\u0301", ["caf\u00e9"]),
        ("yes \U0001f600", "\U0001f600", ["\U0001f600"]),
        ("\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u05e2\u05d5\u05dc\u05dd", ["\u05e2\u05d5\u05dc\u05dd"]),
        ("a.b (c)", "(C)", ["(c)"]),
        ("nothing of it", "something", []),
        ("anything", "", []),
        ("anything", " ", []),
    ],
)
def test_an_answer_is_found_as_written_or_as_meant(passage: str, answer: str, found: list[str]) -> None:
    assert [passage[one.start : one.end] for one in occurrences(passage, answer)] == found


def test_an_exact_place_comes_before_an_alike_one() -> None:
    assert [one.start for one in occurrences("polish Polish", "Polish")] == [7]


def test_places_are_told_apart_by_what_stands_around_them() -> None:
    first, second = occurrences("First the toll was low.\nThen the toll rose.", "the toll")

    assert (first.before, first.after) == ("First ", " was low.")
    assert (second.before, second.after) == ("Then ", " rose.")
