"""What can go wrong with money, in the caller's words.

PaymentsError
├── NoFeeSchedule            a day before the first fee schedule
├── UnbalancedTransaction    postings that don't sum to zero
├── LedgerConflict           the same key, other contents
├── InvalidMonth             a month that is not written YYYY-MM
├── MonthNotClosable         a month that can't be closed now
└── TableTooLong             a table that the wanted kind of file can't hold
"""

from __future__ import annotations

from datetime import date

from hits.money import display, from_cents


class PaymentsError(Exception):
    """Base of the errors of this package; its text is fit to be shown to people."""


class NoFeeSchedule(PaymentsError):
    """No fees are known for a day."""

    def __init__(self, day: date) -> None:
        super().__init__(f"No fee schedule is known for {day}. Add a row for it to payments/fees.py.")
        self.day = day


class UnbalancedTransaction(PaymentsError):
    """The postings of a transaction don't sum to zero."""

    def __init__(self, key: str, cents: int) -> None:
        super().__init__(
            f"The postings of {key!r} sum to {display(from_cents(cents))} instead of $0.00. Nothing was booked."
        )
        self.key = key


class LedgerConflict(PaymentsError):
    """A key that is already booked comes again with other contents."""

    def __init__(self, key: str, booked: str, wanted: str) -> None:
        super().__init__(
            f"{key!r} is already booked as {booked}; it can't be booked again as {wanted}. "
            "Book a correction under a key of its own."
        )
        self.key = key


class InvalidMonth(PaymentsError):
    """A month that is not written YYYY-MM."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a month. Write year and month, for example 2026-11.")


class MonthNotClosable(PaymentsError):
    """A month that can't be closed now; nothing was closed."""


class TableTooLong(PaymentsError):
    """A table that the wanted kind of file can't hold."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name} has {what}. Take CSV or Parquet instead.")
