"""Votes of work that was rejected are withdrawn: kept, with when they had been counted.

Revision ID: 0012
Revises: 0011
Create Date: 2026-11-30 22:15:00+00:00
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TIMES = {"sqlite": "DATETIME", "postgresql": "TIMESTAMP WITH TIME ZONE"}


def upgrade() -> None:
    # In place: alembic's way on SQLite would lose the table's triggers and other checks.
    op.execute(
        f"ALTER TABLE vote ADD COLUMN counted_before {TIMES[op.get_bind().dialect.name]}"
        " CONSTRAINT ck_vote_withdrawn_counts_no_more CHECK (counted_before IS NULL OR counted_at IS NULL)"
    )


def downgrade() -> None:
    op.execute("ALTER TABLE vote DROP COLUMN counted_before")
