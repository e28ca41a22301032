"""Frozen rounds: their manifest, the splits of their examples, and the triggers that keep them; imported rounds.

Revision ID: 0009
Revises: 0008
Create Date: 2026-11-30 18:45:00+00:00
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

#: Column, its definition, and the check that comes with it, in place: alembic's way on SQLite would lose other checks.
COLUMNS = {
    "round": (
        ("origin", "JSON", "", ""),
        ("frozen_at", "TIME", "", ""),
        ("frozen_by", "VARCHAR(80)", "", ""),
        ("manifest", "JSON", "", ""),
        (
            "manifest_sha256",
            "VARCHAR(64)",
            "ck_round_frozen_has_manifest",
            "(frozen_at IS NULL) = (manifest_sha256 IS NULL)",
        ),
    ),
    "example": (
        ("split", "VARCHAR(40)", "ck_example_split", "split IN ('train', 'dev', 'test', 'withheld')"),
        ("origin", "VARCHAR(120)", "", ""),
        ("published", "JSON", "", ""),
    ),
}
TIMES = {"sqlite": "DATETIME", "postgresql": "TIMESTAMP WITH TIME ZONE"}

GUARDS = {
    "sqlite": (
        "CREATE TRIGGER example_frozen_insert BEFORE INSERT ON example WHEN EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = NEW.round_id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER example_frozen_update BEFORE UPDATE ON example WHEN EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = OLD.round_id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER example_frozen_move BEFORE UPDATE ON example WHEN EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = NEW.round_id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER example_frozen_delete BEFORE DELETE ON example WHEN EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = OLD.round_id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER vote_frozen_insert BEFORE INSERT ON vote WHEN EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.id = NEW.example_id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER vote_frozen_update BEFORE UPDATE OF example_id, gold_item_id, validator_id, label, details, correction, seconds, created_at, counted_at ON vote WHEN EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.id IN (OLD.example_id, NEW.example_id)) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER vote_frozen_delete BEFORE DELETE ON vote WHEN EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.id = OLD.example_id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER attempt_frozen_update BEFORE UPDATE ON attempt WHEN EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.attempt_id = OLD.id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER attempt_frozen_delete BEFORE DELETE ON attempt WHEN EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.attempt_id = OLD.id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER context_frozen_update BEFORE UPDATE ON context WHEN EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = OLD.round_id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER context_frozen_delete BEFORE DELETE ON context WHEN EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = OLD.round_id) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
        "CREATE TRIGGER round_frozen_kept BEFORE UPDATE ON round WHEN OLD.manifest_sha256 != 'freezing' AND (NEW.manifest_sha256 IS NULL OR NEW.frozen_at IS NULL OR NEW.manifest_sha256 != OLD.manifest_sha256 OR NEW.task_code != OLD.task_code OR NEW.number != OLD.number) BEGIN SELECT RAISE(ABORT, 'the round is frozen: its data cannot change'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION example_frozen_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = NEW.round_id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER example_frozen_insert BEFORE INSERT ON example FOR EACH ROW EXECUTE FUNCTION example_frozen_insert()",
        "CREATE OR REPLACE FUNCTION example_frozen_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = OLD.round_id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER example_frozen_update BEFORE UPDATE ON example FOR EACH ROW EXECUTE FUNCTION example_frozen_update()",
        "CREATE OR REPLACE FUNCTION example_frozen_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = NEW.round_id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER example_frozen_move BEFORE UPDATE ON example FOR EACH ROW EXECUTE FUNCTION example_frozen_move()",
        "CREATE OR REPLACE FUNCTION example_frozen_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = OLD.round_id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN OLD; END $$",
        "CREATE TRIGGER example_frozen_delete BEFORE DELETE ON example FOR EACH ROW EXECUTE FUNCTION example_frozen_delete()",
        "CREATE OR REPLACE FUNCTION vote_frozen_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.id = NEW.example_id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER vote_frozen_insert BEFORE INSERT ON vote FOR EACH ROW EXECUTE FUNCTION vote_frozen_insert()",
        "CREATE OR REPLACE FUNCTION vote_frozen_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.id IN (OLD.example_id, NEW.example_id)) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER vote_frozen_update BEFORE UPDATE OF example_id, gold_item_id, validator_id, label, details, correction, seconds, created_at, counted_at ON vote FOR EACH ROW EXECUTE FUNCTION vote_frozen_update()",
        "CREATE OR REPLACE FUNCTION vote_frozen_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.id = OLD.example_id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN OLD; END $$",
        "CREATE TRIGGER vote_frozen_delete BEFORE DELETE ON vote FOR EACH ROW EXECUTE FUNCTION vote_frozen_delete()",
        "CREATE OR REPLACE FUNCTION attempt_frozen_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.attempt_id = OLD.id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER attempt_frozen_update BEFORE UPDATE ON attempt FOR EACH ROW EXECUTE FUNCTION attempt_frozen_update()",
        "CREATE OR REPLACE FUNCTION attempt_frozen_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM example JOIN round ON round.id = example.round_id WHERE round.manifest_sha256 != 'freezing' AND example.attempt_id = OLD.id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN OLD; END $$",
        "CREATE TRIGGER attempt_frozen_delete BEFORE DELETE ON attempt FOR EACH ROW EXECUTE FUNCTION attempt_frozen_delete()",
        "CREATE OR REPLACE FUNCTION context_frozen_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = OLD.round_id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER context_frozen_update BEFORE UPDATE ON context FOR EACH ROW EXECUTE FUNCTION context_frozen_update()",
        "CREATE OR REPLACE FUNCTION context_frozen_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT 1 FROM round WHERE manifest_sha256 != 'freezing' AND id = OLD.round_id) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN OLD; END $$",
        "CREATE TRIGGER context_frozen_delete BEFORE DELETE ON context FOR EACH ROW EXECUTE FUNCTION context_frozen_delete()",
        "CREATE OR REPLACE FUNCTION round_frozen_kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.manifest_sha256 != 'freezing' AND (NEW.manifest_sha256 IS NULL OR NEW.frozen_at IS NULL OR NEW.manifest_sha256 != OLD.manifest_sha256 OR NEW.task_code != OLD.task_code OR NEW.number != OLD.number) THEN RAISE EXCEPTION 'the round is frozen: its data cannot change' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER round_frozen_kept BEFORE UPDATE ON round FOR EACH ROW EXECUTE FUNCTION round_frozen_kept()",
    ),
}
GUARDS_DROPPED = {
    "sqlite": (
        "DROP TRIGGER IF EXISTS example_frozen_insert",
        "DROP TRIGGER IF EXISTS example_frozen_update",
        "DROP TRIGGER IF EXISTS example_frozen_move",
        "DROP TRIGGER IF EXISTS example_frozen_delete",
        "DROP TRIGGER IF EXISTS vote_frozen_insert",
        "DROP TRIGGER IF EXISTS vote_frozen_update",
        "DROP TRIGGER IF EXISTS vote_frozen_delete",
        "DROP TRIGGER IF EXISTS attempt_frozen_update",
        "DROP TRIGGER IF EXISTS attempt_frozen_delete",
        "DROP TRIGGER IF EXISTS context_frozen_update",
        "DROP TRIGGER IF EXISTS context_frozen_delete",
        "DROP TRIGGER IF EXISTS round_frozen_kept",
    ),
    "postgresql": (
        "DROP TRIGGER IF EXISTS example_frozen_insert ON example",
        "DROP TRIGGER IF EXISTS example_frozen_update ON example",
        "DROP TRIGGER IF EXISTS example_frozen_move ON example",
        "DROP TRIGGER IF EXISTS example_frozen_delete ON example",
        "DROP TRIGGER IF EXISTS vote_frozen_insert ON vote",
        "DROP TRIGGER IF EXISTS vote_frozen_update ON vote",
        "DROP TRIGGER IF EXISTS vote_frozen_delete ON vote",
        "DROP TRIGGER IF EXISTS attempt_frozen_update ON attempt",
        "DROP TRIGGER IF EXISTS attempt_frozen_delete ON attempt",
        "DROP TRIGGER IF EXISTS context_frozen_update ON context",
        "DROP TRIGGER IF EXISTS context_frozen_delete ON context",
        "DROP TRIGGER IF EXISTS round_frozen_kept ON round",
        "DROP FUNCTION IF EXISTS example_frozen_insert()",
        "DROP FUNCTION IF EXISTS example_frozen_update()",
        "DROP FUNCTION IF EXISTS example_frozen_move()",
        "DROP FUNCTION IF EXISTS example_frozen_delete()",
        "DROP FUNCTION IF EXISTS vote_frozen_insert()",
        "DROP FUNCTION IF EXISTS vote_frozen_update()",
        "DROP FUNCTION IF EXISTS vote_frozen_delete()",
        "DROP FUNCTION IF EXISTS attempt_frozen_update()",
        "DROP FUNCTION IF EXISTS attempt_frozen_delete()",
        "DROP FUNCTION IF EXISTS context_frozen_update()",
        "DROP FUNCTION IF EXISTS context_frozen_delete()",
        "DROP FUNCTION IF EXISTS round_frozen_kept()",
    ),
}


def upgrade() -> None:
    database = op.get_bind().dialect.name
    for table, columns in COLUMNS.items():
        for name, kind, check, condition in columns:
            defined = f"{name} {kind.replace('TIME', TIMES[database])}"
            rule = f" CONSTRAINT {check} CHECK ({condition})" if check else ""
            op.execute(f"ALTER TABLE {table} ADD COLUMN {defined}{rule}")
    op.create_index("ix_example_origin", "example", ["round_id", "origin"], unique=True)
    for statement in GUARDS[database]:
        op.execute(statement)


def downgrade() -> None:
    database = op.get_bind().dialect.name
    for statement in GUARDS_DROPPED[database]:
        op.execute(statement)
    op.drop_index("ix_example_origin", table_name="example")
    for table, columns in COLUMNS.items():
        for name, _, check, _ in reversed(columns):
            if check and database != "sqlite":
                op.drop_constraint(op.f(check), table, type_="check")
            op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
