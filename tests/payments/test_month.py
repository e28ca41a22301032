"""Months in UTC, as they are written and read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from payments.errors import InvalidMonth
from payments.month import Month


@pytest.mark.parametrize(
    "text", ["", "2026", "2026-00", "2026-13", "2026-1", "11-2026", "0000-01", "9999-12", "2026-11-01"]
)
def test_what_is_no_month_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidMonth, match="2026-11"):
        Month.parse(text)


def test_a_month_knows_its_neighbours_and_its_words() -> None:
    december = Month.parse("2026-12")

    assert (str(december.next), str(Month(2026, 1).previous), december.words) == (
        "2027-01",
        "2025-12",
        "December 2026",
    )


def test_a_moment_belongs_to_its_month_by_utc() -> None:
    november = Month(2026, 11)

    assert Month.of(datetime(2026, 12, 1, 1, tzinfo=timezone(timedelta(hours=2)))) == november
    assert (november.start, november.end) == (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
    assert Month.of(november.end) == november.next
