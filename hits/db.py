"""The declarative base, the column types and the engine settings that every table of dynahit shares."""

from __future__ import annotations

import enum
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, DateTime, Dialect, Engine, Enum, Integer, MetaData, create_engine, event, text
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.types import TypeDecorator

from hits.money import from_cents, to_cents

BUSY_SECONDS = 30
ONLY_READS = "only_reads"
_HAS_TURN = "has_turn"
_LOOKS_EVERY_SECONDS = 0.002


class Base(DeclarativeBase):
    """Base of all tables; names every constraint so that migrations can address it on both databases."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class UsdCents(TypeDecorator[Decimal]):
    """Decimal dollars in Python, whole cents in the database. Refuses a fraction of a cent (MoneyError)."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> int | None:
        return None if value is None else to_cents(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> Decimal | None:
        return None if value is None else from_cents(value)


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC datetimes on every database, SQLite included. Refuses naive values."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(DateTime(timezone=dialect.name != "sqlite"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; store aware UTC times only.")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def by_value(kind: type[enum.StrEnum]) -> Enum:
    """Return a column type that stores an enum's value as text with a check constraint."""
    return Enum(
        kind,
        native_enum=False,
        create_constraint=True,
        length=40,
        values_callable=lambda members: [member.value for member in members],
        name=kind.__name__.lower(),
    )


def append_only_guards(*tables: str, function: str, message: str) -> dict[str, tuple[str, ...]]:
    """Return the statements, by database, that forbid changing or deleting rows of the tables.

    ``function`` names the trigger function that PostgreSQL needs, ``message`` is the error that a change gets.
    """
    return {
        "sqlite": tuple(
            f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            for table in tables
            for verb in ("update", "delete")
        ),
        "postgresql": (
            f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{message}'; END $$",
            *(
                f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
                for table in tables
            ),
        ),
    }


def engine_options(url: str) -> dict[str, Any]:
    """Return create_engine options for ``url``: SQLite waits for its lock, PostgreSQL checks pooled connections.

    Errors hide the values of a statement, since worker ids and texts must not reach a log.
    """
    if url.startswith("sqlite"):
        return {"hide_parameters": True, "connect_args": {"timeout": BUSY_SECONDS, "check_same_thread": False}}
    return {"hide_parameters": True, "pool_pre_ping": True}


def prepare_engine(engine: Engine) -> Engine:
    """Give a SQLite engine durable, serialised writes: WAL, synchronous=FULL, foreign keys, BEGIN IMMEDIATE.

    The driver's own deferred BEGIN lets two transactions read and then fail to upgrade; IMMEDIATE takes the write
    lock first, so a transaction that started can finish; one that ``only_reads`` takes none. PostgreSQL engines are
    returned unchanged.
    """
    if engine.dialect.name != "sqlite":
        return engine

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    turn = _turn_of(engine)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get(ONLY_READS):
            connection.exec_driver_sql("BEGIN DEFERRED")
            return
        if turn is not None and not connection.info.get(_HAS_TURN):
            connection.info[_HAS_TURN] = turn.take(BUSY_SECONDS)
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    @event.listens_for(engine, "checkin")
    def end_turn(_connection: Any, record: ConnectionPoolEntry) -> None:
        if turn is not None and record.info.pop(_HAS_TURN, False):
            turn.give()

    return engine


def only_reads(session: Session) -> None:
    """Begin a transaction that stores nothing, so that on SQLite no writer waits for it; one that is on stays so."""
    if not session.in_transaction():
        session.connection(execution_options={ONLY_READS: True})


@contextmanager
def joins_whole_tables(session: Session) -> Iterator[None]:
    """Keep PostgreSQL from joining row by row what is read whole.

    After many rows came at once its statistics may say that there are none, and it would read one table anew for each
    row of the other.
    """
    is_postgres = session.get_bind().dialect.name == "postgresql"
    if is_postgres:
        session.execute(text("SET LOCAL enable_nestloop = off"))
    yield
    if is_postgres:
        session.execute(text("SET LOCAL enable_nestloop TO DEFAULT"))


class _Turn:
    """Whose turn it is to write to a SQLite file: first among the threads of this process, then among the processes.

    SQLite by itself lets those who wait look again ever more rarely, so that on a busy machine some look in vain until
    their time is over. A file's lock ends with its process, however that ends. Whoever gets no turn tries without.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._file: int | None = None
        self._opened_by = 0

    def take(self, seconds: float) -> bool:
        """Wait for the turn and keep it; tell whether it came in time."""
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            return False
        try:
            file = self._lock_file()
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        break
                    time.sleep(_LOOKS_EVERY_SECONDS)
                else:
                    return True
        except OSError:
            # A folder that takes no more files: SQLite's own lock is what remains.
            pass
        self._threads.release()
        return False

    def give(self) -> None:
        """Let the next one write."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._threads.release()

    def _lock_file(self) -> int:
        # A forked process would share the lock of its parent, not wait for it.
        if self._file is None or self._opened_by != os.getpid():
            self._file, self._opened_by = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), os.getpid()
        return self._file


_turns: dict[str, _Turn] = {}


def _turn_of(engine: Engine) -> _Turn | None:
    path = engine.url.database
    if path in (None, "", ":memory:"):
        return None
    return _turns.setdefault(os.path.realpath(str(path)), _Turn(f"{path}-turn"))


def engine_for(url: str) -> Engine:
    """Return a prepared engine for ``url``."""
    return prepare_engine(create_engine(url, **engine_options(url)))
