"""Amounts are exact or refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits import money

cents = st.integers(min_value=0, max_value=10**12)


@given(cents)
def test_cents_survive_every_form(amount: int) -> None:
    dollars = money.from_cents(amount)

    assert money.to_cents(dollars) == amount
    assert money.usd(money.wire(dollars)) == dollars


@pytest.mark.parametrize("amount", ["0.001", "-0.01", "NaN", "Infinity", "abc", "", "1e-3", "1e999999", "1e14", None])
def test_what_is_no_amount_is_refused_with_the_value(amount: str) -> None:
    with pytest.raises(money.MoneyError, match=repr(amount).replace("(", "\\(")):
        money.usd(amount)


def test_a_fraction_of_a_cent_never_reaches_the_database() -> None:
    with pytest.raises(money.MoneyError):
        money.to_cents(Decimal("0.005"))


def test_halves_are_rounded_up() -> None:
    assert [money.rounded(Decimal(value)) for value in ("0.104", "0.105", "0.115")] == [
        Decimal("0.10"),
        Decimal("0.11"),
        Decimal("0.12"),
    ]


def test_people_read_dollars() -> None:
    assert money.display(Decimal("1234.5")) == "$1,234.50"
    assert money.display(Decimal("-0.3")) == "-$0.30"
