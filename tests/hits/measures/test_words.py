"""Words: the same on every machine, signs among them, each text with features of its own."""

from __future__ import annotations

from hits.measures.words import ngram_places, words_of


def test_signs_and_numbers_are_words() -> None:
    assert words_of("Don’t STOP, 12 Straße 😀!") == ["don’t", "stop", ",", "12", "strasse", "😀", "!"]
    assert words_of("  ") == []


def test_the_same_word_in_another_text_is_another_feature() -> None:
    first, second = list(ngram_places(("soup", "bread"), 2**20)), list(ngram_places(("bread", "soup"), 2**20))

    assert len(first) == 4
    assert not set(first) & set(second)
    assert first == list(ngram_places(("soup", "bread"), 2**20))
    assert all(place < 7 for place in ngram_places(("soup",), 7))
