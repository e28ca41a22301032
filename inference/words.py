"""Splits a submitted text into words at exact character offsets, and gathers word pieces into them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

Span = tuple[int, int]

_APOSTROPHES = "'’"
_JOINERS = "\u200d\ufe0e\ufe0f"


def word_spans(text: str) -> list[Span]:
    """Return the words of the text as (start, end), in order and without overlap.

    Words end at white space and punctuation; a punctuation mark is a word of its own; an apostrophe between two letters
    belongs to the word; combining marks, joiners and skin tones stay with what they modify.
    """
    spans: list[Span] = []
    start = 0
    open_word = False
    for index, character in enumerate(text):
        if _is_space(character):
            open_word = False
            continue
        if spans and spans[-1][1] == index and _modifies(character):
            spans[-1] = (spans[-1][0], index + 1)
            continue
        alone = _is_alone(text, index)
        if open_word and not alone:
            spans[-1] = (start, index + 1)
            continue
        start = index
        spans.append((index, index + 1))
        open_word = not alone
    return spans


def gather(spans: Sequence[Span], pieces: Iterable[Span]) -> tuple[list[Span], list[int | None]]:
    """Return the words and, for each piece, the index of its word (None for a piece without characters).

    Where one piece reaches over several words these become one, so that no score has to be divided by guess.
    ``spans`` and ``pieces`` are each in order.
    """
    merged = list(spans)
    owners: list[int | None] = []
    at = 0
    for start, end in pieces:
        if start >= end:
            owners.append(None)
            continue
        while at < len(merged) and merged[at][1] <= start:
            at += 1
        last = at
        while last < len(merged) and merged[last][0] < end:
            last += 1
        if last == at:
            owners.append(None)
            continue
        merged[at:last] = [(merged[at][0], merged[last - 1][1])]
        owners.append(at)
    return merged, owners


def snapped(text: str, start: int, end: int) -> Span:
    """Return the stretch widened to whole words, without white space at its ends."""
    touched = [span for span in word_spans(text) if span[0] < end and span[1] > start]
    return (touched[0][0], touched[-1][1]) if touched else (start, end)


def _is_space(character: str) -> bool:
    # Controls such as NUL are not printable and separate nothing for the reader; the usual white space does.
    return character.isspace()


def _modifies(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Mn", "Mc", "Me")
        or character in _JOINERS
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def _is_alone(text: str, index: int) -> bool:
    character = text[index]
    if character in _APOSTROPHES and 0 < index < len(text) - 1:
        return not (text[index - 1].isalnum() and text[index + 1].isalnum())
    if character.isascii():
        return not character.isalnum() and character.isprintable()
    return unicodedata.category(character).startswith("P") or _is_ideograph(character)


def _is_ideograph(character: str) -> bool:
    return "CJK" in unicodedata.name(character, "")
