"""Uploads of contexts, how contexts are chosen, what examples share with other texts, how they were written.

Revision ID: 0014
Revises: 0013
Create Date: 2026-11-30 22:15:00+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

#: Of a batch, how its contexts were chosen.
ADDED = (("contexts_by", sa.String(length=40)), ("per_context", sa.Integer()))


def upgrade() -> None:
    for name, kind in ADDED:
        op.add_column("hit_batch", sa.Column(name, kind, nullable=True))
    op.create_table(
        "context_upload",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("file_name", sa.String(length=200), nullable=False),
        sa.Column("file_sha256", sa.String(length=64), nullable=False),
        sa.Column("source", sa.String(length=500), nullable=False),
        sa.Column("licence", sa.String(length=200), nullable=False),
        sa.Column("added", sa.Integer(), nullable=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.Column("near", sa.Integer(), nullable=False),
        sa.Column("elsewhere", sa.Integer(), nullable=False),
        sa.Column("by", sa.String(length=80), nullable=False),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.CheckConstraint(
            "added >= 0 AND repeats >= 0 AND near >= 0 AND elsewhere >= 0", name=op.f("ck_context_upload_counts")
        ),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_context_upload_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_context_upload")),
    )
    op.create_index(op.f("ix_context_upload_round_id"), "context_upload", ["round_id"])
    op.create_table(
        "uploaded_context",
        sa.Column("context_id", sa.Integer(), nullable=False),
        sa.Column("upload_id", sa.Integer(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["context_id"], ["context.id"], name=op.f("fk_uploaded_context_context_id_context")),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["context_upload.id"], name=op.f("fk_uploaded_context_upload_id_context_upload")
        ),
        sa.PrimaryKeyConstraint("context_id", name=op.f("pk_uploaded_context")),
    )
    op.create_index(op.f("ix_uploaded_context_upload_id"), "uploaded_context", ["upload_id"])
    op.create_table(
        "retired_context",
        sa.Column("context_id", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("by", sa.String(length=80), nullable=False),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["context_id"], ["context.id"], name=op.f("fk_retired_context_context_id_context")),
        sa.PrimaryKeyConstraint("context_id", name=op.f("pk_retired_context")),
    )
    op.create_table(
        "context_score",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("context_id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.String(length=200), nullable=False),
        sa.Column("model_revision", sa.String(length=80), nullable=False),
        sa.Column("uncertainty", sa.Double(), nullable=False),
        sa.Column("texts", sa.Integer(), nullable=False),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.CheckConstraint("uncertainty BETWEEN 0 AND 1", name=op.f("ck_context_score_uncertainty")),
        sa.CheckConstraint("texts >= 1", name=op.f("ck_context_score_texts")),
        sa.ForeignKeyConstraint(["context_id"], ["context.id"], name=op.f("fk_context_score_context_id_context")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_context_score")),
        sa.UniqueConstraint(
            "context_id",
            "model_id",
            "model_revision",
            name=op.f("uq_context_score_context_id_model_id_model_revision"),
        ),
    )
    op.create_table(
        "likeness",
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("near_example_id", sa.Integer(), nullable=True),
        sa.Column("similarity", sa.Double(), nullable=True),
        sa.Column("copied_share", sa.Double(), nullable=False),
        sa.Column("longest_run", sa.Integer(), nullable=False),
        sa.Column("copied", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "(near_example_id IS NULL) = (similarity IS NULL)", name=op.f("ck_likeness_near_has_similarity")
        ),
        sa.CheckConstraint("similarity BETWEEN 0 AND 1", name=op.f("ck_likeness_similarity")),
        sa.CheckConstraint("copied_share BETWEEN 0 AND 1 AND longest_run >= 0", name=op.f("ck_likeness_copied")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_likeness_example_id_example")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_likeness_round_id_round")),
        sa.ForeignKeyConstraint(["near_example_id"], ["example.id"], name=op.f("fk_likeness_near_example_id_example")),
        sa.PrimaryKeyConstraint("example_id", name=op.f("pk_likeness")),
    )
    op.create_index(op.f("ix_likeness_round_id"), "likeness", ["round_id"])
    op.create_table(
        "text_band",
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("band", sa.BigInteger(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_text_band_round_id_round")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_text_band_example_id_example")),
        sa.PrimaryKeyConstraint("round_id", "band", "example_id", name=op.f("pk_text_band")),
    )
    op.create_table(
        "writing",
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("pastes", sa.Integer(), nullable=True),
        sa.Column("pasted_characters", sa.Integer(), nullable=True),
        sa.Column("keystrokes", sa.Integer(), nullable=True),
        sa.Column("typing_seconds", sa.Integer(), nullable=True),
        sa.Column("told_near", sa.Boolean(), nullable=False),
        sa.Column("told_copied", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "pastes >= 0 AND pasted_characters >= 0 AND keystrokes >= 0 AND typing_seconds >= 0",
            name=op.f("ck_writing_measures"),
        ),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_writing_attempt_id_attempt")),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_writing")),
    )


def downgrade() -> None:
    for table in ("writing", "text_band", "likeness", "context_score", "retired_context", "uploaded_context"):
        op.drop_table(table)
    op.drop_table("context_upload")
    for name, _ in reversed(ADDED):
        op.execute(f"ALTER TABLE hit_batch DROP COLUMN {name}")
