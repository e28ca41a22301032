"""Stretches of a passage: found again by their text, and counted in characters whatever the browser counts in."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

#: What keyboards and passages write differently; each group stands for any of its characters.
_ALIKE = (
    "'\u2018\u2019\u201b\u2032\u00b4`",
    '"\u201c\u201d\u201e\u00ab\u00bb\u2033',
    "-\u2010\u2011\u2012\u2013\u2014\u2212",
)
_CONTEXT_CHARACTERS = 30
#: What stands inside a word between two letters, or inside a number between two digits.
_BETWEEN_LETTERS = "'\u2019."
_BETWEEN_DIGITS = "'\u2019.,"
_JOINER = "\u200d"
#: Letters of scripts that put no space between words; where a word ends there can't be told from the characters.
_WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR")


@dataclass(frozen=True)
class Occurrence:
    """One place where an answer stands; offsets count characters. ``before`` and ``after`` tell it from the others."""

    start: int
    end: int
    before: str
    after: str


def character_offset(text: str, utf16_offset: int) -> int:
    """Return the offset in characters of one that counts UTF-16 units, as browsers do.

    Raises ValueError for an offset outside the text or in the middle of a character.
    """
    if utf16_offset < 0:
        raise ValueError(f"offset {utf16_offset} is before the text")
    units = 0
    for offset, character in enumerate(text):
        if units == utf16_offset:
            return offset
        if units > utf16_offset:
            raise ValueError(f"offset {utf16_offset} is inside a character")
        units += 2 if character > "\uffff" else 1
    if units != utf16_offset:
        raise ValueError(f"offset {utf16_offset} is not in a text of {units} UTF-16 units")
    return len(text)


def utf16_offset(text: str, character_offset: int) -> int:
    """Return the offset in UTF-16 units of one that counts characters. Raises ValueError outside the text."""
    if not 0 <= character_offset <= len(text):
        raise ValueError(f"offset {character_offset} is not in a text of {len(text)} characters")
    return character_offset + sum(character > "\uffff" for character in text[:character_offset])


def occurrences(passage: str, answer: str) -> list[Occurrence]:
    """Return where an answer stands in a passage, first to last.

    Exactly as written if it does so anywhere, else whatever the case, the kind of quotation marks, dashes, white
    space and accents' encoding. Places where it is no part of a longer word come alone if there are any.
    """
    found = _exact(passage, answer) or _alike(passage, answer)
    whole = [(start, end) for start, end in found if _is_whole(passage, start, end)]
    return [
        Occurrence(
            start,
            end,
            passage[max(start - _CONTEXT_CHARACTERS, 0) : start].split("\n")[-1],
            passage[end : end + _CONTEXT_CHARACTERS].split("\n")[0],
        )
        for start, end in whole or found
    ]


def _exact(passage: str, answer: str) -> list[tuple[int, int]]:
    found = []
    at = passage.find(answer) if answer else -1
    while at >= 0:
        found.append((at, at + len(answer)))
        at = passage.find(answer, at + 1)
    return found


def _alike(passage: str, answer: str) -> list[tuple[int, int]]:
    for form in ("NFC", "NFD"):
        words = unicodedata.normalize(form, answer).split()
        pattern = r"\s+".join("".join(map(_any_like, word)) for word in words)
        if pattern and (found := [match.span() for match in re.finditer(pattern, passage, re.IGNORECASE)]):
            return found
    return []


def _any_like(character: str) -> str:
    group = next((group for group in _ALIKE if character in group), None)
    return re.escape(character) if group is None else f"[{re.escape(group)}]"


def widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the stretch with the words and characters that it cuts through made whole.

    Half a word never equals a model's whole one, so whoever marks half of the right answer would always win.
    """
    while _cuts(text, start):
        start -= 1
    while _cuts(text, end):
        end += 1
    return start, end


def _is_whole(passage: str, start: int, end: int) -> bool:
    return not _cuts(passage, start) and not _cuts(passage, end)


def _cuts(text: str, at: int) -> bool:
    """Tell whether a border at this place goes through a word, or through a character of several parts."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before == _JOINER or (_modifies(after) and not before.isspace()):
        return True
    if _joins(before) and _joins(after):
        return True
    return _links(text, at - 1) or _links(text, at)


def _links(text: str, at: int) -> bool:
    if not 0 < at < len(text) - 1:
        return False
    before, mark, after = text[at - 1], text[at], text[at + 1]
    if before.isdecimal() and after.isdecimal():
        return mark in _BETWEEN_DIGITS
    return mark in _BETWEEN_LETTERS and _is_letter(before) and _is_letter(after)


def _modifies(character: str) -> bool:
    return (
        unicodedata.category(character)[0] == "M" or character == _JOINER or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM" and _joins(character)


def _joins(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN" and not unicodedata.name(character, "").startswith(
        _WITHOUT_SPACES
    )
