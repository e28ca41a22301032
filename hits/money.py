"""Dollars as Decimal: one constructor, one rounding rule, one wire format."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from hits.errors import HitsError

CENT = Decimal("0.01")
ZERO = Decimal("0.00")
#: More than any account holds; the databases keep whole cents up to about 92 quadrillion dollars.
LARGEST = Decimal("10000000000000")


class MoneyError(HitsError):
    """An amount that is not a whole number of cents, not finite, or negative where that makes no sense."""


def usd(amount: str | int | Decimal) -> Decimal:
    """Return ``amount`` in dollars, quantised to cents.

    Raises MoneyError for anything that is not an exact, finite, non-negative number of cents.
    """
    try:
        value = Decimal(amount)
    except (InvalidOperation, TypeError, ValueError):
        raise MoneyError(f"{amount!r} is not an amount of money. Write dollars and cents, for example 0.30.") from None
    if not value.is_finite():
        raise MoneyError(f"{amount!r} is not a finite amount of money. Write dollars and cents, for example 0.30.")
    if value < 0:
        raise MoneyError(f"{amount!r} is negative. Amounts here are 0.00 or more.")
    try:
        cents = value.quantize(CENT)
    except InvalidOperation:
        raise _too_large(amount) from None
    if cents != value:
        raise MoneyError(f"{amount!r} has a fraction of a cent. The smallest step is 0.01.")
    if cents > LARGEST:
        raise _too_large(amount)
    return cents


def _too_large(amount: object) -> MoneyError:
    return MoneyError(f"{amount!r} is too large for an amount of money.")


def rounded(amount: Decimal) -> Decimal:
    """Round to cents, halves up, as MTurk's pricing rounds its fees."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def to_cents(amount: Decimal) -> int:
    """Return whole cents; negative amounts are allowed here (postings). Raises MoneyError for a fraction of a cent."""
    cents = amount * 100
    if cents != cents.to_integral_value():
        raise MoneyError(f"{amount} has a fraction of a cent and can't be stored.")
    return int(cents)


def from_cents(cents: int) -> Decimal:
    """Return the dollars of a whole number of cents."""
    return (Decimal(cents) / 100).quantize(CENT)


def wire(amount: Decimal) -> str:
    """Return the form the Requester API takes: ``0.30``."""
    return str(usd(amount))


def display(amount: Decimal) -> str:
    """Return the form people read: ``$1,234.50``."""
    sign = "-" if amount < 0 else ""
    return f"{sign}${abs(amount).quantize(CENT):,}"
