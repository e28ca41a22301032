"""Texts as words, for statistics that must be the same on every machine."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator
from typing import Final

#: Letters with what is inside of a word, digits together, and every other visible sign by itself (emoji, marks).
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[^\w\s]|_")


def words_of(text: str) -> list[str]:
    """Return a text's words in lower case; signs count as words, since emoji and marks can give a label away."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def ngram_places(texts: tuple[str, ...], size: int) -> Iterator[int]:
    """Yield the places, from 0 to ``size``, of the words and pairs of neighbours of some texts.

    Each text has features of its own. The place is a checksum, so that no vocabulary is kept; two n-grams may share it.
    """
    for number, text in enumerate(texts):
        before = f"{number}^"
        for word in words_of(text):
            named = f"{number} {word}"
            yield zlib.crc32(named.encode()) % size
            yield zlib.crc32(f"{before} {word}".encode()) % size
            before = named
