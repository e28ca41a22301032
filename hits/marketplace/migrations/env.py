"""Runs the marketplace's migrations on the database that `upgrade` was given."""

from __future__ import annotations

from alembic import context

from hits.marketplace.database import VERSION_TABLE, engine_for
from hits.marketplace.tables import Base


def _run() -> None:
    engine = engine_for(context.config.attributes["database_url"])
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            version_table=VERSION_TABLE,
            render_as_batch=True,
            include_name=lambda name, type_, _parents: type_ != "table" or str(name).startswith("mp_"),
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    engine.dispose()


_run()
