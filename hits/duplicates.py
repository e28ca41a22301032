"""Whether a text nearly repeats another one, or copies what its writer started from. Pure; what follows is for others.

Likeness of two texts is the Jaccard index of their runs of four characters, without case, punctuation, and Unicode's
compatibility forms. Texts that could be like enough are found by MinHash signatures (Broder 1997) cut into bands
(Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", 3.4). Copies are measured as the coverage by extractive
fragments of Grusky, Naaman, Artzi 2018 (https://aclanthology.org/N18-1065), of three words or more.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

#: From this likeness on two texts are nearly the same.
NEAR: Final = 0.7
#: A text copies when so much of it stands in the context, and a stretch of so many words at once.
COPIED_SHARE, COPIED_RUN = 0.6, 5
#: Shorter stretches are what any two texts about one thing have in common.
LEAST_RUN: Final = 3
#: Of what is longer only so much is looked at.
MOST_CHARACTERS: Final = 20_000
#: A pair of likeness s shares a band with probability 1 - (1 - s^4)^12: 0.96 at 0.7, 0.998 at 0.8, 0.001 at 0.1.
BANDS, ROWS = 12, 4
_GRAM: Final = 4
_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Copied:
    """How much of a text stands in another: the share of its words, and the longest stretch in words."""

    share: float
    longest_run: int

    @property
    def is_copy(self) -> bool:
        """Whether it is so much that a reader would call it copied."""
        return self.share >= COPIED_SHARE and self.longest_run >= COPIED_RUN


def normalised(text: str) -> str:
    """Return the words of a text, lower case, single spaces between; a text without words keeps its signs."""
    folded = unicodedata.normalize("NFKC", text[:MOST_CHARACTERS]).casefold()
    return " ".join(_WORDS.findall(folded)) or " ".join(folded.split())


def similarity(one: str, other: str) -> float:
    """Return the likeness of two texts, from 0 to 1."""
    first, second = _grams(normalised(one)), _grams(normalised(other))
    return len(first & second) / len(first | second)


def bands_of(text: str, scope: str = "") -> tuple[int, ...]:
    """Return the bands of a text's signature, as signed 64-bit numbers; those of another scope are other ones."""
    import numpy as np

    points = np.frombuffer(f" {normalised(text)} ".encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    if len(points) < _GRAM:
        points = np.pad(points, (0, _GRAM - len(points)), constant_values=32)
    multipliers, shifts, scatter = _constants()
    grams = np.lib.stride_tricks.sliding_window_view(points, _GRAM) @ scatter
    # Neighbouring sums differ little; the finalizer of MurmurHash3 spreads them.
    grams ^= grams >> np.uint64(33)
    grams *= np.uint64(0xFF51AFD7ED558CCD)
    grams ^= grams >> np.uint64(33)
    least = ((grams[None, :] * multipliers[:, None] + shifts[:, None]) >> np.uint64(32)).min(axis=1)
    rows = least.reshape(BANDS, ROWS)
    return tuple(
        int.from_bytes(
            hashlib.blake2b(f"{scope}:{band}:".encode() + rows[band].tobytes(), digest_size=8).digest(),
            "big",
            signed=True,
        )
        for band in range(BANDS)
    )


def copied(text: str, source: str) -> Copied:
    """Return how much of a text stands in a source, by the longest stretches first come."""
    words, given = normalised(text).split(), normalised(source).split()
    starts: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(given) - LEAST_RUN + 1):
        starts.setdefault(tuple(given[at : at + LEAST_RUN]), []).append(at)
    covered = longest = at = 0
    while at <= len(words) - LEAST_RUN:
        run = max(
            (_run(words, at, given, start) for start in starts.get(tuple(words[at : at + LEAST_RUN]), [])[:50]),
            default=0,
        )
        covered, longest, at = covered + run, max(longest, run), at + max(run, 1)
    return Copied(covered / len(words) if words else 0.0, longest)


@dataclass(frozen=True)
class Known:
    """A text with what it is found by, made once however often it is looked for."""

    text: str
    words: str
    bands: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Known:
        """Return a text with its words and bands."""
        return cls(text, normalised(text), bands_of(text))


class Seen:
    """Texts met so far, by a key each, for finding those that nearly repeat one; a kilobyte each beside the text."""

    def __init__(self) -> None:
        self._words: dict[str, Any] = {}
        self._bands: dict[int, tuple[str, Any]] = {}

    def same(self, one: Known) -> Any | None:
        """Return the key of the first text of the same words, None without."""
        return self._words.get(one.words)

    def near(self, one: Known) -> tuple[Any, float] | None:
        """Return the key of the likest text among those that share a band, and how like it is; None without."""
        found = {key: other for other, key in filter(None, map(self._bands.get, one.bands))}
        scored = [(similarity(one.text, other), key) for key, other in found.items()]
        best = max(scored, key=lambda pair: pair[0], default=None)
        return (best[1], best[0]) if best is not None and best[0] >= NEAR else None

    def add(self, one: Known, key: Any) -> None:
        """Keep a text; of several that share a band the first stays."""
        self._words.setdefault(one.words, key)
        for band in one.bands:
            self._bands.setdefault(band, (one.text, key))


def text_of(fields: Mapping[str, str]) -> str:
    """Return what is compared of a context: its fields, a line each."""
    return "\n".join(fields.values())


def _grams(words: str) -> frozenset[str]:
    padded = f" {words} ".ljust(_GRAM)
    return frozenset(padded[at : at + _GRAM] for at in range(len(padded) - _GRAM + 1))


def _run(words: list[str], at: int, given: list[str], start: int) -> int:
    length = LEAST_RUN
    while at + length < len(words) and start + length < len(given) and words[at + length] == given[start + length]:
        length += 1
    return length


@cache
def _constants() -> tuple[Any, Any, Any]:
    """Return multipliers, summands and the weights of a run's characters: fixed, since signatures are stored."""
    import numpy as np

    numbers = _numbers()
    count = BANDS * ROWS
    drawn = np.array([next(numbers) for _ in range(2 * count + _GRAM)], dtype=np.uint64)
    return drawn[:count] | np.uint64(1), drawn[count : 2 * count], drawn[2 * count :] | np.uint64(1)


def _numbers() -> Iterator[int]:
    at = 0
    while True:
        yield int.from_bytes(hashlib.sha256(f"dynahit signature {at}".encode()).digest()[:8], "big")
        at += 1
