"""What can go wrong with money, in the caller's words.

PaymentsError
├── NoFeeSchedule            a day before the first fee schedule
├── InvalidFees              prices of a marketplace that can't be read
├── UnbalancedTransaction    postings that don't sum to zero
├── LedgerConflict           the same key, other contents
├── OverBudget               a budget or cap that has no room for what is asked
├── InvalidBudget            a budget that can't be
├── InvalidObligation        an amount, rule or sentence that can't be owed
├── ApprovalRefused          a payout that can't be approved, or not by this person, or is not what was shown
├── AlreadyReversed          a transaction that is reversed, or is a reversal
├── InvalidMonth             a month that is not written YYYY-MM
├── MonthNotClosable         a month that can't be closed now
└── TableTooLong             a table that the wanted kind of file can't hold
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from hits.money import display, from_cents


class PaymentsError(Exception):
    """Base of the errors of this package; its text is fit to be shown to people."""


class NoFeeSchedule(PaymentsError):
    """No fees are known for a day."""

    def __init__(self, day: date) -> None:
        super().__init__(f"No fee schedule is known for {day}. Add a row for it to payments/fees.py.")
        self.day = day


class InvalidFees(PaymentsError):
    """Prices of a marketplace that can't be read."""


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


class OverBudget(PaymentsError):
    """A budget or cap has no room for what is asked; nothing was set aside."""

    def __init__(self, what: str, most: Decimal, committed: Decimal, wanted: Decimal, command: str) -> None:
        left = max(most - committed, Decimal("0.00"))
        super().__init__(
            f"The {what} is {display(most)}; {display(committed)} of it are spent or set aside, {display(left)} are"
            f" left, and this needs {display(wanted)}. Raise it with `{command}`, or ask for less."
        )
        self.what = what
        self.left = left


class InvalidBudget(PaymentsError):
    """A budget that can't be: another key than its scope has, or no amount."""


class InvalidObligation(PaymentsError):
    """An amount, rule, subject or sentence that can't be owed."""


class ApprovalRefused(PaymentsError):
    """A payout that can't be approved, or not by this person, or is not any more what the person was shown."""


class AlreadyReversed(PaymentsError):
    """A transaction that is reversed already, or is a reversal itself."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key!r} can't be reversed: {why}. Book what is right under a key of its own.")
        self.key = key
