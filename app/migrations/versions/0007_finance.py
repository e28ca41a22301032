"""Closed months, runs of reconcile, and an audit trail that can only grow.

Revision ID: 0007
Revises: 0006
Create Date: 2026-11-30 18:45:00+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

GUARDS = {
    "sqlite": (
        "CREATE TRIGGER month_close_no_update BEFORE UPDATE ON month_close BEGIN SELECT RAISE(ABORT, 'a closed month stays closed'); END",
        "CREATE TRIGGER month_close_no_delete BEFORE DELETE ON month_close BEGIN SELECT RAISE(ABORT, 'a closed month stays closed'); END",
        "CREATE TRIGGER ledger_transaction_open_month BEFORE INSERT ON ledger_transaction WHEN NEW.at < (SELECT max(ends_at) FROM month_close) BEGIN SELECT RAISE(ABORT, 'this month is closed: book it in an open one'); END",
        "CREATE TRIGGER posting_open_month BEFORE INSERT ON posting WHEN (SELECT at FROM ledger_transaction WHERE id = NEW.transaction_id) < (SELECT max(ends_at) FROM month_close) BEGIN SELECT RAISE(ABORT, 'this month is closed: book it in an open one'); END",
        "CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END",
        "CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION keep_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a closed month stays closed'; END $$",
        "CREATE TRIGGER month_close_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON month_close FOR EACH STATEMENT EXECUTE FUNCTION keep_closed_month()",
        "CREATE OR REPLACE FUNCTION forbid_closed_month() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.at < (SELECT max(ends_at) FROM month_close) THEN RAISE EXCEPTION 'this month is closed: book it in an open one' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER ledger_transaction_open_month BEFORE INSERT ON ledger_transaction FOR EACH ROW EXECUTE FUNCTION forbid_closed_month()",
        "CREATE OR REPLACE FUNCTION forbid_closed_posting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF (SELECT at FROM ledger_transaction WHERE id = NEW.transaction_id) < (SELECT max(ends_at) FROM month_close) THEN RAISE EXCEPTION 'this month is closed: book it in an open one' USING ERRCODE = 'integrity_constraint_violation'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER posting_open_month BEFORE INSERT ON posting FOR EACH ROW EXECUTE FUNCTION forbid_closed_posting()",
        "CREATE OR REPLACE FUNCTION forbid_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the audit trail is append-only'; END $$",
        "CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry FOR EACH STATEMENT EXECUTE FUNCTION forbid_audit_change()",
    ),
}
GUARDS_DROPPED = {
    "sqlite": tuple(
        f"DROP TRIGGER IF EXISTS {name}"
        for name in (
            "month_close_no_update",
            "month_close_no_delete",
            "ledger_transaction_open_month",
            "posting_open_month",
            "audit_entry_no_update",
            "audit_entry_no_delete",
        )
    ),
    "postgresql": (
        "DROP TRIGGER IF EXISTS month_close_kept ON month_close",
        "DROP TRIGGER IF EXISTS ledger_transaction_open_month ON ledger_transaction",
        "DROP TRIGGER IF EXISTS posting_open_month ON posting",
        "DROP TRIGGER IF EXISTS audit_entry_append_only ON audit_entry",
        "DROP FUNCTION IF EXISTS keep_closed_month()",
        "DROP FUNCTION IF EXISTS forbid_closed_month()",
        "DROP FUNCTION IF EXISTS forbid_closed_posting()",
        "DROP FUNCTION IF EXISTS forbid_audit_change()",
    ),
}


def upgrade() -> None:
    op.create_table(
        "month_close",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("ends_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("closed_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("closed_by", sa.String(length=80), nullable=False),
        sa.Column("transactions", sa.Integer(), nullable=False),
        sa.Column("postings", sa.Integer(), nullable=False),
        sa.Column("last_posting_id", sa.Integer(), nullable=True),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("chain_sha256", sa.String(length=64), nullable=False),
        sa.CheckConstraint("length(month) = 7", name=op.f("ck_month_close_month")),
        sa.CheckConstraint("length(sha256) = 64 AND length(chain_sha256) = 64", name=op.f("ck_month_close_hashes")),
        sa.ForeignKeyConstraint(["last_posting_id"], ["posting.id"], name=op.f("fk_month_close_last_posting_id_posting")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_month_close")),
        sa.UniqueConstraint("ends_at", name=op.f("uq_month_close_ends_at")),
        sa.UniqueConstraint("month", name=op.f("uq_month_close_month")),
    )
    op.create_table(
        "reconcile_run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("clean", sa.Boolean(), nullable=False),
        sa.Column("summary", sa.String(length=1000), nullable=False),
        sa.Column("findings", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column("mail_tried_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("mailed_at", hits.db.UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reconcile_run")),
    )
    with op.batch_alter_table("reconcile_run", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reconcile_run_at"), ["at"], unique=False)
    for statement in GUARDS[op.get_bind().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    for statement in GUARDS_DROPPED[op.get_bind().dialect.name]:
        op.execute(statement)
    with op.batch_alter_table("reconcile_run", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_reconcile_run_at"))
    op.drop_table("reconcile_run")
    op.drop_table("month_close")
