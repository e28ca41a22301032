"""An index of what models left unanswered, by time.

Revision ID: 0018
Revises: 0017
Create Date: 2026-12-01 03:35:00+00:00
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

UNANSWERED = sa.text("state = 'unanswered'")


def upgrade() -> None:
    op.create_index(
        "ix_attempt_unanswered", "attempt", ["asked_at"], sqlite_where=UNANSWERED, postgresql_where=UNANSWERED
    )


def downgrade() -> None:
    op.drop_index("ix_attempt_unanswered", table_name="attempt")
