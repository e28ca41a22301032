"""The classifier of words: it learns what words tell, nothing where they tell nothing, and the same each time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hits.measures.baselines import HashedTexts, learn, most_frequent


def rows(count: int, *, seed: int, planted: bool) -> tuple[HashedTexts, list[int]]:
    draw = random.Random(seed)
    texts, labels = HashedTexts(2**12), []
    for _ in range(count):
        label = draw.randrange(3)
        words = [f"w{draw.randrange(50)}" for _ in range(6)] + ([("not", "quite", "indeed")[label]] if planted else [])
        draw.shuffle(words)
        texts.add((" ".join(words),))
        labels.append(label)
    return texts, labels


def right_of(planted: bool) -> float:
    train, learned = rows(600, seed=1, planted=planted)
    test, expected = rows(300, seed=2, planted=planted)
    said = learn(train, learned, 3).classify(test)
    return sum(one == right for one, right in zip(said, expected, strict=True)) / len(expected)


def test_it_learns_a_word_that_gives_the_label_away() -> None:
    assert right_of(planted=True) > 0.95


def test_it_learns_nothing_where_there_is_nothing() -> None:
    assert right_of(planted=False) == pytest.approx(1 / 3, abs=0.1)


def test_the_same_rows_and_seed_give_the_same_weights() -> None:
    train, labels = rows(100, seed=1, planted=True)

    assert np.array_equal(learn(train, labels, 3, seed=5).weights, learn(train, labels, 3, seed=5).weights)
    assert not np.array_equal(learn(train, labels, 3, seed=5).weights, learn(train, labels, 3, seed=6).weights)


def test_texts_without_words_are_classified_as_well() -> None:
    texts = HashedTexts(2**8)
    for text in ("", "good", "good", ""):
        texts.add((text,))

    assert learn(texts, [0, 1, 1, 0], 2).classify(texts) == [0, 1, 1, 0]
    assert most_frequent([1, 0, 1], 3) == 1
    with pytest.raises(ValueError, match="0 texts"):
        learn(HashedTexts(), [], 2)
