"""Changes the text of a check constraint on both databases without touching a row.

SQLite has no statement for that; its documentation names the edit of ``sqlite_schema`` as the way for changes that
don't touch how rows are stored. Rebuilding the table instead would drop its other checks, which alembic can't see.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from alembic import op


def replace_check(table: str, name: str, old: str, new: str) -> None:
    """Put ``new`` in the place of the condition ``old`` of the named check. Raises LookupError where it is not so."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.drop_constraint(op.f(name), table, type_="check")
        op.create_check_constraint(op.f(name), table, new)
        return
    before, after = (f"CONSTRAINT {name} CHECK ({condition})" for condition in (old, new))

    def replaced(made: str) -> str:
        if made.count(before) != 1:
            raise LookupError(f"The table {table} has no check {name} ({old}).")
        return made.replace(before, after)

    edit_table(table, replaced)


def edit_table(table: str, edit: Callable[[str], str]) -> None:
    """Change the statement that made a table of SQLite, in a way that changes nothing of how its rows are stored."""
    connection = op.get_bind()
    made = connection.execute(
        sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :table"), {"table": table}
    ).scalar_one()
    edited = edit(made)
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.execute(
        sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = :table"),
        {"sql": edited, "table": table},
    )
    # Every connection, this one included, reads the tables anew when the number changes.
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")


def one_of(column: str, *values: str) -> str:
    """Return the condition that an enum's column has, as the models write it."""
    listed = ", ".join(f"'{value}'" for value in values)
    return f"{column} IN ({listed})"
