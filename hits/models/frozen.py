"""The triggers by which the data of a frozen round can't change, whatever writes to the database."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Table, event

from hits.models.work import Vote

WORDS: Final = "the round is frozen: its data cannot change"
#: Stands in the place of a manifest's hash while the splits are written and the hash is computed.
FREEZING: Final = "freezing"
_ROUND: Final = f"SELECT 1 FROM round WHERE manifest_sha256 != '{FREEZING}' AND id ="  # noqa: S608 - fixed words
_OF_EXAMPLE: Final = (
    "SELECT 1 FROM example JOIN round ON round.id = example.round_id"  # noqa: S608 - as above
    f" WHERE round.manifest_sha256 != '{FREEZING}' AND"
)
#: The reason of a flag is what somebody wrote about a text, and goes with them when they are erased.
_OF_VOTES: Final = (
    "UPDATE OF example_id, gold_item_id, validator_id, label, details, correction, seconds, created_at, counted_at"
)

#: (table, what is done to it, the trigger's name, the condition under which it is forbidden).
_RULES: Final = (
    ("example", "INSERT", "example_frozen_insert", f"{_ROUND} NEW.round_id"),
    ("example", "UPDATE", "example_frozen_update", f"{_ROUND} OLD.round_id"),
    ("example", "UPDATE", "example_frozen_move", f"{_ROUND} NEW.round_id"),
    ("example", "DELETE", "example_frozen_delete", f"{_ROUND} OLD.round_id"),
    ("vote", "INSERT", "vote_frozen_insert", f"{_OF_EXAMPLE} example.id = NEW.example_id"),
    ("vote", _OF_VOTES, "vote_frozen_update", f"{_OF_EXAMPLE} example.id IN (OLD.example_id, NEW.example_id)"),
    ("vote", "DELETE", "vote_frozen_delete", f"{_OF_EXAMPLE} example.id = OLD.example_id"),
    ("attempt", "UPDATE", "attempt_frozen_update", f"{_OF_EXAMPLE} example.attempt_id = OLD.id"),
    ("attempt", "DELETE", "attempt_frozen_delete", f"{_OF_EXAMPLE} example.attempt_id = OLD.id"),
    ("context", "UPDATE", "context_frozen_update", f"{_ROUND} OLD.round_id"),
    ("context", "DELETE", "context_frozen_delete", f"{_ROUND} OLD.round_id"),
)
_ROUND_KEPT: Final = (
    f"OLD.manifest_sha256 != '{FREEZING}' AND (NEW.manifest_sha256 IS NULL OR NEW.frozen_at IS NULL"
    " OR NEW.manifest_sha256 != OLD.manifest_sha256 OR NEW.task_code != OLD.task_code OR NEW.number != OLD.number)"
)

#: The statements, by database; a migration runs them after adding the columns.
FROZEN_GUARDS: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": (
        *(
            f"CREATE TRIGGER {name} BEFORE {verb} ON {table} "
            f"WHEN EXISTS ({condition}) BEGIN SELECT RAISE(ABORT, '{WORDS}'); END"
            for table, verb, name, condition in _RULES
        ),
        f"CREATE TRIGGER round_frozen_kept BEFORE UPDATE ON round WHEN {_ROUND_KEPT} "
        f"BEGIN SELECT RAISE(ABORT, '{WORDS}'); END",
    ),
    "postgresql": (
        *(
            statement
            for table, verb, name, condition in _RULES
            for statement in (
                f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN IF EXISTS ({condition}) "
                f"THEN RAISE EXCEPTION '{WORDS}' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
                f"RETURN {'OLD' if verb == 'DELETE' else 'NEW'}; END $$",
                f"CREATE TRIGGER {name} BEFORE {verb} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
            )
        ),
        "CREATE OR REPLACE FUNCTION round_frozen_kept() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF {_ROUND_KEPT} "
        f"THEN RAISE EXCEPTION '{WORDS}' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
        "RETURN NEW; END $$",
        "CREATE TRIGGER round_frozen_kept BEFORE UPDATE ON round FOR EACH ROW EXECUTE FUNCTION round_frozen_kept()",
    ),
}

_NAMES: Final = (*((table, name) for table, _, name, _ in _RULES), ("round", "round_frozen_kept"))

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
