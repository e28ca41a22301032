"""Decides which rows are held out: whole groups, by the hash of their name, so that nothing is shared with training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Protocol, TypeVar


class Grouped(Protocol):
    """A row that belongs to a group."""

    @property
    def group(self) -> str: ...


Member = TypeVar("Member", bound=Grouped)

HUNDREDTHS = 10_000


def place_of(group: str) -> int:
    """Return the group's place from 0 to 9,999, the same on every machine."""
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:8], "big") % HUNDREDTHS


def within(rows: Iterable[Member], start: int, end: int) -> list[Member]:
    """Return the rows whose group's place is start or more and less than end."""
    return [row for row in rows if start <= place_of(row.group) < end]


def without(rows: Iterable[Member], others: Iterable[Member]) -> list[Member]:
    """Return the rows whose group none of the others has."""
    taken = {row.group for row in others}
    return [row for row in rows if row.group not in taken]


def sample(rows: Iterable[Member], count: int) -> list[Member]:
    """Return at most count rows, spread evenly, in their order."""
    rows = list(rows)
    if len(rows) <= count:
        return rows
    return [rows[index * len(rows) // count] for index in range(count)]


def by_place(rows: Iterable[Member]) -> list[Member]:
    """Return the rows with all groups mixed, in an order that is the same on every machine."""
    numbered = list(enumerate(rows))
    return [row for _, row in sorted(numbered, key=lambda pair: place_of(f"{pair[0]} {pair[1].group}"))]
