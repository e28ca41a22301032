"""Words that come with one label more often than chance, with a correction for how many were looked at."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from hits.measures.words import words_of

#: A word in fewer texts is not tested: the normal distribution is a poor stand-in there.
LEAST_TEXTS: Final = 20
#: The share of false finds among all finds that is put up with.
FALSE_FINDS: Final = 0.01
SHOWN: Final = 20
#: What is added to every count before a PMI is reckoned, as Gururangan and others (2018) did.
SMOOTHING: Final = 100


@dataclass(frozen=True)
class Skewed:
    """A word and the label it comes with: in ``with_label`` of the ``texts`` that hold it.

    ``z`` is by how many standard errors that share is off the label's share of all texts (Gardner and others 2021,
    "Competency problems", there with equal shares); ``adjusted_p`` is two-sided, by Benjamini and Hochberg. ``pmi`` is
    in bits.
    """

    word: str
    label: str
    texts: int
    with_label: int
    share: float
    expected: float
    z: float
    adjusted_p: float
    pmi: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class WordCounts:
    """In how many texts of each label every word stands."""

    labels: tuple[str, ...]
    texts: Counter[str] = field(default_factory=Counter)
    words: dict[str, Counter[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.words = {label: Counter() for label in self.labels}

    def add(self, text: str, label: str) -> None:
        """Count one more text."""
        self.texts[label] += 1
        self.words[label].update(set(words_of(text)))

    def skewed(self, *, most: int = SHOWN) -> tuple[list[Skewed], int, int]:
        """Return the words that are clearly too frequent with a label, those of each label with the largest z first.

        At most ``most`` of each label; besides how many there are of all labels, and how many tests were made.
        """
        total = self.texts.total()
        every: Counter[str] = Counter()
        for counts in self.words.values():
            every.update(counts)
        labels = [label for label in self.labels if 0 < self.texts[label] < total]
        tested = [(word, label) for word, texts in every.items() if texts >= LEAST_TEXTS for label in labels]
        scores = [self._z(word, label, every[word], total) for word, label in tested]
        adjusted = benjamini_hochberg([math.erfc(abs(z) / math.sqrt(2)) for z in scores])
        found = [
            self._found(word, label, every[word], total, z, p)
            for (word, label), z, p in zip(tested, scores, adjusted, strict=True)
            if z > 0 and p <= FALSE_FINDS
        ]
        found.sort(key=lambda one: (self.labels.index(one.label), -one.z, one.word))
        shown = [one for label in self.labels for one in [each for each in found if each.label == label][:most]]
        return shown, len(found), len(tested)

    def _z(self, word: str, label: str, texts: int, total: int) -> float:
        expected = self.texts[label] / total
        return (self.words[label][word] / texts - expected) / math.sqrt(expected * (1 - expected) / texts)

    def _found(self, word: str, label: str, texts: int, total: int, z: float, p: float) -> Skewed:
        with_label, expected = self.words[label][word], self.texts[label] / total
        joint = (with_label + SMOOTHING) / (texts + SMOOTHING * len(self.labels))
        return Skewed(word, label, texts, with_label, with_label / texts, expected, z, p, math.log2(joint / expected))


def benjamini_hochberg(values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995), in the order given."""
    order = sorted(range(len(values)), key=values.__getitem__, reverse=True)
    adjusted = [1.0] * len(values)
    least = 1.0
    for behind, place in enumerate(order):
        least = min(least, values[place] * len(values) / (len(values) - behind))
        adjusted[place] = least
    return adjusted
