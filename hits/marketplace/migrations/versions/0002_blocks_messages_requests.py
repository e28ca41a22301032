"""Blocks messages requests"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import hits.marketplace.tables

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('mp_message',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('worker_id', sa.String(length=64), nullable=False),
    sa.Column('requester_id', sa.String(length=64), nullable=False),
    sa.Column('sent_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('read_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['requester_id'], ['mp_requester.requester_id'], name=op.f('fk_mp_message_requester_id_mp_requester')),
    sa.ForeignKeyConstraint(['worker_id'], ['mp_worker.worker_id'], name=op.f('fk_mp_message_worker_id_mp_worker')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_message'))
    )
    with op.batch_alter_table('mp_message', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_message_worker_id_seq'), ['worker_id', 'seq'], unique=False)

    op.create_table('mp_worker_block',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('requester_id', sa.String(length=64), nullable=False),
    sa.Column('worker_id', sa.String(length=64), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('created_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['requester_id'], ['mp_requester.requester_id'], name=op.f('fk_mp_worker_block_requester_id_mp_requester')),
    sa.ForeignKeyConstraint(['worker_id'], ['mp_worker.worker_id'], name=op.f('fk_mp_worker_block_worker_id_mp_worker')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_worker_block')),
    sa.UniqueConstraint('requester_id', 'worker_id', name=op.f('uq_mp_worker_block_requester_id_worker_id'))
    )
    with op.batch_alter_table('mp_worker_block', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_worker_block_worker_id'), ['worker_id'], unique=False)

    op.create_table('mp_qualification_request',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('request_id', sa.String(length=64), nullable=False),
    sa.Column('qualification_type_id', sa.String(length=64), nullable=False),
    sa.Column('worker_id', sa.String(length=64), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('requested_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('test', sa.Text(), nullable=True),
    sa.Column('answer_key', sa.Text(), nullable=True),
    sa.Column('deadline', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('submitted_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('answer', sa.Text(), nullable=True),
    sa.Column('decided_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('value', sa.Integer(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['qualification_type_id'], ['mp_qualification_type.qualification_type_id'], name=op.f('fk_mp_qualification_request_qualification_type_id_mp_qualification_type')),
    sa.ForeignKeyConstraint(['worker_id'], ['mp_worker.worker_id'], name=op.f('fk_mp_qualification_request_worker_id_mp_worker')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_qualification_request')),
    sa.UniqueConstraint('request_id', name=op.f('uq_mp_qualification_request_request_id'))
    )
    with op.batch_alter_table('mp_qualification_request', schema=None) as batch_op:
        batch_op.create_index('ix_mp_qualification_request_type', ['qualification_type_id', 'state', 'seq'], unique=False)
        batch_op.create_index('ix_mp_qualification_request_worker', ['worker_id', 'qualification_type_id', 'seq'], unique=False)
        batch_op.create_index('uq_mp_qualification_request_open', ['qualification_type_id', 'worker_id'], unique=True, sqlite_where=sa.text("state = 'Pending'"), postgresql_where=sa.text("state = 'Pending'"))

    with op.batch_alter_table('mp_qualification_type', schema=None) as batch_op:
        batch_op.add_column(sa.Column('test', sa.Text(), nullable=True))
        batch_op.add_column(sa.Column('test_duration_seconds', sa.BigInteger(), nullable=True))
        batch_op.add_column(sa.Column('answer_key', sa.Text(), nullable=True))



def downgrade() -> None:
    with op.batch_alter_table('mp_qualification_type', schema=None) as batch_op:
        batch_op.drop_column('answer_key')
        batch_op.drop_column('test_duration_seconds')
        batch_op.drop_column('test')

    with op.batch_alter_table('mp_qualification_request', schema=None) as batch_op:
        batch_op.drop_index('uq_mp_qualification_request_open', sqlite_where=sa.text("state = 'Pending'"), postgresql_where=sa.text("state = 'Pending'"))
        batch_op.drop_index('ix_mp_qualification_request_worker')
        batch_op.drop_index('ix_mp_qualification_request_type')

    op.drop_table('mp_qualification_request')
    with op.batch_alter_table('mp_worker_block', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_worker_block_worker_id'))

    op.drop_table('mp_worker_block')
    with op.batch_alter_table('mp_message', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_message_worker_id_seq'))

    op.drop_table('mp_message')
