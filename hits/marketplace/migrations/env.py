"""Runs the marketplace's migrations on the database that `upgrade` was given."""

from __future__ import annotations

from alembic import context

from hits.marketplace.database import VERSION_TABLE, engine_for
from hits.marketplace.tables import Base


def _run() -> None:
    engine = engine_for(context.config.attributes["database_url"])
    with engine.connect() as connection:
        # SQLite changes a table by copying it and dropping the old one, which others may refer to. The switch works
        # outside of transactions only, so it goes past SQLAlchemy, which would begin one.
        is_sqlite = connection.dialect.name == "sqlite"
        if is_sqlite:
            connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
        context.configure(
            connection=connection,
            target_metadata=Base.metadata,
            version_table=VERSION_TABLE,
            render_as_batch=True,
            include_name=lambda name, type_, _parents: type_ != "table" or str(name).startswith("mp_"),
        )
        with context.begin_transaction():
            context.run_migrations()
            if is_sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").all()):
                raise RuntimeError(f"The migrations were rolled back, since they would break references: {broken[:5]}.")
        connection.commit()
    engine.dispose()


_run()
