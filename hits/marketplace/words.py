"""Sentences for people: in English as they stand, with what a door needs to say them in another language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any


class Words(str):
    """An English sentence that remembers the pattern and the values it was made from.

    Wherever a string is taken it is the English sentence. `text` is the pattern that is looked up in a translation;
    `plural` is its form for other numbers than one, chosen by `values["count"]`. A value can itself be Words.
    """

    text: str
    plural: str | None
    values: MappingProxyType[str, Any]

    def __new__(cls, text: str, plural: str | None = None, /, **values: object) -> Words:
        """Fill the values in, by `%(name)s`; without values a percent sign is a percent sign."""
        one_only = plural is None or values["count"] == 1
        pattern = text if one_only else str(plural)
        made = super().__new__(cls, pattern % values if values else pattern)
        made.text, made.plural, made.values = text, plural, MappingProxyType(dict(values))
        return made


#: Says words in a language ("de", "pt-br"; None is English).
Translator = Callable[[str | None, Words], str]


def words(text: str, /, **values: object) -> Words:
    """Return a sentence; its pattern is gathered for translation by the name of this function."""
    return Words(text, **values)


def counted(one: str, many: str, count: int, /, **values: object) -> Words:
    """Return one of two sentences by a number, which both can name as `%(count)d`; gathered like `words`."""
    return Words(one, many, count=count, **values)


def joined(parts: Sequence[str], between: str = "; ") -> Words:
    """Return several sentences or parts of one as one; each of them is translated by itself."""
    return Words(
        between.join(f"%(part{number})s" for number in range(len(parts))),
        **{f"part{number}": part for number, part in enumerate(parts)},
    )


def in_english(_language: str | None, said: Words) -> str:
    """Translate nothing: the translator of a marketplace that speaks English only."""
    return str(said)
