"""Consent, care and erased people.

Revision ID: 0005
Revises: 0004
Create Date: 2026-11-30 18:45:00+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db
from app.migrations.checks import edit_table

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

CATEGORIES = ("no_work", "nonsense", "copied", "automated", "out_of_bounds")
STATES = ("sending", "rejected", "undone")


ADDED = {"assignment": ("left_at", "warned_at", "consent_text_id"), "worker": ("erased_at",)}
CONSENT_KEY = (
    "CONSTRAINT fk_assignment_consent_text_id_consent_text FOREIGN KEY(consent_text_id) REFERENCES consent_text (id)"
)
NO_ID = "erased_at IS NULL OR mturk_worker_id LIKE 'erased-%'"


def _add_to_worker_and_assignment() -> None:
    """Add columns with their rules; SQLite takes both in one statement, where a table made anew would lose checks."""
    op.add_column("assignment", sa.Column("warned_at", hits.db.UtcDateTime(), nullable=True))
    op.add_column("assignment", sa.Column("left_at", hits.db.UtcDateTime(), nullable=True))
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"ALTER TABLE worker ADD COLUMN erased_at DATETIME CONSTRAINT ck_worker_erased_has_no_id CHECK ({NO_ID})"
        )
        op.add_column("assignment", sa.Column("consent_text_id", sa.Integer(), nullable=True))
        edit_table("assignment", lambda made: f"{made.rstrip().removesuffix(')').rstrip()}, {CONSENT_KEY})")
        return
    op.add_column("worker", sa.Column("erased_at", hits.db.UtcDateTime(), nullable=True))
    op.create_check_constraint(op.f("ck_worker_erased_has_no_id"), "worker", NO_ID)
    op.add_column("assignment", sa.Column("consent_text_id", sa.Integer(), nullable=True))
    op.create_foreign_key(
        op.f("fk_assignment_consent_text_id_consent_text"), "assignment", "consent_text", ["consent_text_id"], ["id"]
    )


def upgrade() -> None:
    op.create_table(
        "consent_text",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consent_text")),
        sa.UniqueConstraint("digest", name=op.f("uq_consent_text_digest")),
    )
    _add_to_worker_and_assignment()
    op.create_table(
        "consent",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("consent_text_id", sa.Integer(), nullable=False),
        sa.Column("given_at", hits.db.UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_consent_worker_id_worker")),
        sa.ForeignKeyConstraint(
            ["consent_text_id"], ["consent_text.id"], name=op.f("fk_consent_consent_text_id_consent_text")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_consent")),
        sa.UniqueConstraint("worker_id", "consent_text_id", name=op.f("uq_consent_worker_id_consent_text_id")),
    )
    with op.batch_alter_table("consent", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_consent_worker_id"), ["worker_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_consent_consent_text_id"), ["consent_text_id"], unique=False)
    op.create_table(
        "exposure",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("subject", sa.String(length=40), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("shown_at", hits.db.UtcDateTime(), nullable=False),
        sa.CheckConstraint("number >= 1", name=op.f("ck_exposure_number_from_one")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_exposure_worker_id_worker")),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignment.id"], name=op.f("fk_exposure_assignment_id_assignment")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exposure")),
        sa.UniqueConstraint("assignment_id", "subject", name=op.f("uq_exposure_assignment_id_subject")),
        sa.UniqueConstraint("worker_id", "day", "number", name=op.f("uq_exposure_worker_id_day_number")),
    )
    op.create_table(
        "rejection",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("batch_id", sa.Integer(), nullable=False),
        sa.Column(
            "category",
            sa.Enum(*CATEGORIES, name="badfaith", native_enum=False, create_constraint=True, length=40),
            nullable=False,
        ),
        sa.Column("words", sa.String(length=1000), nullable=False),
        sa.Column("staff_name", sa.String(length=80), nullable=False),
        sa.Column(
            "state",
            sa.Enum(*STATES, name="rejectionstate", native_enum=False, create_constraint=True, length=40),
            nullable=False,
        ),
        sa.Column("decided_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("rejected_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("undone_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("undone_by", sa.String(length=80), nullable=True),
        sa.CheckConstraint("state = 'sending' OR rejected_at IS NOT NULL", name=op.f("ck_rejection_rejected_has_time")),
        sa.CheckConstraint("(state = 'undone') = (undone_at IS NOT NULL)", name=op.f("ck_rejection_undone_has_time")),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignment.id"], name=op.f("fk_rejection_assignment_id_assignment")
        ),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_rejection_worker_id_worker")),
        sa.ForeignKeyConstraint(["batch_id"], ["hit_batch.id"], name=op.f("fk_rejection_batch_id_hit_batch")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rejection")),
        sa.UniqueConstraint("assignment_id", name=op.f("uq_rejection_assignment_id")),
    )
    with op.batch_alter_table("rejection", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_rejection_worker_id"), ["worker_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_rejection_batch_id"), ["batch_id"], unique=False)


def downgrade() -> None:
    op.drop_table("rejection")
    op.drop_table("exposure")
    op.drop_table("consent")
    if op.get_bind().dialect.name == "sqlite":
        edit_table("assignment", lambda made: made.replace(f", {CONSENT_KEY}", ""))
        for table, columns in ADDED.items():
            for column in columns:
                op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    else:
        op.drop_constraint(op.f("fk_assignment_consent_text_id_consent_text"), "assignment", type_="foreignkey")
        op.drop_constraint(op.f("ck_worker_erased_has_no_id"), "worker", type_="check")
        for table, columns in ADDED.items():
            for column in columns:
                op.drop_column(table, column)
    op.drop_table("consent_text")
