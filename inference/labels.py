"""Finds a model's labels among the task's by their names; nothing is ever guessed from their positions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from inference.errors import LabelsUnknown

ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "entailment": ("entails", "entail"),
        "contradiction": ("contradicts", "contradict"),
        "negative": ("neg",),
        "positive": ("pos",),
        "neutral": ("neu",),
        "hateful": ("hate", "hatespeech", "ishate"),
        "not_hateful": ("nothate", "nonhate", "nohate", "nonhateful", "nothatespeech"),
    }
)
"""Names that published models give to a task's label, spelled as _plain leaves them."""


def by_name(own: Sequence[str], labels: Sequence[str], *, source: str) -> tuple[str, ...]:
    """Return the task's label for each of the model's own labels, in the order of its outputs.

    Case, spaces, hyphens and underscores don't count. Raises LabelsUnknown with both lists unless each of the task's
    labels is found exactly once and none of the model's is left over.
    """
    names = {_plain(name): label for label in labels for name in (label, *ALIASES.get(label, ()))}
    found = [names.get(_plain(name)) for name in own]
    known = tuple(label for label in found if label is not None)
    if len(known) != len(own) or sorted(known) != sorted(labels):
        raise LabelsUnknown(source, own, labels)
    return known


def task_label(name: str, labels: Sequence[str]) -> str | None:
    """Return the task's label that the name means, None for a name that is none. Spelled as by_name takes it."""
    plain = _plain(name)
    return next(
        (label for label in labels if plain in {_plain(known) for known in (label, *ALIASES.get(label, ()))}), None
    )


def by_order(given: Sequence[str], own: Sequence[str], labels: Sequence[str], *, source: str) -> tuple[str, ...]:
    """Return the labels that somebody states for the model's outputs. Raises LabelsUnknown unless they are the task's.

    What the model's own names say must not contradict them.
    """
    if len(given) != len(own) or sorted(given) != sorted(labels):
        raise LabelsUnknown(source, own, labels, given=given)
    names = {_plain(name): label for label in labels for name in (label, *ALIASES.get(label, ()))}
    if any(names.get(_plain(name), stated) != stated for name, stated in zip(own, given, strict=True)):
        raise LabelsUnknown(source, own, labels, given=given)
    return tuple(given)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
