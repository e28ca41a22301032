"""Fixtures that every test may use: an empty database of each kind, a session with all tables, a clock."""

from __future__ import annotations

import importlib
import os
import secrets
from collections import Counter
from collections.abc import Iterator
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


@pytest.fixture(
    params=[
        pytest.param("sqlite", marks=pytest.mark.sqlite),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ]
)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database of the test's own; on PostgreSQL an own schema, which is as empty."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'test.db'}"
        return
    url: URL = request.getfixturevalue("postgres_database")
    schema = f"test_{secrets.token_hex(6)}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
    # The server does not crash in these tests, so that waiting for its disk at each commit would prove nothing.
    options = f"-csearch_path={schema} -csynchronous_commit=off"
    try:
        yield url.update_query_dict({"options": options}).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            # A connection that a test has left open must not reach into the next one.
            connection.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid != pg_backend_pid()"
                )
            )
            connection.execute(text(f"SET synchronous_commit = off; DROP SCHEMA {schema} CASCADE"))
        engine.dispose()


def register_tables() -> None:
    """Import every module that defines a table of dynahit."""
    modules = ("hits.models", "payments.models", "app.models")
    for module in modules:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name not in modules:
                raise


@pytest.fixture
def session_factory(database_url: str) -> Iterator[sessionmaker[Session]]:
    """Makes sessions on a database that has all tables."""
    register_tables()
    engine = engine_for(database_url)
    Base.metadata.create_all(engine)
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
