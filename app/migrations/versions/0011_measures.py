"""What models reached on which sets, and what was found about the data of rounds.

Revision ID: 0011
Revises: 0010
Create Date: 2026-11-30 22:15:00+00:00
"""

import sqlalchemy as sa
from alembic import op

from hits.db import UtcDateTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TABLES = ("measured_set", "model_answers", "model_score", "bias_report")


def guards(table: str, database: str) -> list[str]:
    """Return the statements that forbid changing or deleting the table's rows."""
    message = "what was measured stays"
    if database == "sqlite":
        return [
            f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            for verb in ("update", "delete")
        ]
    return [
        f"CREATE OR REPLACE FUNCTION forbid_{table}_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{message}'; END $$",
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION forbid_{table}_change()",
    ]


def upgrade() -> None:
    op.create_table(
        "measured_set",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_code", sa.String(length=40), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("round_number", sa.Integer(), nullable=True),
        sa.Column("split", sa.String(length=20), nullable=True),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("first_seen_at", UtcDateTime(), nullable=False),
        sa.CheckConstraint("kind IN ('round', 'base', 'functions')", name=op.f("ck_measured_set_kind")),
        sa.CheckConstraint(
            "(kind = 'round') = (round_number IS NOT NULL)", name=op.f("ck_measured_set_round_has_number")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measured_set")),
        sa.UniqueConstraint("task_code", "sha256", name=op.f("uq_measured_set_task_code_sha256")),
    )
    op.create_table(
        "model_answers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("set_id", sa.Integer(), nullable=False),
        sa.Column("model_key", sa.String(length=64), nullable=False),
        sa.Column("transfer", sa.String(length=40), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("classes", sa.JSON(), nullable=False),
        sa.Column("outcomes", sa.JSON(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["set_id"], ["measured_set.id"], name=op.f("fk_model_answers_set_id_measured_set")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_answers")),
        sa.UniqueConstraint(
            "set_id", "model_key", "transfer", "start", name=op.f("uq_model_answers_set_id_model_key_transfer_start")
        ),
    )
    op.create_index(op.f("ix_model_answers_set_id"), "model_answers", ["set_id"], unique=False)
    op.create_table(
        "model_score",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("set_id", sa.Integer(), nullable=False),
        sa.Column("model_key", sa.String(length=64), nullable=False),
        sa.Column("transfer", sa.String(length=40), nullable=False),
        sa.Column("model_id", sa.String(length=200), nullable=False),
        sa.Column("revision", sa.String(length=80), nullable=False),
        sa.Column("weights_sha256", sa.String(length=64), nullable=True),
        sa.Column("metric", sa.String(length=40), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=False),
        sa.Column("high", sa.Double(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("resamples", sa.Integer(), nullable=False),
        sa.Column("parts", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["set_id"], ["measured_set.id"], name=op.f("fk_model_score_set_id_measured_set")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_score")),
        sa.UniqueConstraint(
            "set_id", "model_key", "transfer", "metric", name=op.f("uq_model_score_set_id_model_key_transfer_metric")
        ),
    )
    op.create_index(op.f("ix_model_score_model_key"), "model_score", ["model_key"], unique=False)
    op.create_index(op.f("ix_model_score_set_id"), "model_score", ["set_id"], unique=False)
    op.create_table(
        "bias_report",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("manifest_sha256", sa.String(length=64), nullable=False),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_bias_report_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bias_report")),
        sa.UniqueConstraint(
            "round_id",
            "manifest_sha256",
            "format",
            "seed",
            name=op.f("uq_bias_report_round_id_manifest_sha256_format_seed"),
        ),
    )
    op.create_index(op.f("ix_bias_report_round_id"), "bias_report", ["round_id"], unique=False)
    database = op.get_bind().dialect.name
    for table in TABLES:
        for statement in guards(table, database):
            op.execute(statement)


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        for table in TABLES:
            op.execute(f"DROP FUNCTION IF EXISTS forbid_{table}_change()")
