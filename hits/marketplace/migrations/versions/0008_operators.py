"""Operators, disputes, payout runs, audit"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

import hits.marketplace.tables

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

APPEND_ONLY = ("mp_audit", "mp_account_entry")


def upgrade() -> None:
    op.create_table('mp_audit',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('actor_kind', sa.String(length=16), nullable=False),
    sa.Column('actor', sa.String(length=200), nullable=False),
    sa.Column('action', sa.String(length=64), nullable=False),
    sa.Column('subject_kind', sa.String(length=16), nullable=False),
    sa.Column('subject_id', sa.String(length=64), nullable=False),
    sa.Column('details', sa.JSON(), nullable=False),
    sa.Column('token', sa.String(length=128), nullable=True),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_audit')),
    sa.UniqueConstraint('token', name=op.f('uq_mp_audit_token'))
    )
    with op.batch_alter_table('mp_audit', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_audit_actor_seq'), ['actor', 'seq'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_audit_subject_id_seq'), ['subject_id', 'seq'], unique=False)

    op.create_table('mp_operator',
    sa.Column('operator_id', sa.String(length=64), nullable=False),
    sa.Column('name', sa.String(length=64), nullable=False),
    sa.Column('name_key', sa.String(length=64), nullable=False),
    sa.Column('password_hash', sa.String(length=255), nullable=False),
    sa.Column('password_set_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('created_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('closed_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.PrimaryKeyConstraint('operator_id', name=op.f('pk_mp_operator')),
    sa.UniqueConstraint('name_key', name=op.f('uq_mp_operator_name_key'))
    )
    op.create_table('mp_payout_run',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('run_id', sa.String(length=64), nullable=False),
    sa.Column('until', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('drafted_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('drafted_by', sa.String(length=200), nullable=False),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('ended_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('ended_by', sa.String(length=200), nullable=True),
    sa.Column('reference', sa.Text(), nullable=False),
    sa.CheckConstraint("(state = 'Drafted') = (ended_at IS NULL)", name=op.f('ck_mp_payout_run_ended_once')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_payout_run')),
    sa.UniqueConstraint('run_id', name=op.f('uq_mp_payout_run_run_id'))
    )
    op.create_table('mp_dispute',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('dispute_id', sa.String(length=64), nullable=False),
    sa.Column('assignment_id', sa.String(length=64), nullable=False),
    sa.Column('worker_id', sa.String(length=64), nullable=False),
    sa.Column('requester_id', sa.String(length=64), nullable=False),
    sa.Column('opened_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('words', sa.Text(), nullable=False),
    sa.Column('reply', sa.Text(), nullable=True),
    sa.Column('replied_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('state', sa.String(length=16), nullable=False),
    sa.Column('decided_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.Column('decided_by', sa.String(length=200), nullable=True),
    sa.Column('decision', sa.Text(), nullable=True),
    sa.CheckConstraint("(state = 'Open') = (decided_at IS NULL)", name=op.f('ck_mp_dispute_decided_once')),
    sa.ForeignKeyConstraint(['assignment_id'], ['mp_assignment.assignment_id'], name=op.f('fk_mp_dispute_assignment_id_mp_assignment')),
    sa.ForeignKeyConstraint(['requester_id'], ['mp_requester.requester_id'], name=op.f('fk_mp_dispute_requester_id_mp_requester')),
    sa.ForeignKeyConstraint(['worker_id'], ['mp_worker.worker_id'], name=op.f('fk_mp_dispute_worker_id_mp_worker')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_dispute')),
    sa.UniqueConstraint('assignment_id', name=op.f('uq_mp_dispute_assignment_id')),
    sa.UniqueConstraint('dispute_id', name=op.f('uq_mp_dispute_dispute_id'))
    )
    with op.batch_alter_table('mp_dispute', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_dispute_requester_id'), ['requester_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_dispute_state_seq'), ['state', 'seq'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_dispute_worker_id'), ['worker_id'], unique=False)

    op.create_table('mp_payout_item',
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('run_id', sa.String(length=64), nullable=False),
    sa.Column('worker_id', sa.String(length=64), nullable=False),
    sa.Column('assignment_id', sa.String(length=64), nullable=True),
    sa.Column('bonus_seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('amount_cents', sa.BigInteger(), nullable=False),
    sa.Column('earned_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=False),
    sa.Column('released_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True),
    sa.CheckConstraint('(assignment_id IS NULL) <> (bonus_seq IS NULL)', name=op.f('ck_mp_payout_item_one_earning')),
    sa.CheckConstraint('amount_cents > 0', name=op.f('ck_mp_payout_item_positive')),
    sa.ForeignKeyConstraint(['assignment_id'], ['mp_assignment.assignment_id'], name=op.f('fk_mp_payout_item_assignment_id_mp_assignment')),
    sa.ForeignKeyConstraint(['bonus_seq'], ['mp_bonus.seq'], name=op.f('fk_mp_payout_item_bonus_seq_mp_bonus')),
    sa.ForeignKeyConstraint(['run_id'], ['mp_payout_run.run_id'], name=op.f('fk_mp_payout_item_run_id_mp_payout_run')),
    sa.ForeignKeyConstraint(['worker_id'], ['mp_worker.worker_id'], name=op.f('fk_mp_payout_item_worker_id_mp_worker')),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_mp_payout_item'))
    )
    with op.batch_alter_table('mp_payout_item', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_mp_payout_item_run_id_worker_id'), ['run_id', 'worker_id'], unique=False)
        batch_op.create_index(batch_op.f('ix_mp_payout_item_worker_id_run_id'), ['worker_id', 'run_id'], unique=False)
        batch_op.create_index('uq_mp_payout_item_assignment_id', ['assignment_id'], unique=True, sqlite_where=sa.text('released_at IS NULL'), postgresql_where=sa.text('released_at IS NULL'))
        batch_op.create_index('uq_mp_payout_item_bonus_seq', ['bonus_seq'], unique=True, sqlite_where=sa.text('released_at IS NULL'), postgresql_where=sa.text('released_at IS NULL'))

    with op.batch_alter_table('mp_assignment', schema=None) as batch_op:
        batch_op.create_index('ix_mp_assignment_review', ['requester_id', 'auto_approval_at', 'seq'], unique=False, sqlite_where=sa.text("state = 'Submitted'"), postgresql_where=sa.text("state = 'Submitted'"))

    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.add_column(sa.Column('taken_down_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True))

    with op.batch_alter_table('mp_requester', schema=None) as batch_op:
        batch_op.add_column(sa.Column('disabled_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True))

    with op.batch_alter_table('mp_worker', schema=None) as batch_op:
        batch_op.add_column(sa.Column('disabled_at', hits.marketplace.tables.UtcDateTime(timezone=True), nullable=True))
        batch_op.add_column(sa.Column('payout_details', sa.LargeBinary(), nullable=True))

    for table in APPEND_ONLY:
        if op.get_context().dialect.name == "sqlite":
            for change in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
                )
            continue
        op.execute(
            "CREATE OR REPLACE FUNCTION mp_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
        )
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION mp_append_only()"
        )


def downgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        for table in APPEND_ONLY:
            op.execute(f"DROP TRIGGER {table}_no_update")
            op.execute(f"DROP TRIGGER {table}_no_delete")
    else:
        op.execute("DROP FUNCTION mp_append_only() CASCADE")
    with op.batch_alter_table('mp_worker', schema=None) as batch_op:
        batch_op.drop_column('payout_details')
        batch_op.drop_column('disabled_at')

    with op.batch_alter_table('mp_requester', schema=None) as batch_op:
        batch_op.drop_column('disabled_at')

    with op.batch_alter_table('mp_hit', schema=None) as batch_op:
        batch_op.drop_column('taken_down_at')

    with op.batch_alter_table('mp_assignment', schema=None) as batch_op:
        batch_op.drop_index('ix_mp_assignment_review', sqlite_where=sa.text("state = 'Submitted'"), postgresql_where=sa.text("state = 'Submitted'"))

    with op.batch_alter_table('mp_payout_item', schema=None) as batch_op:
        batch_op.drop_index('uq_mp_payout_item_bonus_seq', sqlite_where=sa.text('released_at IS NULL'), postgresql_where=sa.text('released_at IS NULL'))
        batch_op.drop_index('uq_mp_payout_item_assignment_id', sqlite_where=sa.text('released_at IS NULL'), postgresql_where=sa.text('released_at IS NULL'))
        batch_op.drop_index(batch_op.f('ix_mp_payout_item_worker_id_run_id'))
        batch_op.drop_index(batch_op.f('ix_mp_payout_item_run_id_worker_id'))

    op.drop_table('mp_payout_item')
    with op.batch_alter_table('mp_dispute', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_dispute_worker_id'))
        batch_op.drop_index(batch_op.f('ix_mp_dispute_state_seq'))
        batch_op.drop_index(batch_op.f('ix_mp_dispute_requester_id'))

    op.drop_table('mp_dispute')
    op.drop_table('mp_payout_run')
    op.drop_table('mp_operator')
    with op.batch_alter_table('mp_audit', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_mp_audit_subject_id_seq'))
        batch_op.drop_index(batch_op.f('ix_mp_audit_actor_seq'))

    op.drop_table('mp_audit')
