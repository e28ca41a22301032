"""Emoji as words: the right names, and the way back to every character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.emoji_names import spell_out

FAMILY = "👨\u200d👩\u200d👧"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I 🔪 it", "I kitchen knife it"),
        ("some🦊", "some fox"),
        ("🐀make me 🤢", "rat make me nauseated face"),
        ("💸💸", "money with wings money with wings"),
        ("👳🏾", "person wearing turban medium dark skin tone"),
        (f"a {FAMILY} b", "a family man woman girl b"),
        ("1 * 2 # 3", "1 * 2 # 3"),
        ("plain naïve text", "plain naïve text"),
        ("", ""),
    ],
)
def test_an_emoji_becomes_its_name_in_plain_words(text: str, expected: str) -> None:
    assert spell_out(text).text == expected


def test_a_word_of_a_name_leads_back_to_the_whole_emoji() -> None:
    text = f"ab {FAMILY}c"
    spelled = spell_out(text)
    at = spelled.text.index("woman")

    assert spelled.origin(at, at + 5) == (3, 8)
    assert spelled.origin(0, 2) == (0, 2)
    assert spelled.origin(len(spelled.text) - 1, len(spelled.text)) == (8, 9)


@given(st.text(st.sampled_from("ab 👍🏽\u200d👩❤️🇩🇪1\u20e3©\n\u0301ש"), max_size=25) | st.text(max_size=40))
def test_every_character_has_its_origin_and_kept_ones_are_themselves(text: str) -> None:
    spelled = spell_out(text)

    assert len(spelled.origins) == len(spelled.text)
    covered = 0
    for character, (start, end) in zip(spelled.text, spelled.origins, strict=True):
        assert start <= covered
        covered = max(covered, end)
        assert end - start > 1 or text[start:end] == character or spell_out(text[start:end]).text != text[start:end]
    assert covered == len(text)


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_text_without_emoji_stays_as_it_is(text: str) -> None:
    spelled = spell_out(text)

    assert spelled.text == text
    assert list(spelled.origins) == [(index, index + 1) for index in range(len(text))]
