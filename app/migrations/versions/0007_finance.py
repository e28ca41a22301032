"""Month close and approvals.

Revision ID: 0007
Revises: 0006
Create Date: 2026-11-30 18:45:00+00:00
"""

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
