"""Limits, exclusions and lists of workers; requirements and practice of a batch; practice grades.

Revision ID: 0008
Revises: 0007
Create Date: 2026-11-30 18:45:00+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def one_of(name: str, *values: str) -> sa.Enum:
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=40)


def work() -> sa.Enum:
    return one_of("work", "writing", "judging")


def add_column(table: str, column: str, check: str) -> None:
    """Add a column with its check in place: alembic's way on SQLite makes the table anew without its other checks."""
    op.execute(f"ALTER TABLE {table} ADD COLUMN {column} CONSTRAINT {check}")


def upgrade() -> None:
    op.add_column("hit_batch", sa.Column("requirements", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("hit_batch", sa.Column("wage_reason", sa.String(length=500), nullable=True))
    add_column("hit_batch", "practice INTEGER DEFAULT '0' NOT NULL", "ck_hit_batch_practice CHECK (practice >= 0)")
    add_column(
        "example",
        "practice_state VARCHAR(40)",
        "ck_example_practicestate CHECK (practice_state IN ('waiting', 'passed', 'failed'))",
    )
    op.create_index(op.f("ix_example_practice_state"), "example", ["practice_state"])
    op.create_table(
        "work_limit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_code", sa.String(length=40), nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("work", work(), nullable=False),
        sa.Column("per", one_of("limitper", "hit_type", "round", "day"), nullable=False),
        sa.Column("most", sa.Integer(), nullable=False),
        sa.Column("set_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("set_by", sa.String(length=80), nullable=False),
        sa.CheckConstraint("round_number >= 0", name=op.f("ck_work_limit_round_number")),
        sa.CheckConstraint("most >= 1", name=op.f("ck_work_limit_most")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_work_limit")),
        sa.UniqueConstraint(
            "task_code", "round_number", "work", "per", name=op.f("uq_work_limit_task_code_round_number_work_per")
        ),
    )
    op.create_table(
        "round_exclusion",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_code", sa.String(length=40), nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("other_number", sa.Integer(), nullable=False),
        sa.Column("set_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("set_by", sa.String(length=80), nullable=False),
        sa.CheckConstraint(
            "round_number >= 1 AND other_number >= 0 AND round_number != other_number",
            name=op.f("ck_round_exclusion_rounds"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_round_exclusion")),
        sa.UniqueConstraint(
            "task_code",
            "round_number",
            "other_number",
            name=op.f("uq_round_exclusion_task_code_round_number_other_number"),
        ),
    )
    op.create_table(
        "allow_list",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_code", sa.String(length=40), nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("set_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("set_by", sa.String(length=80), nullable=False),
        sa.CheckConstraint("round_number >= 0", name=op.f("ck_allow_list_round_number")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allow_list")),
        sa.UniqueConstraint("task_code", "round_number", name=op.f("uq_allow_list_task_code_round_number")),
    )
    op.create_table(
        "list_entry",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("kind", one_of("listkind", "set_aside", "allowed", "wrote", "full"), nullable=False),
        sa.Column("task_code", sa.String(length=40), nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=False),
        sa.Column("work", work(), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("added_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("added_by", sa.String(length=80), nullable=False),
        sa.Column("ended_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("ended_by", sa.String(length=80), nullable=True),
        sa.Column("endpoint", sa.String(length=200), nullable=True),
        sa.Column("granted_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("revoked_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint("round_number >= 0", name=op.f("ck_list_entry_round_number")),
        sa.CheckConstraint(
            "ended_at IS NOT NULL OR revoked_at IS NULL", name=op.f("ck_list_entry_revoked_after_its_end")
        ),
        sa.CheckConstraint("granted_at IS NULL OR endpoint IS NOT NULL", name=op.f("ck_list_entry_granted_somewhere")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_list_entry_worker_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_list_entry")),
    )
    op.create_index(op.f("ix_list_entry_worker_id"), "list_entry", ["worker_id"])
    op.create_index(
        "uq_list_entry_current",
        "list_entry",
        ["worker_id", "kind", "task_code", "round_number", "work"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "practice_grade",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("graded_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("graded_by", sa.String(length=80), nullable=False),
        sa.Column("notified_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("shown_assignment_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("length(words) > 0", name=op.f("ck_practice_grade_words")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_practice_grade_example_id_example")),
        sa.ForeignKeyConstraint(
            ["shown_assignment_id"], ["assignment.id"], name=op.f("fk_practice_grade_shown_assignment_id_assignment")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_practice_grade")),
        sa.UniqueConstraint("example_id", name=op.f("uq_practice_grade_example_id")),
    )


def downgrade() -> None:
    op.drop_table("practice_grade")
    op.drop_table("list_entry")
    op.drop_table("allow_list")
    op.drop_table("round_exclusion")
    op.drop_table("work_limit")
    op.drop_index(op.f("ix_example_practice_state"), table_name="example")
    op.drop_column("example", "practice_state")
    op.drop_column("hit_batch", "practice")
    op.drop_column("hit_batch", "wage_reason")
    op.drop_column("hit_batch", "requirements")
