"""Dollars at the doors, integer cents inside; no binary fractions anywhere."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Final

_CENT: Final = Decimal("0.01")
_LARGEST_EXPONENT: Final = 60


def from_cents(cents: int) -> Decimal:
    """Return dollars with two decimals."""
    return (Decimal(cents) / 100).quantize(_CENT)


def wire(cents: int) -> str:
    """Return dollars as the API writes them, such as "0.30"."""
    return f"{from_cents(cents):.2f}"


def to_cents(amount: Decimal | str) -> int:
    """Return the cents of a dollar amount.

    Raises ValueError if it is negative, not finite, or has a fraction of a cent.
    """
    dollars = Decimal(amount)
    if not dollars.is_finite() or dollars < 0 or dollars.adjusted() > _LARGEST_EXPONENT:
        raise ValueError(f"{amount!r} is not an amount of dollars with at most two decimals.")
    # Exact whatever the number of digits, unlike Decimal's own arithmetic, which rounds at 28.
    numerator, denominator = dollars.as_integer_ratio()
    cents, rest = divmod(numerator * 100, denominator)
    if rest:
        raise ValueError(f"{amount!r} is not an amount of dollars with at most two decimals.")
    return cents


def round_half_up(cents: Decimal) -> int:
    """Return whole cents."""
    return int(cents.to_integral_value(rounding=ROUND_HALF_UP))
