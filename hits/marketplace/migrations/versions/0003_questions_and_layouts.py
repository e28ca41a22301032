"""Questions and layouts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import hits.marketplace.tables

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('mp_hit_layout',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('layout_id', sa.String(length=64), nullable=False),
    sa.Column('requester_id', sa.String(length=64), nullable=False),
    sa.Column('name', sa.String(length=200), nullable=False),
    sa.Column('html', sa.Text(), nullable=False),
    sa.Column('frame_height', sa.Integer(), nullable=False),
    sa.Column('created_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['requester_id'], ['mp_requester.requester_id'], name=op.f('fk_mp_hit_layout_requester_id_mp_requester')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_hit_layout')),
    sa.UniqueConstraint('layout_id', name=op.f('uq_mp_hit_layout_layout_id'))
    )
    with op.batch_alter_table('mp_hit_layout', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_hit_layout_requester_id'), ['requester_id'], unique=False)

    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.add_column(sa.Column('question_kind', sa.String(length=24), server_default='ExternalQuestion', nullable=False))
        batch_op.add_column(sa.Column('layout_id', sa.String(length=64), nullable=True))



def downgrade() -> None:
    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.drop_column('layout_id')
        batch_op.drop_column('question_kind')

    with op.batch_alter_table('mp_hit_layout', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_hit_layout_requester_id'))

    op.drop_table('mp_hit_layout')
