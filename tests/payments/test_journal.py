"""The ledger written down: in the order of booking, in portions, and always with the same hash."""

from __future__ import annotations

import csv
import hashlib
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.money import usd
from payments import journal
from payments.journal import entries, journal_table, month_digest, month_journal
from payments.ledger import record_deposit
from payments.models import LedgerTransaction, Posting
from payments.month import Month
from payments.tables import csv_lines, write_csv
from tests.payments.senders import ENDPOINT

NOVEMBER = Month(2026, 11)


@pytest.fixture
def deposits(session: Session) -> Session:
    """Seven deposits, a week after each other from 25 October on."""
    for number in range(7):
        at = datetime(2026, 10, 25, tzinfo=UTC) + timedelta(weeks=number)
        record_deposit(session, ENDPOINT, usd("1.00") * (number + 1), reference=f"=invoice {number}", now=at)
    return session


def test_every_posting_is_there_once_in_the_order_of_booking_whatever_the_portions(
    deposits: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list(entries(deposits))
    monkeypatch.setattr(journal, "_TRANSACTIONS_AT_ONCE", 3)

    assert list(entries(deposits)) == whole
    assert [entry.transaction_id for entry in whole] == sorted(entry.transaction_id for entry in whole)
    assert len(whole) == deposits.scalar(select(func.count()).select_from(Posting)) == 14
    assert sum(entry.cents for entry in whole) == 0


def test_the_months_share_the_postings_and_none_is_left_out(deposits: Session) -> None:
    counts = [month_digest(deposits, Month(2026, number)).transactions for number in (10, 11, 12)]

    assert counts == [1, 5, 1]
    assert sum(counts) == deposits.scalar(select(func.count()).select_from(LedgerTransaction))


def test_the_hash_is_that_of_the_file_that_is_downloaded(deposits: Session, tmp_path: Path) -> None:
    write_csv(month_journal(deposits, NOVEMBER), tmp_path / "ledger.csv")

    digest = month_digest(deposits, NOVEMBER)

    content = (tmp_path / "ledger.csv").read_bytes()
    assert digest.sha256 == hashlib.sha256(content).hexdigest()
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert (digest.postings, digest.last_posting_id) == (len(rows), max(int(row["posting"]) for row in rows))
    assert {row["reference"] for row in rows} == {f"'=invoice {number}" for number in range(1, 6)}


def test_the_way_it_is_written_never_changes_since_closed_months_are_hashed_by_it(session: Session) -> None:
    record_deposit(
        session, ENDPOINT, usd("10.00"), reference="invoice 1", now=datetime(2026, 11, 15, 12, 0, 1, 5, tzinfo=UTC)
    )

    assert "".join(csv_lines(month_journal(session, NOVEMBER))) == (
        "transaction,posting,at,kind,key,reference,account,amount\r\n"
        "1,1,2026-11-15T12:00:01.000005Z,deposit,deposit:invoice 1,invoice 1,marketplace:http://127.0.0.1:8000,10.00\r\n"
        "1,2,2026-11-15T12:00:01.000005Z,deposit,deposit:invoice 1,invoice 1,deposits:http://127.0.0.1:8000,-10.00\r\n"
    )


def test_an_empty_month_has_a_hash_too(session: Session) -> None:
    digest = month_digest(session, NOVEMBER)

    assert (digest.transactions, digest.postings, digest.last_posting_id) == (0, 0, None)
    assert len(digest.sha256) == 64
    assert list(journal_table(session).rows) == []
