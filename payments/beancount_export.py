"""The ledger as a file for beancount, the plain-text accounting tool: https://beancount.github.io.

Amounts are dollars. Rewards, bonuses and fees are expenses, the money on a marketplace is an asset. A promise is an
expense and a liability at once; both go away when it is paid, and the paid bonus takes their place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import groupby
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.db import joins_whole_tables
from hits.money import from_cents
from payments.journal import Entry, entries
from payments.models import LedgerTransaction, Posting

#: Our accounts' first words and the place that beancount gives them; an account of another name is equity.
ROOTS: Final[dict[str, str]] = {
    "marketplace": "Assets:Marketplace",
    "deposits": "Equity:Deposits",
    "rewards": "Expenses:Rewards",
    "reward_fees": "Expenses:RewardFees",
    "bonuses": "Expenses:Bonuses",
    "bonus_fees": "Expenses:BonusFees",
    "promised": "Expenses:Promised",
    "promises": "Liabilities:Promises",
    "adjustments": "Expenses:Adjustments",
}
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9-]+")


def account_name(account: str) -> str:
    """Return beancount's name for one of our accounts; two of ours never get the same.

    ``bonuses:sentiment/1:w-0123`` is ``Expenses:Bonuses:Sentiment-1:W-0123``. Where characters had to go that could
    have told two names apart, a hash of the whole name follows.
    """
    name, _, rest = account.partition(":")
    root = ROOTS.get(name) or f"Equity:Other:{_word(name)}"
    # An endpoint holds colons of its own.
    parts = [rest] if name in ("marketplace", "deposits", "adjustments") else rest.split(":")
    words = [_word(part) for part in parts if part]
    found = ":".join([root, *words])
    plain = name in ROOTS and all(_plain(part) for part in parts)
    return found if plain else f"{found}:X{hashlib.sha256(account.encode()).hexdigest()[:12]}"


def _word(part: str) -> str:
    word = _NOT_ALLOWED.sub("-", part).strip("-")
    return word[:1].upper() + word[1:] if word else "X"


def _plain(part: str) -> bool:
    """Whether a part is a round's code or a pseudonym of ours, from whose word it can be read back."""
    return re.fullmatch(r"[a-z][a-z0-9]*/\d+|w-[0-9a-f]+", part) is not None


def beancount_lines(session: Session) -> Iterator[str]:
    """Yield the whole ledger for beancount; ``bean-check`` accepts it.

    It ends with the balance of every account that holds money on a marketplace, so that a file that lost a
    transaction is noticed.
    """
    yield 'option "title" "dynahit"\noption "operating_currency" "USD"\n\n'
    used: dict[str, date] = {}
    query = (
        select(Posting.account, func.min(LedgerTransaction.at))
        .join(LedgerTransaction, LedgerTransaction.id == Posting.transaction_id)
        .group_by(Posting.account)
        .order_by(Posting.account)
    )
    with joins_whole_tables(session):
        accounts = session.execute(query).all()
    for account, first in accounts:
        used[account] = first.date()
        yield f"{first:%Y-%m-%d} open {account_name(account)} USD\n"
    last = session.scalar(select(func.max(LedgerTransaction.at)))
    for _, postings in groupby(entries(session), key=lambda entry: entry.transaction_id):
        yield _transaction(list(postings))
    if last is None:
        return
    yield "\n"
    for account in used:
        if account.startswith("marketplace:"):
            cents = session.scalar(select(func.sum(Posting.cents)).where(Posting.account == account)) or 0
            yield (f"{last.date() + timedelta(days=1)} balance {account_name(account)}  {from_cents(int(cents))} USD\n")


def _transaction(postings: list[Entry]) -> str:
    first = postings[0]
    lines = [
        f"\n{first.at:%Y-%m-%d} * {_text(f'{first.kind} of {first.reference}')}",
        f"  key: {_text(first.key)}",
        f"  at: {_text(f'{first.at:%Y-%m-%dT%H:%M:%SZ}')}",
        *(f"  {account_name(one.account)}  {from_cents(one.cents)} USD" for one in postings),
    ]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Return a string as beancount reads it: quotes and backslashes escaped, on one line."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return '"{}"'.format(plain.replace("\\", "\\\\").replace('"', '\\"'))
