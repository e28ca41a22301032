"""Lengths and repeats: known answers."""

from __future__ import annotations

import pytest

from hits.measures.profiles import Lengths, Repeats, area_between


def test_the_area_is_how_often_the_other_is_longer() -> None:
    assert area_between([1, 2], [3, 4]) == 1
    assert area_between([3, 4], [1, 2]) == 0
    assert area_between([1, 2, 3], [1, 2, 3]) == 0.5
    assert area_between([1], [1, 2, 2]) == pytest.approx(5 / 6)


def test_lengths_are_counted_in_words_by_label() -> None:
    lengths = Lengths()
    for text, label in (("a b", "short"), ("a b c d", "short"), ("a b c d e", "long"), ("a b c d e f", "long")):
        lengths.add(text, label)

    found = lengths.profile(("long", "short", "absent"))

    assert list(found["by_label"]) == ["long", "short"]
    assert found["by_label"]["short"] == pytest.approx(
        {"texts": 2, "mean": 3, "q05": 2.1, "q25": 2.5, "q50": 3, "q75": 3.5, "q95": 3.9}
    )
    assert found["apart"] == {"area": 1.0, "shorter": "short", "longer": "long"}
    assert Lengths().profile(("a", "b")) == {"by_label": {}, "apart": None}


def test_texts_repeat_whatever_their_capitals_and_spaces() -> None:
    repeats = Repeats()
    for text, label in (("Cold soup", "a"), ("cold  SOUP", "b"), ("cold soup!", "a"), ("cold soup", "a")):
        repeats.add((text,), label)

    assert repeats.profile() == {
        "rows": 4,
        "distinct": 2,
        "repeats": 2,
        "most_often": 3,
        "with_several_labels": 1,
    }
