"""Skewed words: a planted one is found with its z, chance finds none, and the correction is known."""

from __future__ import annotations

import random

import pytest

from hits.measures.skew import WordCounts, benjamini_hochberg


def test_a_planted_word_is_found_and_chance_finds_nothing() -> None:
    draw = random.Random(1)
    counts = WordCounts(("entailment", "contradiction"))
    for number in range(2000):
        label = ("entailment", "contradiction")[number % 2]
        words = [f"w{draw.randrange(60)}" for _ in range(8)]
        planted = ["nobody"] if label == "contradiction" and number % 8 == 1 else []
        counts.add(" ".join([*words, *planted]), label)

    shown, found, tests = counts.skewed()

    assert [(one.word, one.label) for one in shown] == [("nobody", "contradiction")]
    only = shown[0]
    assert (only.texts, only.with_label, only.share, only.expected) == (250, 250, 1.0, 0.5)
    # 250 texts, a share of 1 where a half is expected: (1 - 0.5) / sqrt(0.25 / 250).
    assert only.z == pytest.approx(250**0.5)
    assert only.pmi == pytest.approx(0.6374, abs=1e-3)
    # "w7" is a letter and a number: each is a word, so that there are 61 and the planted one.
    assert found == 1
    assert tests == 2 * 62


def test_rare_words_and_a_single_label_are_not_tested() -> None:
    counts = WordCounts(("a", "b"))
    for _ in range(19):
        counts.add("rare", "a")
    counts.add("other", "b")
    assert counts.skewed() == ([], 0, 0)
    alone = WordCounts(("a", "b"))
    for _ in range(40):
        alone.add("same", "a")
    assert alone.skewed() == ([], 0, 0)


def test_adjusted_p_values_are_those_of_scipy() -> None:
    # scipy.stats.false_discovery_control, 1.17.1
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005, 0.8]) == pytest.approx([0.025, 0.05, 0.05, 0.025, 0.8])
    assert benjamini_hochberg([]) == []
