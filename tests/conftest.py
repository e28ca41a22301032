"""Fixtures that every test may use: an empty database of each kind, a session with all tables, a clock."""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

# Read by torch and the hub's client when they are first imported, so they must stand before any test module.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
for name in [name for name in os.environ if name.startswith(("AWS_ACCESS", "AWS_SECRET", "AWS_ENDPOINT"))]:
    del os.environ[name]
POSTGRES_URL = os.environ.get("DYNAHIT_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
#: What the tests themselves may be told; an instance's settings in the shell must not reach them.
FOR_TESTS = ("DYNAHIT_TEST_POSTGRES", "DYNAHIT_DATA", "DYNAHIT_CHROMIUM")
for name in [name for name in os.environ if name.startswith(("DYNAHIT_", "MARKETPLACE_")) and name not in FOR_TESTS]:
    del os.environ[name]

import pytest  # noqa: E402
from sqlalchemy import URL, create_engine, make_url, text  # noqa: E402
from sqlalchemy.exc import SQLAlchemyError  # noqa: E402
from sqlalchemy.orm import Session, sessionmaker  # noqa: E402

from hits.clock import FixedClock  # noqa: E402
from hits.db import Base, engine_for  # noqa: E402

CHROMIUM = Path(os.environ.get("DYNAHIT_CHROMIUM", "/usr/bin/chromium"))
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

#: In CI nothing that the machine should have may be skipped.
IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


@cache
def why_no_postgres() -> str | None:
    """Return why PostgreSQL can't be used, None when it can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "PostgreSQL tests need the package psycopg: pip install 'psycopg[binary]'"
    engine = create_engine(POSTGRES_URL, connect_args={"connect_timeout": 3})
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
    except SQLAlchemyError as error:
        where = make_url(POSTGRES_URL).render_as_string()
        first_line = str(error).splitlines()[0]
        return f"no PostgreSQL at {where} (set DYNAHIT_TEST_POSTGRES to another address): {first_line}"
    finally:
        engine.dispose()
    return None


def skip_unless_ci(reason: str) -> None:
    """Skip the test with its reason; fail it in CI, where everything must be there."""
    if IN_CI:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The one browser of this test process: a second playwright in it would refuse to start."""
    if not CHROMIUM.exists():
        skip_unless_ci(f"no browser at {CHROMIUM}: apt-get install chromium, or set DYNAHIT_CHROMIUM")
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=CHROMIUM_ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def postgres_database() -> Iterator[URL]:
    """A PostgreSQL database of this test process; making one for each test would wait for the disk each time."""
    if reason := why_no_postgres():
        skip_unless_ci(reason)
    name = f"dynahit_test_{secrets.token_hex(6)}"
    server = create_engine(POSTGRES_URL, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield make_url(POSTGRES_URL).set(database=name)
    finally:
        with server.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        server.dispose()


def make_service_tables(url: str) -> None:
    """Make every table of dynahit in an empty database."""
    modules = ("hits.models", "payments.models", "app.models")
    for module in modules:
        importlib.import_module(module)
    engine = engine_for(url)
    Base.metadata.create_all(engine)
    engine.dispose()


def make_marketplace_tables(url: str) -> None:
    """Make every table of the marketplace in an empty database."""
    from hits.marketplace.engine import Marketplace, MarketplaceSettings

    engine = Marketplace(url, settings=MarketplaceSettings.for_tests())
    engine.create_schema()
    engine.close()


#: By the fixture that wants them: what makes the tables that its database holds from the beginning.
TABLES = {"session_factory": make_service_tables, "stored_market": make_marketplace_tables}


@pytest.fixture(scope="session")
def sqlite_templates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a database file with the tables that a fixture wants, made once in this test process."""
    folder = tmp_path_factory.mktemp("templates")

    def template(wanted: str) -> Path:
        path = folder / f"{wanted}.db"
        if not path.exists():
            TABLES[wanted](f"sqlite:///{path}")
        return path

    return template


class PreparedSchema:
    """A PostgreSQL schema whose tables are made once in this test process, and emptied after each test.

    Making and dropping them takes a third of a second, emptying them four milliseconds.
    """

    def __init__(self, database: URL, wanted: str) -> None:
        self.name = f"ready_{wanted}_{secrets.token_hex(3)}"
        self.url = in_schema(database, self.name)
        self.wanted = wanted
        self._make()

    def _make(self) -> None:
        self._run(f"DROP SCHEMA IF EXISTS {self.name} CASCADE; CREATE SCHEMA {self.name}")
        TABLES[self.wanted](self.url)
        self.tables = [row[0] for row in self._run(f"SELECT tablename FROM pg_tables WHERE schemaname = '{self.name}'")]
        sequences = [
            row[0] for row in self._run(f"SELECT sequencename FROM pg_sequences WHERE schemaname = '{self.name}'")
        ]
        self._emptying = ";".join(
            [
                # Foreign keys and the ledger's guards are triggers, which this leaves out.
                "SET session_replication_role = replica",
                *(f"DELETE FROM {table}" for table in self.tables),
                *(f"SELECT setval('{sequence}', 1, false)" for sequence in sequences),
                f"{_SHAPE.format(schema=self.name)}",
            ]
        )
        self.shape = self._empty()

    def empty(self) -> None:
        """Take every row away; a schema that a test has changed is made anew."""
        try:
            unchanged = self._empty() == self.shape
        except SQLAlchemyError:
            unchanged = False
        if not unchanged:
            self._make()

    def _empty(self) -> list[Any]:
        return self._run(self._emptying)

    def _run(self, statements: str) -> list[Any]:
        engine = create_engine(self.url)
        try:
            with engine.begin() as connection:
                driver: Any = connection.connection.driver_connection
                cursor = driver.execute(statements)
                while cursor.nextset():
                    pass
                return cursor.fetchall() if cursor.description else []
        finally:
            engine.dispose()


#: What a schema holds, counted: tests that make, drop or alter something there change it.
_SHAPE = """SELECT
    (SELECT count(*) FROM pg_class WHERE relnamespace = '{schema}'::regnamespace),
    (SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relnamespace = '{schema}'::regnamespace AND NOT a.attisdropped),
    (SELECT count(*) FROM pg_constraint WHERE connamespace = '{schema}'::regnamespace),
    (SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
     WHERE c.relnamespace = '{schema}'::regnamespace AND t.tgenabled = 'O'),
    (SELECT count(*) FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace)"""


def in_schema(database: URL, schema: str) -> str:
    """Return the address of a schema of a PostgreSQL database, as if it were a database of its own."""
    # The server does not crash in these tests, so that waiting for its disk at each commit would prove nothing.
    options = f"-csearch_path={schema} -csynchronous_commit=off"
    return database.update_query_dict({"options": options}).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def postgres_schemas(postgres_database: URL) -> Callable[[str], PreparedSchema]:
    """Return the schema with the tables that a fixture wants, made once in this test process."""
    return cache(lambda wanted: PreparedSchema(postgres_database, wanted))


@pytest.fixture(
    params=[
        pytest.param("sqlite", marks=pytest.mark.sqlite),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database of the test's own, on PostgreSQL a schema.

    It holds empty tables where the test uses a fixture of ``TABLES``, and nothing otherwise.
    """
    wanted = next((name for name in TABLES if name in request.fixturenames), None)
    if request.param == "sqlite":
        path = tmp_path / "test.db"
        if wanted is not None:
            shutil.copyfile(request.getfixturevalue("sqlite_templates")(wanted), path)
        yield f"sqlite:///{path}"
        return
    database: URL = request.getfixturevalue("postgres_database")
    engine = create_engine(database, isolation_level="AUTOCOMMIT")
    prepared = request.getfixturevalue("postgres_schemas")(wanted) if wanted is not None else None
    schema = prepared.name if prepared is not None else f"test_{secrets.token_hex(6)}"
    if prepared is None:
        with engine.connect() as connection:
            connection.execute(text(f"CREATE SCHEMA {schema}"))
    try:
        yield in_schema(database, schema)
    finally:
        with engine.connect() as connection:
            # A connection that a test has left open must not reach into the next one.
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid != pg_backend_pid()"
                )
            )
            if prepared is None:
                connection.execute(text(f"SET synchronous_commit = off; DROP SCHEMA {schema} CASCADE"))
        engine.dispose()
        if prepared is not None:
            prepared.empty()


@pytest.fixture
def session_factory(database_url: str) -> Iterator[sessionmaker[Session]]:
    """Makes sessions on a database that has all tables."""
    engine = engine_for(database_url)
    try:
        yield sessionmaker(engine, expire_on_commit=False)
    finally:
        engine.dispose()


@pytest.fixture
def session(session_factory: sessionmaker[Session]) -> Iterator[Session]:
    """One open session on a database that has all tables."""
    with session_factory() as opened:
        yield opened


@pytest.fixture
def clock() -> FixedClock:
    """Stands at noon UTC of 15 November 2026 until a test advances it."""
    return FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end what was skipped and why: one line for each reason, not one for each test."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    if reasons:
        terminalreporter.section("what was skipped, and why")
        for reason, count in reasons.most_common():
            terminalreporter.write_line(f"{count:>5} skipped: {reason}")
