"""Contact and reports"""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op

import hits.marketplace.tables

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_OPEN = sa.text("closed_at IS NULL")
_NOT_SHOWN = re.compile(
    r"(?:<|&lt;)(crowd-(?:3d-point-cloud|bounding-box|entity-annotation|instance-segmentation|keypoint|line|polygon|polyline"
    r"|rekognition-detect-moderation-labels|semantic-segmentation|textract-analyze-document))(?![\w-])",
    re.IGNORECASE,
)
_UNREAD = sa.text("read_at IS NULL")
_REASONED = sa.text("return_reason IS NOT NULL")


def upgrade() -> None:
    op.create_table('mp_requester_message',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('message_id', sa.String(length=64), nullable=False),
    sa.Column('requester_id', sa.String(length=64), nullable=False),
    sa.Column('worker_id', sa.String(length=64), nullable=True),
    sa.Column('hit_id', sa.String(length=64), nullable=True),
    sa.Column('assignment_id', sa.String(length=64), nullable=True),
    sa.Column('sent_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('answered_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['requester_id'], ['mp_requester.requester_id'], name=op.f('fk_mp_requester_message_requester_id_mp_requester')),
    sa.ForeignKeyConstraint(['worker_id'], ['mp_worker.worker_id'], name=op.f('fk_mp_requester_message_worker_id_mp_worker')),
    sa.ForeignKeyConstraint(['hit_id'], ['mp_hit.hit_id'], name=op.f('fk_mp_requester_message_hit_id_mp_hit')),
    sa.ForeignKeyConstraint(['assignment_id'], ['mp_assignment.assignment_id'], name=op.f('fk_mp_requester_message_assignment_id_mp_assignment')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_requester_message')),
    sa.UniqueConstraint('message_id', name=op.f('uq_mp_requester_message_message_id'))
    )
    with op.batch_alter_table('mp_requester_message', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_requester_message_requester_id_seq'), ['requester_id', 'seq'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_requester_message_requester_id_answered_at_seq'), ['requester_id', 'answered_at', 'seq'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_requester_message_worker_id_sent_at'), ['worker_id', 'sent_at'], unique=False)

    op.create_table('mp_hit_report',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('report_id', sa.String(length=64), nullable=False),
    sa.Column('worker_id', sa.String(length=64), nullable=False),
    sa.Column('hit_id', sa.String(length=64), nullable=False),
    sa.Column('assignment_id', sa.String(length=64), nullable=True),
    sa.Column('reason', sa.String(length=32), nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.Column('reported_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('closed_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('note', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['worker_id'], ['mp_worker.worker_id'], name=op.f('fk_mp_hit_report_worker_id_mp_worker')),
    sa.ForeignKeyConstraint(['hit_id'], ['mp_hit.hit_id'], name=op.f('fk_mp_hit_report_hit_id_mp_hit')),
    sa.ForeignKeyConstraint(['assignment_id'], ['mp_assignment.assignment_id'], name=op.f('fk_mp_hit_report_assignment_id_mp_assignment')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_hit_report')),
    sa.UniqueConstraint('report_id', name=op.f('uq_mp_hit_report_report_id'))
    )
    with op.batch_alter_table('mp_hit_report', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_hit_report_closed_at_seq'), ['closed_at', 'seq'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_hit_report_worker_id_reported_at'), ['worker_id', 'reported_at'], unique=False)
        batch_op.create_index('uq_mp_hit_report_open', ['hit_id', 'worker_id'], unique=True, sqlite_where=_OPEN, postgresql_where=_OPEN)

    with op.batch_alter_table('mp_message', schema=None) as batch_op:
        batch_op.alter_column('requester_id', existing_type=sa.String(length=64), nullable=True)
        batch_op.add_column(sa.Column('question_id', sa.String(length=64), nullable=True))
        batch_op.create_foreign_key(batch_op.f('fk_mp_message_question_id_mp_requester_message'), 'mp_requester_message', ['question_id'], ['message_id'])
        batch_op.create_index(batch_op.f('ix_mp_message_question_id'), ['question_id'], unique=False)
        batch_op.create_index('ix_mp_message_unread', ['worker_id'], unique=False, sqlite_where=_UNREAD, postgresql_where=_UNREAD)

    with op.batch_alter_table('mp_assignment', schema=None) as batch_op:
        batch_op.create_index('ix_mp_assignment_reasoned', ['seq'], unique=False, sqlite_where=_REASONED, postgresql_where=_REASONED)
    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.add_column(sa.Column('missing_elements', sa.Text(), nullable=True))
    note_missing_elements()


def note_missing_elements() -> None:
    connection = op.get_bind()
    hits = sa.table("mp_hit", sa.column("seq", sa.BigInteger), sa.column("question", sa.Text), sa.column("missing_elements", sa.Text))
    pages = sa.select(hits.c.seq, hits.c.question).where(hits.c.question.contains("crowd-html-elements"))
    for seq, question in connection.execute(pages).all():
        if found := " ".join(sorted({name.lower() for name in _NOT_SHOWN.findall(question)})):
            connection.execute(sa.update(hits).where(hits.c.seq == seq).values(missing_elements=found))
    # Those are offered to nobody, so the counts of 0005 leave them out.
    op.execute(
        "UPDATE mp_hit_group SET open_html_hits = (SELECT count(*) FROM mp_hit "
        "WHERE mp_hit.hit_type_id = mp_hit_group.hit_type_id AND mp_hit.status = 'Assignable' "
        "AND mp_hit.question_kind = 'HTMLQuestion' AND mp_hit.missing_elements IS NULL)"
    )
    op.execute("UPDATE mp_hit_group SET is_open = (open_hits + open_html_hits > 0)")


def downgrade() -> None:
    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.drop_column('missing_elements')
    with op.batch_alter_table('mp_assignment', schema=None) as batch_op:
        batch_op.drop_index('ix_mp_assignment_reasoned', postgresql_where=_REASONED, sqlite_where=_REASONED)
    # What the operator wrote has no place in the older table.
    op.execute("DELETE FROM mp_message WHERE requester_id IS NULL")
    with op.batch_alter_table('mp_message', schema=None) as batch_op:
        batch_op.drop_index('ix_mp_message_unread', postgresql_where=_UNREAD, sqlite_where=_UNREAD)
        batch_op.drop_index(batch_op.f('ix_mp_message_question_id'))
        batch_op.drop_constraint(batch_op.f('fk_mp_message_question_id_mp_requester_message'), type_='foreignkey')
        batch_op.drop_column('question_id')
        batch_op.alter_column('requester_id', existing_type=sa.String(length=64), nullable=False)

    op.drop_table('mp_hit_report')
    op.drop_table('mp_requester_message')
