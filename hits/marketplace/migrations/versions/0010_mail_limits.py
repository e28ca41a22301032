"""Whom a mail counts for, and test events by requester"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table('mp_mail', schema=None) as batch_op:
        batch_op.add_column(sa.Column('counts_for', sa.String(length=320), nullable=True))
        batch_op.create_index(batch_op.f('ix_mp_mail_counts_for_recorded_at'), ['counts_for', 'recorded_at'], unique=False)

    with op.batch_alter_table('mp_event', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_event_requester_id'))
        batch_op.create_index(batch_op.f('ix_mp_event_requester_id_hit_id_recorded_at'), ['requester_id', 'hit_id', 'recorded_at'], unique=False)


def downgrade() -> None:
    with op.batch_alter_table('mp_event', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_event_requester_id_hit_id_recorded_at'))
        batch_op.create_index(batch_op.f('ix_mp_event_requester_id'), ['requester_id'], unique=False)

    with op.batch_alter_table('mp_mail', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_mail_counts_for_recorded_at'))
        batch_op.drop_column('counts_for')
