"""The ledger for beancount: its own checker accepts a year of it and reads the same sums."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from beancount import loader
from beancount.core.data import Open, Transaction
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.money import from_cents
from payments.beancount_export import account_name, beancount_lines
from payments.ledger import Account
from payments.models import LedgerTransaction, Posting
from tests.payments.year import make_year


def exported(session: Session, folder: Path) -> Path:
    path = folder / "dynahit.beancount"
    path.write_text("".join(beancount_lines(session)), encoding="utf-8")
    return path


def read(path: Path) -> tuple[list[Any], list[Any]]:
    found, errors, _ = loader.load_file(str(path))
    return found, errors


def test_bean_check_accepts_a_year(session: Session, tmp_path: Path) -> None:
    make_year(session)

    path = exported(session, tmp_path)

    run = subprocess.run(
        [sys.executable, "-m", "beancount.scripts.check", str(path)], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_every_transaction_and_every_cent_is_there(session: Session, tmp_path: Path) -> None:
    make_year(session, events=90)

    found, errors = read(exported(session, tmp_path))

    assert errors == []
    transactions = [one for one in found if isinstance(one, Transaction)]
    assert len(transactions) == session.scalar(select(func.count()).select_from(LedgerTransaction))
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for one in transactions:
        for posting in one.postings:
            sums[posting.account] += posting.units.number
    booked = session.execute(select(Posting.account, func.sum(Posting.cents)).group_by(Posting.account))
    assert dict(sums) == {account_name(account): from_cents(int(cents)) for account, cents in booked}
    assert {one.meta["key"] for one in transactions} == set(session.scalars(select(LedgerTransaction.key)))
    assert 'deposit of invoice "3" \\ ü' in {one.narration for one in transactions}
    assert len([one for one in found if isinstance(one, Open)]) == len(sums)


def test_a_lost_transaction_is_noticed_by_the_balance_at_the_end(session: Session, tmp_path: Path) -> None:
    make_year(session, events=30)
    path = exported(session, tmp_path)
    head, first, *rest = path.read_text(encoding="utf-8").split("\n\n")
    parts = [head, first, *rest]
    lost = next(number for number, part in enumerate(parts) if "Expenses:Rewards:" in part and " * " in part)

    path.write_text("\n\n".join(parts[:lost] + parts[lost + 1 :]), encoding="utf-8")

    _, errors = read(path)
    assert [error for error in errors if "Balance failed" in error.message]


def test_an_empty_ledger_is_a_sound_file(session: Session, tmp_path: Path) -> None:
    assert read(exported(session, tmp_path)) == ([], [])


@pytest.mark.parametrize(
    ("account", "wanted"),
    [
        ("bonuses:sentiment/1:w-0123456789abcdef", "Expenses:Bonuses:Sentiment-1:W-0123456789abcdef"),
        ("promises:nli/12:w-00", "Liabilities:Promises:Nli-12:W-00"),
    ],
)
def test_our_own_names_stay_readable(account: str, wanted: str) -> None:
    assert account_name(account) == wanted


def test_two_accounts_never_get_the_same_name() -> None:
    names = [
        "bonuses:sentiment/1:w-1",
        "bonuses:sentiment-1:w-1",
        "bonuses:sentiment/1:W-1",
        "bonuses::w-1",
        "bonuses:w-1",
        "bonuses",
        "bonuses:",
        "bonuses::",
        "something new:sentiment/1:w-1",
        "something:new:sentiment/1:w-1",
        "marketplace:http://127.0.0.1:8000",
        "marketplace:http://127.0.0.1/8000",
        "marketplace:ü",
        "reserved:sentiment/1:",
        str(Account("promised", "", "w-1")),
    ]

    found = [account_name(name) for name in names]

    assert len(set(found)) == len(set(names))
    assert all(part[0].isupper() or part[0].isdigit() for name in found for part in name.split(":"))
