"""What a part of the input gives away about an answer marked in a passage: without passage, without question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import numpy as np

from hits.measures.baselines import HashedTexts, WordClassifier, learn
from hits.tasks import token_f1

#: So many of the answers in training can be given without the passage.
_ANSWERS: Final = 100
_PLACES: Final = 2**15
#: For each word with which an answer begins so many others are learned, spread over the passage.
_OTHERS: Final = 8
_WORD: Final = re.compile(r"\S+")


@dataclass
class WithoutPassage:
    """Gives the answer that questions like this one had in training, out of the most frequent ones."""

    _questions: list[str] = field(default_factory=list)
    _answers: list[str] = field(default_factory=list)

    def add(self, question: str, answer: str) -> None:
        """Take one more question of the training split in."""
        self._questions.append(question)
        self._answers.append(answer)

    def learned(self, *, seed: int) -> tuple[WordClassifier, list[str]]:
        """Return the classifier and the answers that it chooses among, the most frequent one first."""
        common = [answer for answer, _ in Counter(self._answers).most_common(_ANSWERS)]
        number = {answer: place for place, answer in enumerate(common)}
        texts, labels = HashedTexts(_PLACES), []
        for question, answer in zip(self._questions, self._answers, strict=True):
            if answer in number:
                texts.add((question,))
                labels.append(number[answer])
        return learn(texts, labels, len(common), seed=seed), common


@dataclass
class WithoutQuestion:
    """Marks what looks most like an answer in a passage: a likely first word, and as many words as answers have."""

    _texts: HashedTexts = field(default_factory=lambda: HashedTexts(_PLACES))
    _labels: list[int] = field(default_factory=list)
    _lengths: list[int] = field(default_factory=list)

    def add(self, passage: str, start: int, answer: str) -> None:
        """Take one more passage of the training split in, with its answer at the character ``start``."""
        words = list(_WORD.finditer(passage))
        first = next((place for place, word in enumerate(words) if word.end() > start), None)
        if first is None:
            return
        self._lengths.append(max(1, len(_WORD.findall(answer))))
        step = max(1, len(words) // _OTHERS)
        shift = len(self._lengths) % step
        for place in [first, *(other for other in range(shift, len(words), step) if other != first)]:
            self._texts.add(looks(words, place))
            self._labels.append(int(place == first))

    def learned(self, *, seed: int) -> tuple[WordClassifier, int]:
        """Return the classifier of first words, and the length in words that an answer is given."""
        return learn(self._texts, self._labels, 2, seed=seed), int(median(self._lengths))


def looks(words: Sequence[re.Match[str]], place: int) -> tuple[str, ...]:
    """Return how a word of a passage looks from outside: itself, its neighbours, its shape, how far in it stands."""
    word = words[place].group()
    before = words[place - 1].group() if place else "beginning"
    after = words[place + 1].group() if place + 1 < len(words) else "end"
    kind = "digits" if any(one.isdigit() for one in word) else "capital" if word[:1].isupper() else "small"
    sentence = "first" if before.endswith((".", "?", "!", "beginning")) else "inner"
    return word, before, after, f"{kind} {sentence}", f"tenth{10 * place // len(words)}"


def marked(classifier: WordClassifier, length: int, passage: str) -> str:
    """Return the stretch of the passage that is marked without knowing the question."""
    words = list(_WORD.finditer(passage))
    if not words:
        return ""
    texts = HashedTexts(_PLACES)
    for place in range(len(words)):
        texts.add(looks(words, place))
    first = int(np.argmax(classifier.margins(texts)))
    last = min(first + length, len(words)) - 1
    return passage[words[first].start() : words[last].end()]


def overlaps(given: Sequence[str], right: Sequence[str]) -> list[float]:
    """Return the token F1 of each given answer with the right one."""
    return [round(token_f1(one, other), 4) for one, other in zip(given, right, strict=True)]
