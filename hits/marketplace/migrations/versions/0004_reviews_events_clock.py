"""Reviews events clock"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import hits.marketplace.tables

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('mp_clock',
    sa.Column('clock_id', sa.Integer(), nullable=False),
    sa.Column('offset_microseconds', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('clock_id', name=op.f('pk_mp_clock'))
    )
    op.create_table('mp_event',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('document_id', sa.String(length=64), nullable=False),
    sa.Column('requester_id', sa.String(length=64), nullable=False),
    sa.Column('queue', sa.String(length=64), nullable=False),
    sa.Column('event_type', sa.String(length=32), nullable=False),
    sa.Column('at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('recorded_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('hit_type_id', sa.String(length=64), nullable=False),
    sa.Column('hit_id', sa.String(length=64), nullable=False),
    sa.Column('assignment_id', sa.String(length=64), nullable=True),
    sa.Column('transport', sa.String(length=16), nullable=False),
    sa.Column('destination', sa.Text(), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('next_attempt_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('ended_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('last_error', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['requester_id'], ['mp_requester.requester_id'], name=op.f('fk_mp_event_requester_id_mp_requester')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_event')),
    sa.UniqueConstraint('document_id', name=op.f('uq_mp_event_document_id'))
    )
    with op.batch_alter_table('mp_event', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_event_queue_state_seq'), ['queue', 'state', 'seq'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_event_requester_id'), ['requester_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_event_state_next_attempt_at'), ['state', 'next_attempt_at'], unique=False)

    op.create_table('mp_notification',
    sa.Column('hit_type_id', sa.String(length=64), nullable=False),
    sa.Column('transport', sa.String(length=16), nullable=False),
    sa.Column('destination', sa.Text(), nullable=False),
    sa.Column('event_types', sa.JSON(), nullable=False),
    sa.Column('is_active', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['hit_type_id'], ['mp_hit_type.hit_type_id'], name=op.f('fk_mp_notification_hit_type_id_mp_hit_type')),
    sa.PrimaryKeyConstraint('hit_type_id', name=op.f('pk_mp_notification'))
    )
    op.create_table('mp_review_entry',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('hit_id', sa.String(length=64), nullable=False),
    sa.Column('level', sa.String(length=16), nullable=False),
    sa.Column('kind', sa.String(length=8), nullable=False),
    sa.Column('action_id', sa.String(length=64), nullable=False),
    sa.Column('subject_id', sa.String(length=64), nullable=False),
    sa.Column('subject_type', sa.String(length=16), nullable=False),
    sa.Column('name', sa.String(length=64), nullable=False),
    sa.Column('value', sa.Text(), nullable=False),
    sa.Column('question_id', sa.Text(), nullable=True),
    sa.Column('status', sa.String(length=16), nullable=True),
    sa.Column('error_code', sa.String(length=64), nullable=True),
    sa.Column('at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['hit_id'], ['mp_hit.hit_id'], name=op.f('fk_mp_review_entry_hit_id_mp_hit')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_review_entry'))
    )
    with op.batch_alter_table('mp_review_entry', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_review_entry_hit_id_seq'), ['hit_id', 'seq'], unique=False)

    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.add_column(sa.Column('assignment_policy', sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column('hit_policy', sa.JSON(none_as_null=True), nullable=True))



def downgrade() -> None:
    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.drop_column('hit_policy')
        batch_op.drop_column('assignment_policy')

    with op.batch_alter_table('mp_review_entry', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_review_entry_hit_id_seq'))

    op.drop_table('mp_review_entry')
    op.drop_table('mp_notification')
    with op.batch_alter_table('mp_event', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_event_state_next_attempt_at'))
        batch_op.drop_index(batch_op.f('ix_mp_event_requester_id'))
        batch_op.drop_index(batch_op.f('ix_mp_event_queue_state_seq'))

    op.drop_table('mp_event')
    op.drop_table('mp_clock')
