"""Runs dynahit's migrations: on the engine that `app.schema` hands over, or on the Flask app's for `dynahit db`."""

from __future__ import annotations

from alembic import context
from flask import current_app

import app.models  # noqa: F401  # every table must be registered before metadata is compared
from hits.db import Base


def belongs_to_dynahit(name: str | None, kind: str, _parents: object) -> bool:
    """Leave the marketplace's tables alone where both share a database."""
    return kind != "table" or not str(name).startswith("mp_")


def run() -> None:
    engine = context.config.attributes.get("engine")
    if engine is None:
        engine = current_app.extensions["migrate"].db.engine
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            render_as_batch=True,
            include_name=belongs_to_dynahit,
            # A statement that fails takes its whole migration back, also on SQLite (BEGIN IMMEDIATE is our own).
            transactional_ddl=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()


run()
