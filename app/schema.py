"""Brings a database to a revision of dynahit's schema without a Flask app; the migrations stand in app/migrations."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine

from hits.db import engine_for

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(database_url: str, revision: str = "head") -> None:
    """Bring the database up to ``revision``; doing it again changes nothing."""
    engine = engine_for(database_url)
    try:
        command.upgrade(configuration(engine), revision)
    finally:
        engine.dispose()


def downgrade(database_url: str, revision: str) -> None:
    """Take the database down to ``revision``; ``base`` removes every table."""
    engine = engine_for(database_url)
    try:
        command.downgrade(configuration(engine), revision)
    finally:
        engine.dispose()


def heads() -> tuple[str, ...]:
    """Return the newest revisions; more than one means that two migrations follow the same one."""
    return tuple(ScriptDirectory(str(MIGRATIONS)).get_heads())


def current(database_url: str) -> str | None:
    """Return the revision that the database is at, None when it has no tables of dynahit."""
    engine = engine_for(database_url)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def configuration(engine: Engine) -> Config:
    """Return alembic's configuration for this engine."""
    config = Config(str(MIGRATIONS / "alembic.ini"))
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = engine
    return config
