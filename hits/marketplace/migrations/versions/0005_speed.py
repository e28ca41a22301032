"""Indexes and counters"""

from __future__ import annotations

import math
import statistics
from datetime import datetime

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_LISTED = sa.text("status <> 'Disposed'")
_DISPOSABLE = sa.text("status IN ('Reviewable', 'Reviewing') AND submitted = 0")
_LATEST = 100


def upgrade() -> None:
    op.create_table('mp_hit_group',
    sa.Column('hit_type_id', sa.String(length=64), nullable=False),
    sa.Column('is_open', sa.Boolean(), nullable=False),
    sa.Column('open_hits', sa.BigInteger(), nullable=False),
    sa.Column('open_html_hits', sa.BigInteger(), nullable=False),
    sa.Column('work_seconds', sa.BigInteger(), nullable=True),
    sa.CheckConstraint('open_hits >= 0 AND open_html_hits >= 0', name=op.f('ck_mp_hit_group_counts_not_negative')),
    sa.ForeignKeyConstraint(['hit_type_id'], ['mp_hit_type.hit_type_id'], name=op.f('fk_mp_hit_group_hit_type_id_mp_hit_type'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('hit_type_id', name=op.f('pk_mp_hit_group'))
    )
    with op.batch_alter_table('mp_hit_group', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_hit_group_is_open'), ['is_open'], unique=False)

    with op.batch_alter_table('mp_assignment', schema=None) as batch_op:
        batch_op.add_column(sa.Column('hit_type_id', sa.String(length=64), server_default=sa.text("''"), nullable=False))
        batch_op.drop_index(batch_op.f('ix_mp_assignment_worker_id'))
        batch_op.create_index(batch_op.f('ix_mp_assignment_worker_id_submitted_at_seq'), ['worker_id', 'submitted_at', 'seq'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_assignment_hit_type_id_submitted_at_seq'), ['hit_type_id', 'submitted_at', 'seq'], unique=False)

    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_hit_requester_id_seq'))
        batch_op.drop_index(batch_op.f('ix_mp_hit_status_created_at'))
        batch_op.drop_index(batch_op.f('ix_mp_hit_hit_type_id_status_seq'))
        batch_op.create_index(batch_op.f('ix_mp_hit_hit_type_id_status_created_at_seq'), ['hit_type_id', 'status', 'created_at', 'seq'], unique=False)
        batch_op.create_index('ix_mp_hit_listed', ['requester_id', 'seq'], unique=False, sqlite_where=_LISTED, postgresql_where=_LISTED)
        batch_op.create_index('ix_mp_hit_disposable', ['created_at'], unique=False, sqlite_where=_DISPOSABLE, postgresql_where=_DISPOSABLE)
        batch_op.create_index(batch_op.f('ix_mp_hit_requester_id_status_seq'), ['requester_id', 'status', 'seq'], unique=False)

    with op.batch_alter_table('mp_request_token', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_request_token_requester_id_created_at'), ['requester_id', 'created_at'], unique=False)

    op.execute(
        "UPDATE mp_assignment SET hit_type_id = "
        "(SELECT mp_hit.hit_type_id FROM mp_hit WHERE mp_hit.hit_id = mp_assignment.hit_id)"
    )
    op.execute(
        "INSERT INTO mp_hit_group (hit_type_id, is_open, open_hits, open_html_hits) "
        "SELECT mp_hit_type.hit_type_id, count(mp_hit.seq) > 0, "
        "count(CASE WHEN mp_hit.question_kind <> 'HTMLQuestion' THEN 1 END), "
        "count(CASE WHEN mp_hit.question_kind = 'HTMLQuestion' THEN 1 END) "
        "FROM mp_hit_type LEFT JOIN mp_hit "
        "ON mp_hit.hit_type_id = mp_hit_type.hit_type_id AND mp_hit.status = 'Assignable' "
        "GROUP BY mp_hit_type.hit_type_id"
    )
    measure_work()


def measure_work() -> None:
    connection = op.get_bind()
    groups = sa.table('mp_hit_group', sa.column('hit_type_id', sa.String), sa.column('work_seconds', sa.BigInteger))
    work = sa.table('mp_assignment', *(sa.column(name) for name in ('seq', 'hit_type_id', 'worker_id')), sa.column('accepted_at', sa.DateTime(timezone=True)), sa.column('submitted_at', sa.DateTime(timezone=True)))
    worked = sa.select(work.c.hit_type_id).where(work.c.submitted_at.is_not(None)).distinct()
    for type_id in connection.execute(worked).scalars().all():
        latest = connection.execute(
            sa.select(work.c.worker_id, work.c.accepted_at, work.c.submitted_at)
            .where(work.c.hit_type_id == type_id, work.c.submitted_at.is_not(None))
            .order_by(work.c.submitted_at.desc(), work.c.seq.desc())
            .limit(_LATEST)
        ).all()
        if len(latest) < 5 or len({row.worker_id for row in latest}) < 3:
            continue
        median = statistics.median(_seconds(row.accepted_at, row.submitted_at) for row in latest)
        connection.execute(sa.update(groups).where(groups.c.hit_type_id == type_id).values(work_seconds=max(1, math.ceil(median))))


def _seconds(accepted_at: datetime, submitted_at: datetime) -> float:
    return (submitted_at - accepted_at).total_seconds()


def downgrade() -> None:
    with op.batch_alter_table('mp_request_token', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_request_token_requester_id_created_at'))

    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_hit_requester_id_status_seq'))
        batch_op.drop_index('ix_mp_hit_disposable', sqlite_where=_DISPOSABLE, postgresql_where=_DISPOSABLE)
        batch_op.drop_index('ix_mp_hit_listed', sqlite_where=_LISTED, postgresql_where=_LISTED)
        batch_op.drop_index(batch_op.f('ix_mp_hit_hit_type_id_status_created_at_seq'))
        batch_op.create_index(batch_op.f('ix_mp_hit_hit_type_id_status_seq'), ['hit_type_id', 'status', 'seq'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_hit_status_created_at'), ['status', 'created_at'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_hit_requester_id_seq'), ['requester_id', 'seq'], unique=False)

    with op.batch_alter_table('mp_assignment', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_assignment_hit_type_id_submitted_at_seq'))
        batch_op.drop_index(batch_op.f('ix_mp_assignment_worker_id_submitted_at_seq'))
        batch_op.create_index(batch_op.f('ix_mp_assignment_worker_id'), ['worker_id'], unique=False)
    op.drop_column('mp_assignment', 'hit_type_id')

    op.drop_table('mp_hit_group')
