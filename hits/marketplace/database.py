"""Opens the marketplace's database (SQLite or PostgreSQL), keeps its transactions honest, and runs its migrations."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, Executable, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry, StaticPool

from hits.marketplace.tables import Base, ClockRow

VERSION_TABLE: Final = "mp_alembic_version"
_BUSY_TIMEOUT_SECONDS: Final = 30
_IDLE_SECONDS: Final = 5.0
_MIGRATIONS = Path(__file__).parent / "migrations"


class Store:
    """The database behind one marketplace."""

    def __init__(self, database_url: str) -> None:
        """Open it; a database in memory lives as long as this object and serves one transaction at a time."""
        self.engine = engine_for(database_url)
        self.in_memory = isinstance(self.engine.pool, StaticPool)
        url = self.engine.url
        is_file = self.writes_one_at_a_time and not self.in_memory and not str(url.database).startswith("file:")
        self._turn = _Turn(f"{url.database}-turn" if is_file else None)
        self._writing = self.engine.execution_options(mp_begin="IMMEDIATE")
        self._looking = self.engine.execution_options(mp_begin="", isolation_level="AUTOCOMMIT")

    @property
    def writes_one_at_a_time(self) -> bool:
        """Whether a write locks the whole database, as on SQLite."""
        return self.engine.dialect.name == "sqlite"

    def create_schema(self) -> None:
        """Create the tables that are missing."""
        Base.metadata.create_all(self.engine)

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()
        self._turn.close()

    def clock_offset(self) -> timedelta:
        """Return how far the clock has been moved."""
        with self.session(writes=False) as session:
            row = session.get(ClockRow, 1)
            return timedelta(microseconds=row.offset_microseconds if row is not None else 0)

    def move_clock(self, step: timedelta) -> None:
        """Move the clock forward."""
        with self.session(writes=True) as session:
            row = session.get(ClockRow, 1, with_for_update=True)
            if row is None:
                row = ClockRow(clock_id=1, offset_microseconds=0)
                session.add(row)
            row.offset_microseconds += step // timedelta(microseconds=1)

    def look_up(self, statement: Executable, parameters: Mapping[str, Any]) -> Any | None:
        """Return the first row of one statement, which is its own transaction."""
        with self._turn.taken() if self.in_memory else nullcontext(), self._looking.connect() as connection:
            return connection.execute(statement, parameters).first()

    @contextmanager
    def session(self, *, writes: bool) -> Iterator[Session]:
        """Yield a session whose transaction is committed at the end, or rolled back by an exception."""
        waits = self.in_memory or (writes and self.writes_one_at_a_time)
        with self._turn.taken() if waits else nullcontext():
            engine = self._writing if writes else self.engine
            with Session(engine, expire_on_commit=False) as session, session.begin():
                yield session


class _Turn:
    """Whose turn it is to write to SQLite: the threads of this process first agree, then the processes, by a lock file.

    SQLite by itself lets those who wait sleep and ask again, in no order, and on a busy machine some ask in vain until
    their time is over. A lock of a file ends with its process, however that ends.
    """

    def __init__(self, path: str | None) -> None:
        """Open nothing yet; None is for a database that no other process knows."""
        self._path = path
        self._threads = threading.RLock()
        self._depth = 0
        self._file: int | None = None
        self._opened_by = 0

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn and keep it."""
        with self._threads:
            file = self._lock_file()
            self._depth += 1
            try:
                if file is not None and self._depth == 1:
                    fcntl.flock(file, fcntl.LOCK_EX)
                yield
            finally:
                self._depth -= 1
                if file is not None and self._depth == 0:
                    fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the file back."""
        with self._threads:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _lock_file(self) -> int | None:
        # A forked process would share the lock of its parent, not wait for it.
        if self._path is not None and (self._file is None or self._opened_by != os.getpid()):
            self._file, self._opened_by = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), os.getpid()
        return self._file


def engine_for(database_url: str) -> Engine:
    """Return an engine; on SQLite with WAL, synchronous=FULL, foreign keys, and write locks taken at BEGIN."""
    url = make_url(database_url)
    if url.get_backend_name() != "sqlite":
        engine = create_engine(url, hide_parameters=True, pool_size=10, max_overflow=20)
        event.listen(engine, "checkin", _note_use)
        event.listen(engine, "checkout", partial(_ping_if_idle, engine))
        return engine
    if url.database in {None, "", ":memory:"}:
        engine = create_engine(
            url, hide_parameters=True, poolclass=StaticPool, connect_args={"check_same_thread": False}
        )
    else:
        engine = create_engine(
            url, hide_parameters=True, connect_args={"timeout": _BUSY_TIMEOUT_SECONDS}, pool_size=10, max_overflow=20
        )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def upgrade(database_url: str) -> None:
    """Bring the database to the newest schema; doing it again changes nothing."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["database_url"] = database_url
    command.upgrade(config, "head")


def _note_use(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _ping_if_idle(engine: Engine, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Ask a connection that has lain idle whether its server still answers; the pool replaces one that does not.

    One that was used a moment ago is not asked, which would double the round trips of a short call.
    """
    if time.monotonic() - record.info.get("used", time.monotonic()) < _IDLE_SECONDS:
        return
    try:
        alive = engine.dialect.do_ping(connection)
    except Exception as error:  # whatever the driver raises, this connection is of no use
        raise DisconnectionError from error
    if not alive:
        raise DisconnectionError


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver must not open transactions by itself, or BEGIN IMMEDIATE would come second.
    connection.isolation_level = None
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={_BUSY_TIMEOUT_SECONDS * 1000}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    mode = connection.get_execution_options().get("mp_begin", "DEFERRED")
    if mode:
        connection.exec_driver_sql(f"BEGIN {mode}")
