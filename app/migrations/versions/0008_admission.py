"""Limits, exclusions and allow-lists.

Revision ID: 0008
Revises: 0007
Create Date: 2026-11-30 18:45:00+00:00
"""

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
