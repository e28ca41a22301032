"""A plain classifier of words, to see what a part of the input gives away about the label.

Multinomial logistic regression on the presence of words and pairs of neighbours, learned by AdaGrad (Duchi and others
2011) over hashed features (Weinberger and others 2009): what linear text classifiers such as fastText do. It has no
setting that is tuned, reads each text once and keeps eight bytes for a feature of a text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hits.measures.words import ngram_places

PLACES: Final = 2**18
EPOCHS: Final = 5
RATE: Final = 0.5
#: Draws the weights towards 0, for each text that holds the feature.
SHRINK: Final = 1e-5
_BATCH: Final = 64

Codes = NDArray[np.int64]
Weights = NDArray[np.float32]


@dataclass
class HashedTexts:
    """Texts as the places of their features, one after the other, without the texts themselves."""

    places: int = PLACES
    _found: array[int] = field(default_factory=lambda: array("i"))
    _ends: array[int] = field(default_factory=lambda: array("q"))

    def add(self, texts: tuple[str, ...]) -> None:
        """Take the texts of one more row in. A row without a word has one feature that says so."""
        self._found.extend(sorted(set(ngram_places(texts, self.places - 1))) or [self.places - 1])
        self._ends.append(len(self._found))

    def __len__(self) -> int:
        return len(self._ends)

    def rows(self, chosen: Codes) -> tuple[Codes, Codes]:
        """Return the features of the chosen rows, and where each row's begin."""
        ends = np.frombuffer(self._ends, dtype=np.int64)
        starts = np.concatenate([[0], ends[:-1]])[chosen]
        sizes = ends[chosen] - starts
        firsts = np.cumsum(sizes) - sizes
        at = np.arange(sizes.sum()) - np.repeat(firsts, sizes) + np.repeat(starts, sizes)
        return np.frombuffer(self._found, dtype=np.int32)[at].astype(np.int64), firsts


@dataclass(frozen=True)
class WordClassifier:
    """What was learned; ``weights`` is of shape (places, classes)."""

    weights: Weights

    def classify(self, texts: HashedTexts) -> list[int]:
        """Return the likeliest class of each row, by number."""
        said: list[int] = []
        for start in range(0, len(texts), 4096):
            chosen = np.arange(start, min(start + 4096, len(texts)))
            said += _scores(self.weights, *texts.rows(chosen)).argmax(axis=1).tolist()
        return said

    def margins(self, texts: HashedTexts) -> NDArray[np.float64]:
        """Return by how much each row's second class is likelier than its first, in logits."""
        scores = _scores(self.weights, *texts.rows(np.arange(len(texts))))
        found: NDArray[np.float64] = scores[:, 1] - scores[:, 0]
        return found


def learn(
    texts: HashedTexts, labels: Sequence[int], classes: int, *, seed: int = 0, epochs: int = EPOCHS
) -> WordClassifier:
    """Learn the classes of some rows; the same rows in the same order and seed give the same weights.

    Raises ValueError when there are no rows.
    """
    if len(texts) == 0 or len(labels) != len(texts):
        raise ValueError(f"there are {len(texts)} texts and {len(labels)} labels to learn from")
    right = np.asarray(labels, dtype=np.int64)
    weights = np.zeros((texts.places, classes), dtype=np.float32)
    seen = np.full((texts.places, classes), 1e-8, dtype=np.float32)
    generator = np.random.default_rng(seed)
    for _ in range(epochs):
        order = generator.permutation(len(right))
        for start in range(0, len(order), _BATCH):
            _step(weights, seen, texts, order[start : start + _BATCH], right)
    return WordClassifier(weights)


def _step(weights: Weights, seen: Weights, texts: HashedTexts, chosen: Codes, right: Codes) -> None:
    features, firsts = texts.rows(chosen)
    scores = _scores(weights, features, firsts)
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(len(chosen)), right[chosen]] -= 1
    sizes = np.diff(np.append(firsts, len(features)))
    slopes = np.repeat(chances / np.sqrt(sizes)[:, None], sizes, axis=0)
    places, where = np.unique(features, return_inverse=True)
    summed = np.stack([np.bincount(where, slopes[:, one], len(places)) for one in range(slopes.shape[1])], axis=1)
    summed = (summed / len(chosen) + SHRINK * weights[places]).astype(np.float32)
    seen[places] += summed**2
    weights[places] -= RATE * summed / np.sqrt(seen[places])


def _scores(weights: Weights, features: Codes, firsts: Codes) -> NDArray[np.float64]:
    sizes = np.diff(np.append(firsts, len(features)))
    summed: Any = np.add.reduceat(weights[features].astype(np.float64), firsts, axis=0)
    found: NDArray[np.float64] = summed / np.sqrt(sizes)[:, None]
    return found


def most_frequent(labels: Iterable[int], classes: int) -> int:
    """Return the class that most rows have, the first of several."""
    counts = np.bincount(np.fromiter(labels, dtype=np.int64), minlength=classes)
    return int(counts.argmax())
