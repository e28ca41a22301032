"""The marketplace's fees."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hits.marketplace.fees import assignment_fee, bonus_fee

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reward", "places", "masters", "fee"),
    [
        (0, 1, False, 1),
        (1, 1, False, 1),
        (5, 1, False, 1),
        (13, 1, False, 3),
        (12, 1, False, 2),
        (30, 9, False, 6),
        (30, 10, False, 12),
        (100, 10, False, 40),
        (100, 1, True, 25),
        (100, 10, True, 45),
        (10, 1, True, 3),
    ],
)
def test_the_published_fees(reward: int, places: int, masters: bool, fee: int) -> None:
    assert assignment_fee(reward, max_assignments=places, masters=masters, at=NOW) == fee


@pytest.mark.parametrize(("amount", "fee"), [(1, 1), (7, 1), (8, 2), (13, 3), (100, 20)])
def test_the_fee_of_a_bonus(amount: int, fee: int) -> None:
    assert bonus_fee(amount, at=NOW) == fee
