"""Shares with their intervals."""

from __future__ import annotations

import pytest

from hits.rates import Rate, wilson


def test_the_wilson_interval_agrees_with_a_published_value() -> None:
    # Newcombe 1998, table I: 81 of 263 gives 0.2553 to 0.3662.
    low, high = wilson(81, 263)

    assert low == pytest.approx(0.2553, abs=1e-4)
    assert high == pytest.approx(0.3662, abs=1e-4)


@pytest.mark.parametrize(("hits", "of"), [(0, 1), (1, 1), (0, 1000), (1000, 1000)])
def test_the_interval_stays_within_zero_and_one(hits: int, of: int) -> None:
    low, high = wilson(hits, of)

    assert 0 <= low <= hits / of <= high <= 1


def test_a_rate_of_nothing_is_not_a_number() -> None:
    assert (Rate(0, 0).percent, Rate(0, 0).interval) == ("none yet", "")
    assert Rate(1, 3).percent == "33.3%"
    assert (Rate(0, 0).bounds, Rate(81, 263).bounds) == (None, wilson(81, 263))
