"""Sessions that were ended before their cookie was"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import hits.marketplace.tables

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('mp_ended_session',
    sa.Column('session_key', sa.String(length=64), nullable=False),
    sa.Column('ended_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('forget_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('session_key', name=op.f('pk_mp_ended_session'))
    )
    with op.batch_alter_table('mp_ended_session', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_ended_session_forget_at'), ['forget_at'], unique=False)


def downgrade() -> None:
    op.drop_table('mp_ended_session')
