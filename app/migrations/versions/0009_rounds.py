"""Rounds as a state machine, manifests, arms and splits.

Revision ID: 0009
Revises: 0008
Create Date: 2026-11-30 18:45:00+00:00
"""

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
