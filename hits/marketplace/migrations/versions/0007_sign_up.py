"""Sign-up, password reset and mail"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import hits.marketplace.tables

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_CONFIRMED = sa.text("email_confirmed_at IS NOT NULL")


def upgrade() -> None:
    op.create_table('mp_mail',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('mail_id', sa.String(length=64), nullable=False),
    sa.Column('kind', sa.String(length=32), nullable=False),
    sa.Column('address', sa.String(length=320), nullable=False),
    sa.Column('language', sa.String(length=16), nullable=True),
    sa.Column('details', sa.JSON(), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('next_attempt_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('recorded_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('give_up_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('ended_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('last_error', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_mail')),
    sa.UniqueConstraint('mail_id', name=op.f('uq_mp_mail_mail_id'))
    )
    with op.batch_alter_table('mp_mail', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_mail_state_next_attempt_at'), ['state', 'next_attempt_at'], unique=False)

    with op.batch_alter_table('mp_worker', schema=None) as batch_op:
        batch_op.add_column(sa.Column('email', sa.String(length=320), nullable=True))
        batch_op.add_column(sa.Column('email_key', sa.String(length=320), nullable=True))
        batch_op.add_column(sa.Column('email_confirmed_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True))
        batch_op.add_column(sa.Column('session_number', sa.Integer(), server_default='0', nullable=False))
        batch_op.add_column(sa.Column('language', sa.String(length=16), nullable=True))
        batch_op.create_index('uq_mp_worker_email_key', ['email_key'], unique=True, sqlite_where=_CONFIRMED, postgresql_where=_CONFIRMED)

    with op.batch_alter_table('mp_requester', schema=None) as batch_op:
        batch_op.add_column(sa.Column('session_number', sa.Integer(), server_default='0', nullable=False))


def downgrade() -> None:
    with op.batch_alter_table('mp_requester', schema=None) as batch_op:
        batch_op.drop_column('session_number')

    with op.batch_alter_table('mp_worker', schema=None) as batch_op:
        batch_op.drop_index('uq_mp_worker_email_key', sqlite_where=_CONFIRMED, postgresql_where=_CONFIRMED)
        batch_op.drop_column('language')
        batch_op.drop_column('session_number')
        batch_op.drop_column('email_confirmed_at')
        batch_op.drop_column('email_key')
        batch_op.drop_column('email')

    with op.batch_alter_table('mp_mail', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_mail_state_next_attempt_at'))

    op.drop_table('mp_mail')
