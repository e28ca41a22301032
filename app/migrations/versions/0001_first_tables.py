"""first tables.

Revision ID: 0001
Revises:
Create Date: 2026-11-30 12:26:30.552605+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

#: The ledger is append-only on both databases.
GUARDS = {
    "sqlite": (
        "CREATE TRIGGER ledger_transaction_no_update BEFORE UPDATE ON ledger_transaction BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: book a correction instead'); END",
        "CREATE TRIGGER ledger_transaction_no_delete BEFORE DELETE ON ledger_transaction BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: book a correction instead'); END",
        "CREATE TRIGGER posting_no_update BEFORE UPDATE ON posting BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: book a correction instead'); END",
        "CREATE TRIGGER posting_no_delete BEFORE DELETE ON posting BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: book a correction instead'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION forbid_ledger_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only: book a correction instead'; END $$",
        "CREATE TRIGGER ledger_transaction_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_transaction FOR EACH STATEMENT EXECUTE FUNCTION forbid_ledger_change()",
        "CREATE TRIGGER posting_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON posting FOR EACH STATEMENT EXECUTE FUNCTION forbid_ledger_change()",
    ),
}
GUARDS_DROPPED = {
    "sqlite": (
        "DROP TRIGGER IF EXISTS ledger_transaction_no_update",
        "DROP TRIGGER IF EXISTS ledger_transaction_no_delete",
        "DROP TRIGGER IF EXISTS posting_no_update",
        "DROP TRIGGER IF EXISTS posting_no_delete",
    ),
    "postgresql": (
        "DROP TRIGGER IF EXISTS ledger_transaction_append_only ON ledger_transaction",
        "DROP TRIGGER IF EXISTS posting_append_only ON posting",
        "DROP FUNCTION IF EXISTS forbid_ledger_change()",
    ),
}


def upgrade() -> None:
    op.create_table(
        "audit_entry",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("staff_name", sa.String(length=80), nullable=False),
        sa.Column("action", sa.String(length=60), nullable=False),
        sa.Column("subject", sa.String(length=120), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entry")),
    )
    with op.batch_alter_table("audit_entry", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_entry_at"), ["at"], unique=False)

    op.create_table(
        "model_version",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_code", sa.String(length=40), nullable=False),
        sa.Column("model_id", sa.String(length=200), nullable=False),
        sa.Column("revision", sa.String(length=80), nullable=False),
        sa.Column("labels", sa.JSON(), nullable=False),
        sa.Column("card", sa.JSON(), nullable=False),
        sa.Column("first_seen_at", hits.db.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_version")),
        sa.UniqueConstraint("model_id", "revision", name=op.f("uq_model_version_model_id_revision")),
    )
    op.create_table(
        "round",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("task_code", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("task_version", sa.Integer(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("agreeing_votes", sa.Integer(), nullable=False),
        sa.Column("max_votes", sa.Integer(), nullable=False),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.CheckConstraint("agreeing_votes >= 1 AND max_votes >= agreeing_votes", name=op.f("ck_round_votes")),
        sa.CheckConstraint("number >= 1", name=op.f("ck_round_number_from_one")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_round")),
        sa.UniqueConstraint("task_code", "number", name=op.f("uq_round_task_code_number")),
    )
    op.create_table(
        "staff_user",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("password_hash", sa.String(length=300), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_staff_user")),
        sa.UniqueConstraint("name", name=op.f("uq_staff_user_name")),
    )
    op.create_table(
        "worker",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("mturk_worker_id", sa.String(length=64), nullable=False),
        sa.Column("pseudonym", sa.String(length=32), nullable=False),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
        sa.UniqueConstraint("mturk_worker_id", name=op.f("uq_worker_mturk_worker_id")),
        sa.UniqueConstraint("pseudonym", name=op.f("uq_worker_pseudonym")),
    )
    op.create_table(
        "context",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_context_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_context")),
        sa.UniqueConstraint("round_id", "digest", name=op.f("uq_context_round_id_digest")),
    )
    with op.batch_alter_table("context", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_context_round_id"), ["round_id"], unique=False)

    op.create_table(
        "hit_batch",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column(
            "kind",
            sa.Enum("creation", "validation", name="hitkind", native_enum=False, create_constraint=True, length=40),
            nullable=False,
        ),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("title", sa.String(length=128), nullable=False),
        sa.Column("description", sa.String(length=2000), nullable=False),
        sa.Column("keywords", sa.String(length=1000), nullable=False),
        sa.Column("reward", hits.db.UsdCents(), nullable=False),
        sa.Column("bonus", hits.db.UsdCents(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("minutes", sa.Integer(), nullable=False),
        sa.Column("assignment_seconds", sa.Integer(), nullable=False),
        sa.Column("auto_approval_seconds", sa.Integer(), nullable=False),
        sa.Column("lifetime_seconds", sa.Integer(), nullable=False),
        sa.Column("qualification_type_id", sa.String(length=64), nullable=True),
        sa.Column("hit_type_id", sa.String(length=64), nullable=True),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.CheckConstraint("reward >= 0 AND bonus >= 0", name=op.f("ck_hit_batch_amounts")),
        sa.CheckConstraint("tries >= 1", name=op.f("ck_hit_batch_tries")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_hit_batch_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hit_batch")),
        sa.UniqueConstraint("key", name=op.f("uq_hit_batch_key")),
    )
    with op.batch_alter_table("hit_batch", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_hit_batch_round_id"), ["round_id"], unique=False)

    op.create_table(
        "ledger_transaction",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=120), nullable=False),
        sa.Column(
            "kind",
            sa.Enum(
                "reward",
                "promise",
                "withdrawal",
                "bonus",
                "deposit",
                name="transactionkind",
                native_enum=False,
                create_constraint=True,
                length=40,
            ),
            nullable=False,
        ),
        sa.Column("reference", sa.String(length=80), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=True),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_ledger_transaction_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_transaction")),
        sa.UniqueConstraint("key", name=op.f("uq_ledger_transaction_key")),
    )
    with op.batch_alter_table("ledger_transaction", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_ledger_transaction_at"), ["at"], unique=False)
        batch_op.create_index(batch_op.f("ix_ledger_transaction_reference"), ["reference"], unique=False)
        batch_op.create_index(batch_op.f("ix_ledger_transaction_round_id"), ["round_id"], unique=False)

    op.create_table(
        "hit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("batch_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("reference", sa.String(length=40), nullable=False),
        sa.Column("request_token", sa.String(length=64), nullable=False),
        sa.Column("token_sent_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column(
            "state",
            sa.Enum(
                "planned",
                "creating",
                "created",
                "closed",
                name="hitstate",
                native_enum=False,
                create_constraint=True,
                length=40,
            ),
            nullable=False,
        ),
        sa.Column("mturk_hit_id", sa.String(length=64), nullable=True),
        sa.Column("max_assignments", sa.Integer(), nullable=False),
        sa.Column("context_id", sa.Integer(), nullable=True),
        sa.Column("goal_label", sa.String(length=40), nullable=True),
        sa.Column("expires_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint(
            "state IN ('planned', 'creating') OR mturk_hit_id IS NOT NULL", name=op.f("ck_hit_created_has_id")
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["hit_batch.id"], name=op.f("fk_hit_batch_id_hit_batch")),
        sa.ForeignKeyConstraint(["context_id"], ["context.id"], name=op.f("fk_hit_context_id_context")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hit")),
        sa.UniqueConstraint("batch_id", "position", name=op.f("uq_hit_batch_id_position")),
        sa.UniqueConstraint("mturk_hit_id", name=op.f("uq_hit_mturk_hit_id")),
        sa.UniqueConstraint("reference", name=op.f("uq_hit_reference")),
        sa.UniqueConstraint("request_token", name=op.f("uq_hit_request_token")),
    )
    with op.batch_alter_table("hit", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_hit_batch_id"), ["batch_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_hit_state"), ["state"], unique=False)

    op.create_table(
        "posting",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("transaction_id", sa.Integer(), nullable=False),
        sa.Column("account", sa.String(length=240), nullable=False),
        sa.Column("cents", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("cents != 0", name=op.f("ck_posting_cents")),
        sa.ForeignKeyConstraint(
            ["transaction_id"], ["ledger_transaction.id"], name=op.f("fk_posting_transaction_id_ledger_transaction")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_posting")),
    )
    with op.batch_alter_table("posting", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_posting_account"), ["account"], unique=False)
        batch_op.create_index(batch_op.f("ix_posting_transaction_id"), ["transaction_id"], unique=False)

    op.create_table(
        "assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("mturk_assignment_id", sa.String(length=64), nullable=False),
        sa.Column("hit_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "opened",
                "saved",
                "submitted",
                "approved",
                "rejected",
                name="assignmentstate",
                native_enum=False,
                create_constraint=True,
                length=40,
            ),
            nullable=False,
        ),
        sa.Column("opened_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("deadline_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("saved_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("accepted_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("submitted_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("auto_approval_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("approved_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("rejected_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("draft", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("review_reason", sa.String(length=200), nullable=True),
        sa.ForeignKeyConstraint(["hit_id"], ["hit.id"], name=op.f("fk_assignment_hit_id_hit")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_assignment_worker_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignment")),
        sa.UniqueConstraint("mturk_assignment_id", name=op.f("uq_assignment_mturk_assignment_id")),
    )
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_assignment_hit_id"), ["hit_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_assignment_state"), ["state"], unique=False)
        batch_op.create_index(batch_op.f("ix_assignment_worker_id"), ["worker_id"], unique=False)

    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.String(length=40), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("hit_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("try_number", sa.Integer(), nullable=True),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("answer_digest", sa.String(length=64), nullable=False),
        sa.Column("goal_label", sa.String(length=40), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "asking",
                "answered",
                "unanswered",
                name="attemptstate",
                native_enum=False,
                create_constraint=True,
                length=40,
            ),
            nullable=False,
        ),
        sa.Column("asked_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("answered_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column("failure", sa.String(length=300), nullable=True),
        sa.Column("model_id", sa.String(length=200), nullable=True),
        sa.Column("model_revision", sa.String(length=80), nullable=True),
        sa.Column("predicted_label", sa.String(length=40), nullable=True),
        sa.Column("probabilities", sa.JSON(), nullable=True),
        sa.Column("fooled", sa.Boolean(), nullable=True),
        sa.Column("latency_ms", sa.Double(), nullable=True),
        sa.Column("truncated", sa.Boolean(), nullable=True),
        sa.Column("attribution", sa.JSON(), nullable=True),
        sa.Column("convergence_delta", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "(state = 'unanswered') = (try_number IS NULL)", name=op.f("ck_attempt_a_failure_uses_no_try")
        ),
        sa.CheckConstraint(
            "state != 'answered' OR (predicted_label IS NOT NULL AND fooled IS NOT NULL)",
            name=op.f("ck_attempt_answered"),
        ),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name=op.f("fk_attempt_assignment_id_assignment")),
        sa.ForeignKeyConstraint(["hit_id"], ["hit.id"], name=op.f("fk_attempt_hit_id_hit")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_attempt_worker_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint(
            "hit_id", "worker_id", "answer_digest", name=op.f("uq_attempt_hit_id_worker_id_answer_digest")
        ),
        sa.UniqueConstraint("hit_id", "worker_id", "try_number", name=op.f("uq_attempt_hit_id_worker_id_try_number")),
        sa.UniqueConstraint("public_id", name=op.f("uq_attempt_public_id")),
    )
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempt_assignment_id"), ["assignment_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempt_hit_id"), ["hit_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_attempt_worker_id"), ["worker_id"], unique=False)

    op.create_table(
        "example",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("context_id", sa.Integer(), nullable=False),
        sa.Column("writer_id", sa.Integer(), nullable=False),
        sa.Column("goal_label", sa.String(length=40), nullable=False),
        sa.Column("model_label", sa.String(length=40), nullable=False),
        sa.Column("fooled", sa.Boolean(), nullable=False),
        sa.Column(
            "verdict",
            sa.Enum(
                "not_validated",
                "pending",
                "valid_and_model_wrong",
                "valid_and_model_right",
                "invalid",
                "unresolved",
                "flagged",
                name="verdict",
                native_enum=False,
                create_constraint=True,
                length=40,
            ),
            nullable=False,
        ),
        sa.Column("final_label", sa.String(length=40), nullable=True),
        sa.Column(
            "moderation",
            sa.Enum(
                "open", "dismissed", "upheld", name="moderation", native_enum=False, create_constraint=True, length=40
            ),
            nullable=True,
        ),
        sa.Column("moderation_reason", sa.String(length=500), nullable=True),
        sa.Column("collected_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("decided_at", hits.db.UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_example_attempt_id_attempt")),
        sa.ForeignKeyConstraint(["context_id"], ["context.id"], name=op.f("fk_example_context_id_context")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_example_round_id_round")),
        sa.ForeignKeyConstraint(["writer_id"], ["worker.id"], name=op.f("fk_example_writer_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_example")),
        sa.UniqueConstraint("attempt_id", name=op.f("uq_example_attempt_id")),
    )
    with op.batch_alter_table("example", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_example_round_id"), ["round_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_example_verdict"), ["verdict"], unique=False)
        batch_op.create_index(batch_op.f("ix_example_writer_id"), ["writer_id"], unique=False)

    op.create_table(
        "hit_item",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hit_id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_hit_item_example_id_example")),
        sa.ForeignKeyConstraint(["hit_id"], ["hit.id"], name=op.f("fk_hit_item_hit_id_hit")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hit_item")),
        sa.UniqueConstraint("hit_id", "example_id", name=op.f("uq_hit_item_hit_id_example_id")),
        sa.UniqueConstraint("hit_id", "position", name=op.f("uq_hit_item_hit_id_position")),
    )
    with op.batch_alter_table("hit_item", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_hit_item_example_id"), ["example_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_hit_item_hit_id"), ["hit_id"], unique=False)

    op.create_table(
        "payout",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("reference", sa.String(length=20), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(length=40), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("amount", hits.db.UsdCents(), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("request_token", sa.String(length=64), nullable=False),
        sa.Column("token_sent_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column(
            "state",
            sa.Enum(
                "planned",
                "sending",
                "sent",
                "confirmed",
                "failed",
                "doubtful",
                "held",
                "not_due",
                name="payoutstate",
                native_enum=False,
                create_constraint=True,
                length=40,
            ),
            nullable=False,
        ),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("promise_number", sa.Integer(), nullable=False),
        sa.Column("cause", sa.String(length=500), nullable=True),
        sa.Column("planned_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("claimed_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("sent_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("confirmed_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint(
            "state NOT IN ('failed', 'doubtful') OR cause IS NOT NULL", name=op.f("ck_payout_trouble_has_cause")
        ),
        sa.CheckConstraint(
            "state NOT IN ('sent', 'confirmed') OR sent_at IS NOT NULL", name=op.f("ck_payout_sent_has_time")
        ),
        sa.CheckConstraint("amount > 0", name=op.f("ck_payout_amount")),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name=op.f("fk_payout_assignment_id_assignment")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_payout_example_id_example")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_payout_round_id_round")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_payout_worker_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payout")),
        sa.UniqueConstraint("example_id", "rule", name=op.f("uq_payout_example_id_rule")),
        sa.UniqueConstraint("reference", name=op.f("uq_payout_reference")),
        sa.UniqueConstraint("request_token", name=op.f("uq_payout_request_token")),
    )
    with op.batch_alter_table("payout", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_payout_assignment_id"), ["assignment_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_payout_round_id"), ["round_id"], unique=False)
        batch_op.create_index("ix_payout_state", ["state"], unique=False)
        batch_op.create_index(batch_op.f("ix_payout_worker_id"), ["worker_id"], unique=False)

    op.create_table(
        "vote",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=False),
        sa.Column("validator_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(length=40), nullable=True),
        sa.Column("flag_reason", sa.String(length=500), nullable=True),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("counted_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint("(label IS NULL) != (flag_reason IS NULL)", name=op.f("ck_vote_label_or_flag")),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name=op.f("fk_vote_assignment_id_assignment")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_vote_example_id_example")),
        sa.ForeignKeyConstraint(["validator_id"], ["worker.id"], name=op.f("fk_vote_validator_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vote")),
        sa.UniqueConstraint("example_id", "validator_id", name=op.f("uq_vote_example_id_validator_id")),
    )
    with op.batch_alter_table("vote", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_vote_assignment_id"), ["assignment_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_vote_example_id"), ["example_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_vote_validator_id"), ["validator_id"], unique=False)
    for statement in GUARDS[op.get_bind().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    for statement in GUARDS_DROPPED[op.get_bind().dialect.name]:
        op.execute(statement)
    with op.batch_alter_table("vote", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_vote_validator_id"))
        batch_op.drop_index(batch_op.f("ix_vote_example_id"))
        batch_op.drop_index(batch_op.f("ix_vote_assignment_id"))

    op.drop_table("vote")
    with op.batch_alter_table("payout", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_payout_worker_id"))
        batch_op.drop_index("ix_payout_state")
        batch_op.drop_index(batch_op.f("ix_payout_round_id"))
        batch_op.drop_index(batch_op.f("ix_payout_assignment_id"))

    op.drop_table("payout")
    with op.batch_alter_table("hit_item", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_hit_item_hit_id"))
        batch_op.drop_index(batch_op.f("ix_hit_item_example_id"))

    op.drop_table("hit_item")
    with op.batch_alter_table("example", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_example_writer_id"))
        batch_op.drop_index(batch_op.f("ix_example_verdict"))
        batch_op.drop_index(batch_op.f("ix_example_round_id"))

    op.drop_table("example")
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempt_worker_id"))
        batch_op.drop_index(batch_op.f("ix_attempt_hit_id"))
        batch_op.drop_index(batch_op.f("ix_attempt_assignment_id"))

    op.drop_table("attempt")
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_assignment_worker_id"))
        batch_op.drop_index(batch_op.f("ix_assignment_state"))
        batch_op.drop_index(batch_op.f("ix_assignment_hit_id"))

    op.drop_table("assignment")
    with op.batch_alter_table("posting", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_posting_transaction_id"))
        batch_op.drop_index(batch_op.f("ix_posting_account"))

    op.drop_table("posting")
    with op.batch_alter_table("hit", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_hit_state"))
        batch_op.drop_index(batch_op.f("ix_hit_batch_id"))

    op.drop_table("hit")
    with op.batch_alter_table("ledger_transaction", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_ledger_transaction_round_id"))
        batch_op.drop_index(batch_op.f("ix_ledger_transaction_reference"))
        batch_op.drop_index(batch_op.f("ix_ledger_transaction_at"))

    op.drop_table("ledger_transaction")
    with op.batch_alter_table("hit_batch", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_hit_batch_round_id"))

    op.drop_table("hit_batch")
    with op.batch_alter_table("context", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_context_round_id"))

    op.drop_table("context")
    op.drop_table("worker")
    op.drop_table("staff_user")
    op.drop_table("round")
    op.drop_table("model_version")
    with op.batch_alter_table("audit_entry", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_audit_entry_at"))

    op.drop_table("audit_entry")
