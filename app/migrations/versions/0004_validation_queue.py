"""The validation queue and its policies.

Revision ID: 0004
Revises: 0003
Create Date: 2026-11-30 18:45:00+00:00
"""

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
