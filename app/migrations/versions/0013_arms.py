"""The arms of a round, and who was drawn for which.

Revision ID: 0013
Revises: 0012
Create Date: 2026-11-30 22:20:00+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLES = ("arm_plan", "arm_assignment")
WORDS = "arms and who was drawn for them are append-only"
GUARDS = {
    "sqlite": tuple(
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} ON {table} BEGIN SELECT RAISE(ABORT, '{WORDS}'); END"
        for table in TABLES
        for verb in ("update", "delete")
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION forbid_arm_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{WORDS}'; END $$",
        *(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION forbid_arm_change()"
            for table in TABLES
        ),
    ),
}
GUARDS_DROPPED = {
    "sqlite": tuple(f"DROP TRIGGER IF EXISTS {table}_no_{verb}" for table in TABLES for verb in ("update", "delete")),
    "postgresql": (
        *(f"DROP TRIGGER IF EXISTS {table}_append_only ON {table}" for table in TABLES),
        "DROP FUNCTION IF EXISTS forbid_arm_change()",
    ),
}


def upgrade() -> None:
    # In place: alembic's way on SQLite would lose the table's triggers and other checks.
    op.execute("ALTER TABLE round ADD COLUMN arms_version INTEGER")
    op.create_table(
        "arm_plan",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("arms", sa.JSON(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("created_by", sa.String(length=80), nullable=False),
        sa.CheckConstraint("version >= 1", name=op.f("ck_arm_plan_version_from_one")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_arm_plan_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_arm_plan")),
        sa.UniqueConstraint("round_id", "version", name=op.f("uq_arm_plan_round_id_version")),
    )
    op.create_table(
        "arm_assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("plan_id", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("arm", sa.String(length=40), nullable=False),
        sa.Column("drawn_at", hits.db.UtcDateTime(), nullable=False),
        sa.CheckConstraint("place >= 0", name=op.f("ck_arm_assignment_place_from_zero")),
        sa.ForeignKeyConstraint(["plan_id"], ["arm_plan.id"], name=op.f("fk_arm_assignment_plan_id_arm_plan")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_arm_assignment_round_id_round")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_arm_assignment_worker_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_arm_assignment")),
        sa.UniqueConstraint("plan_id", "place", name=op.f("uq_arm_assignment_plan_id_place")),
        sa.UniqueConstraint("round_id", "worker_id", name=op.f("uq_arm_assignment_round_id_worker_id")),
    )
    op.create_index(op.f("ix_arm_assignment_worker_id"), "arm_assignment", ["worker_id"])
    for statement in GUARDS[op.get_bind().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    for statement in GUARDS_DROPPED[op.get_bind().dialect.name]:
        op.execute(statement)
    op.drop_index(op.f("ix_arm_assignment_worker_id"), table_name="arm_assignment")
    op.drop_table("arm_assignment")
    op.drop_table("arm_plan")
    op.execute("ALTER TABLE round DROP COLUMN arms_version")
