"""How long texts are and how often they repeat, by label."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hits.measures.words import words_of

_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass
class Lengths:
    """Lengths in words of one field's texts, by label."""

    by_label: dict[str, array[int]] = field(default_factory=dict)

    def add(self, text: str, label: str) -> None:
        """Take one more text in."""
        self.by_label.setdefault(label, array("i")).append(len(words_of(text)))

    def profile(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return mean and quantiles by label, and the largest chance to tell two labels apart by length alone.

        That chance is the area under the curve of the most different pair of labels: 0.5 tells nothing, 1 everything.
        """
        there = [label for label in labels if len(self.by_label.get(label, ()))]
        found = {
            label: {
                "texts": len(self.by_label[label]),
                "mean": float(np.mean(self.by_label[label])),
                **{f"q{int(100 * q):02d}": float(np.quantile(self.by_label[label], q)) for q in _QUANTILES},
            }
            for label in there
        }
        areas = [
            (area_between(self.by_label[one], self.by_label[other]), one, other)
            for place, one in enumerate(there)
            for other in there[place + 1 :]
        ]
        most = max(areas, key=lambda one: abs(one[0] - 0.5), default=None)
        apart = None
        if most is not None:
            area, shorter, longer = most if most[0] >= 0.5 else (1 - most[0], most[2], most[1])
            apart = {"area": area, "shorter": shorter, "longer": longer}
        return {"by_label": found, "apart": apart}


def area_between(one: Sequence[int], other: Sequence[int]) -> float:
    """Return how often a value of ``other`` is larger than one of ``one``, equal ones counted half."""
    first = np.sort(np.asarray(one))
    second = np.asarray(other)
    below, upto = np.searchsorted(first, second, "left"), np.searchsorted(first, second, "right")
    return float((below + upto).sum() / (2 * len(first) * len(second)))


@dataclass
class Repeats:
    """How often equal texts stand in the data, compared as words: neither capitals nor spaces make a difference."""

    _seen: Counter[bytes] = field(default_factory=Counter)
    _labels: dict[bytes, set[str]] = field(default_factory=dict)

    def add(self, texts: tuple[str, ...], label: str) -> None:
        """Take one more row in."""
        words = "\n".join(" ".join(words_of(text)) for text in texts)
        key = hashlib.blake2b(words.encode(), digest_size=12).digest()
        self._seen[key] += 1
        self._labels.setdefault(key, set()).add(label)

    def profile(self) -> dict[str, int]:
        """Return how many rows there are, how many repeat an earlier one, how many texts have several labels."""
        return {
            "rows": self._seen.total(),
            "distinct": len(self._seen),
            "repeats": self._seen.total() - len(self._seen),
            "most_often": max(self._seen.values(), default=0),
            "with_several_labels": sum(len(labels) > 1 for labels in self._labels.values()),
        }
