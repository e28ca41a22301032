"""Quizzes, levels and qualifications.

Revision ID: 0003
Revises: 0002
Create Date: 2026-11-30 18:45:00+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db
from app.migrations.checks import one_of, replace_check

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KINDS = ("creation", "validation")
LIVE = "state IN ('planned', 'granting', 'granted', 'ending')"


def upgrade() -> None:
    replace_check("hit_batch", "ck_hit_batch_hitkind", one_of("kind", *KINDS), one_of("kind", *KINDS, "qualification"))
    op.create_table(
        "quiz_version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=60), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("retired_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint("number >= 1", name=op.f("ck_quiz_version_number_from_one")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quiz_version")),
        sa.UniqueConstraint("kind", "digest", name=op.f("uq_quiz_version_kind_digest")),
        sa.UniqueConstraint("kind", "number", name=op.f("uq_quiz_version_kind_number")),
    )
    op.create_table(
        "quiz_type",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=60), nullable=False),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("qualification_type_id", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quiz_type")),
        sa.UniqueConstraint("kind", "endpoint", name=op.f("uq_quiz_type_kind_endpoint")),
    )
    op.create_index(op.f("ix_quiz_type_qualification_type_id"), "quiz_type", ["qualification_type_id"])
    op.create_table(
        "quiz_batch",
        sa.Column("batch_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["hit_batch.id"], name=op.f("fk_quiz_batch_batch_id_hit_batch")),
        sa.ForeignKeyConstraint(
            ["version_id"], ["quiz_version.id"], name=op.f("fk_quiz_batch_version_id_quiz_version")
        ),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_quiz_batch")),
    )
    op.create_index(op.f("ix_quiz_batch_version_id"), "quiz_batch", ["version_id"])
    op.create_table(
        "quiz_form",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("qualification_type_id", sa.String(length=64), nullable=False),
        sa.Column("published_at", hits.db.UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["version_id"], ["quiz_version.id"], name=op.f("fk_quiz_form_version_id_quiz_version")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quiz_form")),
        sa.UniqueConstraint("version_id", "endpoint", name=op.f("uq_quiz_form_version_id_endpoint")),
    )
    op.create_table(
        "quiz_result",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("items", sa.JSON(), nullable=False),
        sa.Column("answers", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("score", sa.Integer(), nullable=True),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("opened_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("answered_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("counted_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("set_aside_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint("number >= 1", name=op.f("ck_quiz_result_number_from_one")),
        sa.CheckConstraint(
            "(answered_at IS NULL) = (score IS NULL) AND (answered_at IS NULL) = (passed IS NULL)"
            " AND (answered_at IS NULL) = (answers IS NULL)",
            name=op.f("ck_quiz_result_answered_whole"),
        ),
        sa.CheckConstraint(
            "counted_at IS NULL OR answered_at IS NOT NULL", name=op.f("ck_quiz_result_counted_is_answered")
        ),
        sa.ForeignKeyConstraint(
            ["version_id"], ["quiz_version.id"], name=op.f("fk_quiz_result_version_id_quiz_version")
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_quiz_result_worker_id_worker")),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignment.id"], name=op.f("fk_quiz_result_assignment_id_assignment")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quiz_result")),
        sa.UniqueConstraint("assignment_id", name=op.f("uq_quiz_result_assignment_id")),
        sa.UniqueConstraint(
            "worker_id", "version_id", "number", name=op.f("uq_quiz_result_worker_id_version_id_number")
        ),
    )
    op.create_index(op.f("ix_quiz_result_version_id"), "quiz_result", ["version_id"])
    op.create_index(op.f("ix_quiz_result_worker_id"), "quiz_result", ["worker_id"])
    op.create_table(
        "qualification_grant",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=60), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("result_id", sa.Integer(), nullable=True),
        sa.Column(
            "state",
            sa.Enum(
                "planned",
                "granting",
                "granted",
                "ending",
                "ended",
                "failed",
                name="grantstate",
                native_enum=False,
                create_constraint=True,
                length=40,
            ),
            nullable=False,
        ),
        sa.Column("claims", sa.Integer(), nullable=False),
        sa.Column("planned_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("granted_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("expires_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("revoked_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column(
            "ending",
            sa.Enum(
                "expired", "revoked", "replaced", name="ending", native_enum=False, create_constraint=True, length=40
            ),
            nullable=True,
        ),
        sa.Column("lifted_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("by", sa.String(length=80), nullable=False),
        sa.Column("cause", sa.String(length=500), nullable=True),
        sa.CheckConstraint(
            "state != 'granted' OR granted_at IS NOT NULL", name=op.f("ck_qualification_grant_granted_has_time")
        ),
        sa.CheckConstraint(
            "state NOT IN ('ending', 'ended') OR ending IS NOT NULL", name=op.f("ck_qualification_grant_end_has_reason")
        ),
        sa.CheckConstraint(
            "state != 'ended' OR revoked_at IS NOT NULL", name=op.f("ck_qualification_grant_ended_has_time")
        ),
        sa.CheckConstraint(
            "state != 'failed' OR cause IS NOT NULL", name=op.f("ck_qualification_grant_trouble_has_cause")
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_qualification_grant_worker_id_worker")),
        sa.ForeignKeyConstraint(
            ["result_id"], ["quiz_result.id"], name=op.f("fk_qualification_grant_result_id_quiz_result")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_qualification_grant")),
        sa.UniqueConstraint("result_id", name=op.f("uq_qualification_grant_result_id")),
    )
    op.create_index(op.f("ix_qualification_grant_state"), "qualification_grant", ["state"])
    op.create_index(op.f("ix_qualification_grant_worker_id"), "qualification_grant", ["worker_id"])
    op.create_index(
        "uq_qualification_grant_live",
        "qualification_grant",
        ["worker_id", "kind", "endpoint"],
        unique=True,
        sqlite_where=sa.text(LIVE),
        postgresql_where=sa.text(LIVE),
    )
    op.create_table(
        "level_change",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("task_code", sa.String(length=40), nullable=False),
        sa.Column(
            "level",
            sa.Enum("novice", "writer", "expert", name="level", native_enum=False, create_constraint=True, length=40),
            nullable=False,
        ),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("by", sa.String(length=80), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_level_change_worker_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_level_change")),
    )
    op.create_index(op.f("ix_level_change_worker_id_task_code"), "level_change", ["worker_id", "task_code"])


def downgrade() -> None:
    for table in (
        "level_change",
        "qualification_grant",
        "quiz_result",
        "quiz_form",
        "quiz_batch",
        "quiz_type",
        "quiz_version",
    ):
        op.drop_table(table)
    replace_check("hit_batch", "ck_hit_batch_hitkind", one_of("kind", *KINDS, "qualification"), one_of("kind", *KINDS))
