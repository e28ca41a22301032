"""The triggers by which the data of a frozen round can't change, whatever writes to the database."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Table, event

from hits.models.work import Vote

WORDS: Final = "the round is frozen: its data cannot change"
_ROUND: Final = "SELECT 1 FROM round WHERE frozen_at IS NOT NULL AND id ="
_OF_EXAMPLE: Final = (
    "SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.frozen_at IS NOT NULL AND"
)

#: (table, what is done to it, which row, the condition under which it is forbidden).
_RULES: Final = (
    ("example", "INSERT", "NEW", f"{_ROUND} NEW.round_id"),
    ("example", "UPDATE", "NEW", f"{_ROUND} NEW.round_id"),
    ("example", "UPDATE", "OLD", f"{_ROUND} OLD.round_id"),
    ("example", "DELETE", "OLD", f"{_ROUND} OLD.round_id"),
    ("vote", "INSERT", "NEW", f"{_OF_EXAMPLE} example.id = NEW.example_id"),
    ("vote", "UPDATE", "NEW", f"{_OF_EXAMPLE} example.id = NEW.example_id"),
    ("vote", "UPDATE", "OLD", f"{_OF_EXAMPLE} example.id = OLD.example_id"),
    ("vote", "DELETE", "OLD", f"{_OF_EXAMPLE} example.id = OLD.example_id"),
    ("attempt", "UPDATE", "OLD", f"{_OF_EXAMPLE} example.attempt_id = OLD.id"),
    ("attempt", "DELETE", "OLD", f"{_OF_EXAMPLE} example.attempt_id = OLD.id"),
    ("context", "UPDATE", "OLD", f"{_ROUND} OLD.round_id"),
    ("context", "DELETE", "OLD", f"{_ROUND} OLD.round_id"),
)
_ROUND_KEPT: Final = (
    "OLD.frozen_at IS NOT NULL AND (NEW.frozen_at IS NULL OR NEW.manifest_sha256 != OLD.manifest_sha256"
    " OR NEW.task_code != OLD.task_code OR NEW.number != OLD.number)"
)


def _named(table: str, verb: str, row: str) -> str:
    return f"{table}_frozen_{verb.lower()}_{row.lower()}"


#: The statements, by database; a migration runs them after adding the columns.
FROZEN_GUARDS: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": (
        *(
            f"CREATE TRIGGER {_named(table, verb, row)} BEFORE {verb} ON {table} "
            f"WHEN EXISTS ({condition}) BEGIN SELECT RAISE(ABORT, '{WORDS}'); END"
            for table, verb, row, condition in _RULES
        ),
        f"CREATE TRIGGER round_frozen_kept BEFORE UPDATE ON round WHEN {_ROUND_KEPT} "
        f"BEGIN SELECT RAISE(ABORT, '{WORDS}'); END",
    ),
    "postgresql": (
        *(
            statement
            for table, verb, row, condition in _RULES
            for statement in (
                f"CREATE OR REPLACE FUNCTION {_named(table, verb, row)}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN IF EXISTS ({condition}) "
                f"THEN RAISE EXCEPTION '{WORDS}' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
                f"RETURN {'OLD' if verb == 'DELETE' else 'NEW'}; END $$",
                f"CREATE TRIGGER {_named(table, verb, row)} BEFORE {verb} ON {table} "
                f"FOR EACH ROW EXECUTE FUNCTION {_named(table, verb, row)}()",
            )
        ),
        "CREATE OR REPLACE FUNCTION round_frozen_kept() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {_ROUND_KEPT} "
        f"THEN RAISE EXCEPTION '{WORDS}' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
        "RETURN NEW; END $$",
        "CREATE TRIGGER round_frozen_kept BEFORE UPDATE ON round FOR EACH ROW EXECUTE FUNCTION round_frozen_kept()",
    ),
}

_NAMES: Final = (*((table, _named(table, verb, row)) for table, verb, row, _ in _RULES), ("round", "round_frozen_kept"))

#: What takes the guards away again, for a migration's way back.
FROZEN_GUARDS_DROPPED: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": tuple(f"DROP TRIGGER IF EXISTS {name}" for _, name in _NAMES),
    "postgresql": (
        *(f"DROP TRIGGER IF EXISTS {name} ON {table}" for table, name in _NAMES),
        *(f"DROP FUNCTION IF EXISTS {name}()" for _, name in _NAMES),
    ),
}


@event.listens_for(Vote.__table__, "after_create")
def _guard_frozen_rounds(_table: Table, connection: Any, **_options: Any) -> None:
    """Put the guards on a database that ``create_all`` makes; votes refer to all the others and come last."""
    for statement in FROZEN_GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
