"""Indexes from which a round's figures are counted, and in whose order its examples are listed.

Revision ID: 0016
Revises: 0015
Create Date: 2026-11-30 22:06:00+00:00
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_example_figures": ["round_id", "verdict", "fooled", "goal_label", "retracted_at"],
    "ix_example_decided": ["round_id", "decided_at", "verdict", "retracted_at"],
    "ix_example_listed": ["round_id", "collected_at", "id"],
    "ix_example_written": ["round_id", "writer_id", "collected_at", "id"],
}


def upgrade() -> None:
    for name, columns in INDEXES.items():
        op.create_index(name, "example", columns)
    # Each of the others begins with the round.
    op.drop_index("ix_example_round_id", table_name="example")


def downgrade() -> None:
    op.create_index("ix_example_round_id", "example", ["round_id"])
    for name in INDEXES:
        op.drop_index(name, table_name="example")
