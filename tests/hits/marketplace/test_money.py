"""Dollars and cents."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.marketplace.money import from_cents, to_cents, wire


@given(st.integers(0, 10**15))
def test_cents_survive_the_way_through_dollars(cents: int) -> None:
    assert to_cents(from_cents(cents)) == cents
    assert to_cents(wire(cents)) == cents


@pytest.mark.parametrize("amount", ["0.001", "-1", "NaN", "Infinity", "1e99", "1" + "0" * 30 + ".001"])
def test_amounts_that_are_no_cents(amount: str) -> None:
    with pytest.raises(ValueError, match="at most two decimals"):
        to_cents(Decimal(amount))
