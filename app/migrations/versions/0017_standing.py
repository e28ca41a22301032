"""Indexes from which is counted how HITs and assignments stand, and added up what a round has cost.

Revision ID: 0017
Revises: 0016
Create Date: 2026-11-30 22:52:00+00:00
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

LEFT = sa.text("substr(account, 1, 12) = 'marketplace:'")


def upgrade() -> None:
    op.create_index("ix_hit_standing", "hit", ["batch_id", "state"])
    op.create_index("ix_assignment_standing", "assignment", ["hit_id", "state"])
    op.create_index("ix_posting_left", "posting", ["transaction_id", "cents"], sqlite_where=LEFT, postgresql_where=LEFT)
    # Each of the others begins with the same column.
    op.drop_index("ix_hit_batch_id", table_name="hit")
    op.drop_index("ix_assignment_hit_id", table_name="assignment")


def downgrade() -> None:
    op.create_index("ix_assignment_hit_id", "assignment", ["hit_id"])
    op.create_index("ix_hit_batch_id", "hit", ["batch_id"])
    op.drop_index("ix_posting_left", table_name="posting")
    op.drop_index("ix_assignment_standing", table_name="assignment")
    op.drop_index("ix_hit_standing", table_name="hit")
