"""A calendar month in UTC, by which the books are read and closed."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from typing import Final

from payments.errors import InvalidMonth

_MONTH: Final = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")


@dataclass(frozen=True, order=True)
class Month:
    """A calendar month in UTC."""

    year: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Month:
        """Return the month written as ``2026-11``. Raises InvalidMonth."""
        found = _MONTH.fullmatch(text.strip())
        if found is None or not 1 <= int(found[1]) < MAXYEAR:
            raise InvalidMonth(text)
        return cls(int(found[1]), int(found[2]))

    @classmethod
    def of(cls, moment: datetime) -> Month:
        """Return the month that a moment is in."""
        utc = moment.astimezone(UTC)
        return cls(utc.year, utc.month)

    @property
    def start(self) -> datetime:
        return datetime(self.year, self.number, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """The first moment that no longer belongs to it."""
        return self.next.start

    @property
    def next(self) -> Month:
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    @property
    def previous(self) -> Month:
        return Month(self.year - (self.number == 1), (self.number - 2) % 12 + 1)

    @property
    def words(self) -> str:
        return f"{calendar.month_name[self.number]} {self.year}"

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.number:02d}"
