"""The column types and the engine keep what they promise on both databases."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.orm import Session

from hits.db import BUSY_SECONDS, engine_for, only_reads
from hits.models import HitBatch, Round
from tests import factories as make
from tests.launched import ROOT


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


def test_a_reader_holds_no_writer_up(tmp_path: Path) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'test.db'}")
    with Session(engine) as setting, setting.begin():
        setting.execute(text("CREATE TABLE tally (number INTEGER)"))
    with Session(engine) as reading, Session(engine) as writing:
        only_reads(reading)
        assert reading.scalar(text("SELECT count(*) FROM tally")) == 0

        writing.execute(text("INSERT INTO tally VALUES (1)"))
        writing.commit()

        assert reading.scalar(text("SELECT count(*) FROM tally")) == 0, "a reader goes on with what it began with"
    engine.dispose()


def test_writers_of_one_process_take_turns_and_give_the_turn_back_after_an_error(tmp_path: Path) -> None:
    engine = engine_for(f"sqlite:///{tmp_path / 'test.db'}")
    with Session(engine) as setting, setting.begin():
        setting.execute(text("CREATE TABLE tally (number INTEGER NOT NULL)"))

    def add(number: int) -> None:
        try:
            with Session(engine) as session, session.begin():
                seen = session.scalar(text("SELECT count(*) FROM tally"))
                wrong = number % 5 == 0
                session.execute(text("INSERT INTO tally VALUES (:n)"), {"n": None if wrong else seen})
        except IntegrityError:
            assert number % 5 == 0

    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))

    assert time.monotonic() - began < BUSY_SECONDS / 2, "no turn was lost"
    with Session(engine) as session:
        assert [row[0] for row in session.execute(text("SELECT number FROM tally"))] == list(range(32))
    engine.dispose()


def test_writers_of_several_processes_take_turns(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'test.db'}"
    engine = engine_for(url)
    with Session(engine) as setting, setting.begin():
        setting.execute(text("CREATE TABLE tally (number INTEGER NOT NULL)"))
    engine.dispose()
    program = (
        "import sys; from sqlalchemy import text; from sqlalchemy.orm import Session; from hits.db import engine_for\n"
        "engine = engine_for(sys.argv[1])\n"
        "for _ in range(40):\n"
        "    with Session(engine) as session, session.begin():\n"
        "        seen = session.scalar(text('SELECT count(*) FROM tally'))\n"
        "        session.execute(text('INSERT INTO tally VALUES (:n)'), {'n': seen})\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, url], cwd=ROOT) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]

    with Session(engine) as session:
        assert [row[0] for row in session.execute(text("SELECT number FROM tally"))] == list(range(160))
    engine.dispose()


def test_whoever_holds_the_turn_too_long_keeps_nobody_from_trying(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hits.db.BUSY_SECONDS", 0.05)
    holder = os.open(tmp_path / "test.db-turn", os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    engine = engine_for(f"sqlite:///{tmp_path / 'test.db'}")

    with Session(engine) as session, session.begin():
        session.execute(text("CREATE TABLE tally (number INTEGER NOT NULL)"))

    os.close(holder)
    engine.dispose()
