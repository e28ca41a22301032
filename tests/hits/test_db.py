"""The column types and the engine keep what they promise on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.orm import Session

from hits.db import engine_for
from hits.models import HitBatch, Round
from tests import factories as make


def test_times_come_back_aware_in_utc(session: Session) -> None:
    local = datetime(2026, 11, 15, 14, tzinfo=timezone(timedelta(hours=2)))
    make.make_round(session, number=7, created_at=local)
    session.commit()
    session.expire_all()

    stored = session.scalar(select(Round.created_at).where(Round.number == 7))
    assert stored == local
    assert stored is not None
    assert stored.tzinfo == UTC


def test_naive_times_are_refused(session: Session) -> None:
    with pytest.raises(StatementError, match="no time zone"):
        make.make_round(session, number=8, created_at=datetime(2026, 11, 15))


def test_money_is_whole_cents_in_the_database(session: Session) -> None:
    batch = make.make_batch(session, reward=Decimal("0.30"))
    session.commit()

    assert session.execute(text("SELECT reward FROM hit_batch")).scalar_one() == 30
    session.expire_all()
    assert session.get_one(HitBatch, batch.id).reward == Decimal("0.30")
    with pytest.raises(StatementError, match="fraction of a cent"):
        make.make_batch(session, reward=Decimal("0.001"))


def test_a_negative_reward_is_refused_by_the_database_too(session: Session) -> None:
    with pytest.raises(IntegrityError):
        make.make_batch(session, reward=Decimal("-0.30"))


def test_sqlite_is_durable_and_checks_foreign_keys(tmp_path: Path) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'a.db'}")
    names = ("journal_mode", "synchronous", "foreign_keys")
    with engine.connect() as connection:
        found = {name: connection.execute(text(f"PRAGMA {name}")).scalar() for name in names}
    engine.dispose()

    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_an_error_never_shows_the_values_of_its_statement(session: Session) -> None:
    make.make_worker(session, mturk_worker_id="ASECRETPERSON")

    with pytest.raises(IntegrityError) as caught:
        make.make_worker(session, mturk_worker_id="ASECRETPERSON", pseudonym="w-other")

    assert "[SQL parameters hidden" in str(caught.value)
