"""The state of a round, its moves, when it stops by itself, and the pilot of a launch.

Revision ID: 0010
Revises: 0009
Create Date: 2026-11-30 22:10:00+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db
from app.migrations.checks import replace_check

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

STATES = ("draft", "piloting", "collecting", "validating", "frozen", "trained", "archived")
TIMES = {"sqlite": "DATETIME", "postgresql": "TIMESTAMP WITH TIME ZONE"}

#: Column, its definition, and the check that comes with it, in place: alembic's way on SQLite would lose other checks.
COLUMNS = {
    "round": (
        (
            "state",
            "VARCHAR(40) DEFAULT 'draft' NOT NULL",
            "ck_round_roundstate",
            "state IN ('draft', 'piloting', 'collecting', 'validating', 'frozen', 'trained', 'archived')",
        ),
        ("stop_validated", "INTEGER", "ck_round_stop_validated", "stop_validated IS NULL OR stop_validated >= 1"),
        ("stop_spent", "INTEGER", "ck_round_stop_spent", "stop_spent IS NULL OR stop_spent >= 1"),
        ("stop_at", "TIME", "", ""),
        ("stop_window", "INTEGER", "ck_round_stop_window", "stop_window IS NULL OR stop_window >= 20"),
        ("stop_points", "INTEGER DEFAULT '5' NOT NULL", "ck_round_stop_points", "stop_points BETWEEN 1 AND 50"),
    ),
    "hit_batch": (
        ("pilot", "INTEGER", "ck_hit_batch_pilot", "pilot IS NULL OR pilot >= 1"),
        ("released_at", "TIME", "", ""),
    ),
}

#: A HIT that was never made, since its round was closed before, is closed as well.
CREATED_HAS_ID = (
    "state IN ('planned', 'creating') OR mturk_hit_id IS NOT NULL",
    "state != 'created' OR mturk_hit_id IS NOT NULL",
)

GUARDS = {
    "sqlite": (
        "CREATE TRIGGER round_move_no_update BEFORE UPDATE ON round_move BEGIN SELECT RAISE(ABORT, 'moves of a round are append-only'); END",
        "CREATE TRIGGER round_move_no_delete BEFORE DELETE ON round_move BEGIN SELECT RAISE(ABORT, 'moves of a round are append-only'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION forbid_round_move_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'moves of a round are append-only'; END $$",
        "CREATE TRIGGER round_move_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON round_move FOR EACH STATEMENT EXECUTE FUNCTION forbid_round_move_change()",
    ),
}
GUARDS_DROPPED = {
    "sqlite": ("DROP TRIGGER IF EXISTS round_move_no_update", "DROP TRIGGER IF EXISTS round_move_no_delete"),
    "postgresql": (
        "DROP TRIGGER IF EXISTS round_move_append_only ON round_move",
        "DROP FUNCTION IF EXISTS forbid_round_move_change()",
    ),
}

#: Rounds that are there already begin where their data show them to be.
FITTING = (
    "UPDATE round SET state = CASE"
    " WHEN manifest_sha256 IS NOT NULL AND manifest_sha256 != 'freezing' THEN 'frozen'"
    " WHEN origin IS NOT NULL THEN 'validating'"
    " WHEN EXISTS (SELECT 1 FROM hit_batch WHERE hit_batch.round_id = round.id AND kind = 'creation') THEN 'collecting'"
    " ELSE 'draft' END",
    "INSERT INTO round_move (round_id, from_state, to_state, at, by, note)"
    " SELECT id, NULL, state, COALESCE(frozen_at, created_at), 'migration', 'where it stood before states were kept'"
    " FROM round",
)


def upgrade() -> None:
    database = op.get_bind().dialect.name
    for table, columns in COLUMNS.items():
        for name, kind, check, condition in columns:
            rule = f" CONSTRAINT {check} CHECK ({condition})" if check else ""
            op.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind.replace('TIME', TIMES[database])}{rule}")
    replace_check("hit", "ck_hit_created_has_id", *CREATED_HAS_ID)
    op.create_table(
        "round_move",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("from_state", sa.String(length=40), nullable=True),
        sa.Column(
            "to_state",
            sa.Enum(*STATES, name="roundstate", native_enum=False, create_constraint=True, length=40),
            nullable=False,
        ),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("by", sa.String(length=80), nullable=False),
        sa.Column("note", sa.String(length=500), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_round_move_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_round_move")),
    )
    op.create_index(op.f("ix_round_move_round_id"), "round_move", ["round_id"])
    for statement in (*FITTING, *GUARDS[database]):
        op.execute(statement)


def downgrade() -> None:
    database = op.get_bind().dialect.name
    for statement in GUARDS_DROPPED[database]:
        op.execute(statement)
    replace_check("hit", "ck_hit_created_has_id", *reversed(CREATED_HAS_ID))
    op.drop_index(op.f("ix_round_move_round_id"), table_name="round_move")
    op.drop_table("round_move")
    for table, columns in COLUMNS.items():
        for name, _, check, _ in reversed(columns):
            if check and database != "sqlite":
                op.drop_constraint(op.f(check), table, type_="check")
            op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
