"""When a round will have as many verified examples as are wanted."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.forecast import forecast
from tests.factories import NOON

DAY = timedelta(days=1)


def test_a_steady_rate_gives_the_plain_date_with_a_range_around_it() -> None:
    found = forecast(200, 100, [10] * 7, DAY, NOON)

    assert (found.missing, found.per_day, found.days) == (100, 10.0, 7.0)
    assert found.at == NOON + 10 * DAY
    assert found.earliest is not None
    assert found.latest is not None
    assert NOON + 6 * DAY < found.earliest < found.at < found.latest < NOON + 17 * DAY


def test_uneven_days_make_the_range_wider() -> None:
    even = forecast(200, 100, [10, 11, 9, 10, 10, 11, 9], DAY, NOON)
    uneven = forecast(200, 100, [0, 30, 0, 0, 35, 5, 0], DAY, NOON)

    assert even.at == uneven.at
    assert even.latest is not None
    assert even.earliest is not None
    assert uneven.earliest is not None
    assert uneven.earliest < even.earliest
    assert uneven.latest is None or uneven.latest > even.latest


def test_too_few_to_tell_have_no_later_end() -> None:
    found = forecast(50, 3, [1, 0, 2], DAY, NOON)

    assert found.at == NOON + 47 * DAY
    assert found.earliest is not None
    assert found.latest is None


def test_shorter_parts_say_the_same_of_a_shorter_time() -> None:
    hours = forecast(200, 100, [10] * 7, timedelta(hours=1), NOON)

    assert hours.at == NOON + timedelta(hours=10)
    assert hours.per_day == pytest.approx(240)


def test_what_is_reached_or_stands_still_has_no_date() -> None:
    assert forecast(10, 12, [5], DAY, NOON).reached
    still = forecast(10, 2, [0, 0, 0], DAY, NOON)
    assert (still.reached, still.at, still.per_day) == (False, None, 0.0)
    assert forecast(10, 2, [], DAY, NOON).at is None


def test_a_date_beyond_all_sense_is_none() -> None:
    assert forecast(10**9, 0, [1] * 7, DAY, NOON).at is None


@given(st.integers(1, 10_000), st.lists(st.integers(0, 1000), min_size=1, max_size=9))
def test_the_date_lies_within_its_range(missing: int, per_day: list[int]) -> None:
    found = forecast(missing, 0, per_day, DAY, NOON)

    if found.at is not None:
        assert found.earliest is not None
        assert NOON < found.earliest <= found.at
        assert found.latest is None or found.at <= found.latest


@pytest.mark.parametrize(("rate", "days", "missing"), [(20.0, 7, 100), (6.0, 3, 40)])
def test_the_range_holds_about_95_of_100_of_made_up_rounds(rate: float, days: int, missing: int) -> None:
    chance = random.Random(3)
    held = 0
    for _ in range(400):
        per_day = [_poisson(chance, rate) for _ in range(days)]
        reached = NOON + sum(chance.expovariate(rate) for _ in range(missing)) * DAY
        found = forecast(missing, 0, per_day, DAY, NOON)
        after = found.earliest is not None and found.earliest <= reached
        held += after and (found.latest is None or reached <= found.latest)

    assert 0.92 <= held / 400 <= 0.995


def _poisson(chance: random.Random, rate: float) -> int:
    count, at = 0, chance.expovariate(rate)
    while at < 1:
        count, at = count + 1, at + chance.expovariate(rate)
    return count
