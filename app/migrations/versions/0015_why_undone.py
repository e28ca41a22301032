"""Why a rejection was undone stands with it and goes with its worker, not in the audit trail.

Revision ID: 0015
Revises: 0014
Create Date: 2026-11-30 22:35:00+00:00
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rejection", sa.Column("undone_reason", sa.String(length=500), nullable=True))


def downgrade() -> None:
    op.execute("ALTER TABLE rejection DROP COLUMN undone_reason")
