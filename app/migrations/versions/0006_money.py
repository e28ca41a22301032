"""Budgets, reservations and every kind of payout.

Revision ID: 0006
Revises: 0005
Create Date: 2026-11-30 18:45:00+00:00
"""

import sqlalchemy as sa
from alembic import op

import hits.db
from app.migrations.checks import one_of, replace_check

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

LEDGER_KINDS_BEFORE = ("reward", "promise", "withdrawal", "bonus", "deposit")
LEDGER_KINDS = (*LEDGER_KINDS_BEFORE, "budget", "reservation", "release", "compensation", "reversal")
HIT_KINDS_BEFORE = ("creation", "validation", "qualification")
HIT_KINDS = (*HIT_KINDS_BEFORE, "compensation")
STATES_BEFORE = ("planned", "sending", "sent", "confirmed", "failed", "doubtful", "held", "not_due")
STATES = (
    "planned",
    "approved",
    *STATES_BEFORE[1:],
    "not_submitted",
    "no_budget",
    "needs_compensation",
    "compensating",
    "compensated",
)
SCOPES = ("project", "round", "day", "worker", "worker_day", "assignment")

APPROVAL_GUARDS = {
    "sqlite": (
        "CREATE TRIGGER payout_approval_no_update BEFORE UPDATE ON payout_approval BEGIN SELECT RAISE(ABORT, 'approvals are append-only: a word that was given stays'); END",
        "CREATE TRIGGER payout_approval_no_delete BEFORE DELETE ON payout_approval BEGIN SELECT RAISE(ABORT, 'approvals are append-only: a word that was given stays'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION forbid_approval_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'approvals are append-only: a word that was given stays'; END $$",
        "CREATE TRIGGER payout_approval_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON payout_approval FOR EACH STATEMENT EXECUTE FUNCTION forbid_approval_change()",
    ),
}


def upgrade() -> None:
    allow("hit_batch", "hitkind", HIT_KINDS_BEFORE, HIT_KINDS)
    op.add_column("hit_batch", sa.Column("extras", sa.JSON(none_as_null=True), nullable=True))
    allow("ledger_transaction", "transactionkind", LEDGER_KINDS_BEFORE, LEDGER_KINDS)

    op.create_table(
        "budget",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("scope", states(SCOPES, "budgetscope"), nullable=False),
        sa.Column("key", sa.String(length=80), nullable=False),
        sa.Column("most", hits.db.UsdCents(), nullable=True),
        sa.Column("set_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("changes", sa.Integer(), nullable=False),
        sa.CheckConstraint("most >= 0", name=op.f("ck_budget_most")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget")),
        sa.UniqueConstraint("scope", "key", name=op.f("uq_budget_scope_key")),
    )
    op.create_table(
        "reservation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("batch_id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        *(
            sa.Column(name, hits.db.UsdCents(), nullable=False)
            for name in (
                "held",
                "moved_in",
                "moved_out",
                "promised",
                "spent",
                "released",
                "bonuses",
                "validation",
                "validation_each",
            )
        ),
        sa.Column("changes", sa.Integer(), nullable=False),
        sa.Column("closed_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint(
            "promised >= 0 AND spent >= 0 AND released >= 0 AND moved_out >= 0 AND moved_in >= 0"
            " AND bonuses >= 0 AND validation >= 0 AND validation_each >= 0",
            name=op.f("ck_reservation_amounts"),
        ),
        sa.CheckConstraint(
            "promised + spent + released + moved_out + bonuses + validation <= held", name=op.f("ck_reservation_within")
        ),
        sa.CheckConstraint("moved_in <= held", name=op.f("ck_reservation_moved_in")),
        sa.ForeignKeyConstraint(["batch_id"], ["hit_batch.id"], name=op.f("fk_reservation_batch_id_hit_batch")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_reservation_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservation")),
        sa.UniqueConstraint("batch_id", name=op.f("uq_reservation_batch_id")),
    )
    with op.batch_alter_table("reservation", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reservation_day"), ["day"], unique=False)
        batch_op.create_index(batch_op.f("ix_reservation_round_id"), ["round_id"], unique=False)

    op.execute("CREATE TABLE payout_before AS SELECT * FROM payout")
    op.drop_table("payout")
    create_payout()
    # What was under way had been let through by settling; nobody was asked for an approval then.
    op.execute(
        f"INSERT INTO payout ({COPIED}, subject, batch_id, kept, promised_at, approved_by, approved_at)"
        f" SELECT {qualified('b')}, 'example:' || b.example_id, h.batch_id, 0, b.planned_at,"
        " CASE WHEN b.state IN ('sending', 'sent', 'confirmed', 'failed', 'doubtful')"
        " THEN 'before approvals were asked for' END,"
        " CASE WHEN b.state IN ('sending', 'sent', 'confirmed', 'failed', 'doubtful') THEN b.planned_at END"
        " FROM payout_before b JOIN assignment a ON a.id = b.assignment_id JOIN hit h ON h.id = a.hit_id ORDER BY b.id"
    )
    op.drop_table("payout_before")
    go_on_counting()

    op.create_table(
        "payout_approval",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("payout_id", sa.Integer(), nullable=False),
        sa.Column("promise_number", sa.Integer(), nullable=False),
        sa.Column("staff_name", sa.String(length=80), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("at", hits.db.UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["payout_id"], ["payout.id"], name=op.f("fk_payout_approval_payout_id_payout")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payout_approval")),
        sa.UniqueConstraint(
            "payout_id", "promise_number", "staff_name", name=op.f("uq_payout_approval_payout_id_promise_number_staff_name")
        ),
    )
    with op.batch_alter_table("payout_approval", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_payout_approval_payout_id"), ["payout_id"], unique=False)
    run(APPROVAL_GUARDS[op.get_bind().dialect.name])


def downgrade() -> None:
    """Take the tables back to bonuses for examples. Refused when there is money that they could not tell of."""
    untold = op.get_bind().scalar(
        sa.text(
            "SELECT (SELECT count(*) FROM payout WHERE rule != 'verified_fooling_example')"
            " + (SELECT count(*) FROM payout WHERE state IN ('no_budget', 'needs_compensation', 'compensating',"
            " 'compensated', 'not_submitted'))"
            " + (SELECT count(*) FROM hit_batch WHERE kind = 'compensation')"
            " + (SELECT count(*) FROM ledger_transaction WHERE kind IN"
            " ('budget', 'reservation', 'release', 'compensation', 'reversal'))"
        )
    )
    if untold:
        raise RuntimeError(
            f"{untold} rows of money have no place in the tables of before 0006. Nothing was changed."
            " Restore a backup from before the upgrade instead."
        )
    op.drop_table("payout_approval")
    if not on_sqlite():
        op.execute("DROP FUNCTION IF EXISTS forbid_approval_change()")
    op.execute("CREATE TABLE payout_after AS SELECT * FROM payout")
    op.drop_table("payout")
    create_payout_before()
    names = COPIED.split(", ")
    values = ", ".join("CASE WHEN state = 'approved' THEN 'planned' ELSE state END" if n == "state" else n for n in names)
    op.execute(f"INSERT INTO payout ({COPIED}) SELECT {values} FROM payout_after ORDER BY id")
    op.drop_table("payout_after")
    go_on_counting()
    op.drop_table("reservation")
    op.drop_table("budget")
    allow("ledger_transaction", "transactionkind", LEDGER_KINDS, LEDGER_KINDS_BEFORE)
    op.drop_column("hit_batch", "extras")
    allow("hit_batch", "hitkind", HIT_KINDS, HIT_KINDS_BEFORE)


COPIED = (
    "id, reference, example_id, rule, round_id, worker_id, assignment_id, endpoint, amount, reason, request_token,"
    " token_sent_at, state, tries, promise_number, cause, planned_at, claimed_at, sent_at, confirmed_at"
)


def create_payout() -> None:
    op.create_table(
        "payout",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("reference", sa.String(length=20), nullable=False),
        sa.Column("rule", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.String(length=80), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=True),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("worker_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=True),
        sa.Column("batch_id", sa.Integer(), nullable=False),
        sa.Column("endpoint", sa.String(length=200), nullable=False),
        sa.Column("amount", hits.db.UsdCents(), nullable=False),
        sa.Column("kept", hits.db.UsdCents(), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("request_token", sa.String(length=64), nullable=False),
        sa.Column("token_sent_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("state", states(STATES, "payoutstate"), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("promise_number", sa.Integer(), nullable=False),
        sa.Column("cause", sa.String(length=500), nullable=True),
        sa.Column("requested_by", sa.String(length=80), nullable=True),
        sa.Column("approved_by", sa.String(length=200), nullable=True),
        sa.Column("approved_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("planned_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("promised_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("claimed_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("sent_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("confirmed_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("compensation_hit_id", sa.Integer(), nullable=True),
        sa.CheckConstraint("amount > 0", name=op.f("ck_payout_amount")),
        sa.CheckConstraint(
            "state NOT IN ('sent', 'confirmed') OR sent_at IS NOT NULL", name=op.f("ck_payout_sent_has_time")
        ),
        sa.CheckConstraint(
            "state NOT IN ('failed', 'doubtful') OR cause IS NOT NULL", name=op.f("ck_payout_trouble_has_cause")
        ),
        sa.CheckConstraint(
            "state NOT IN ('approved', 'sending', 'sent', 'confirmed', 'failed', 'doubtful', 'compensating',"
            " 'compensated') OR approved_by IS NOT NULL",
            name=op.f("ck_payout_nothing_moves_unapproved"),
        ),
        sa.CheckConstraint(
            "assignment_id IS NOT NULL OR state IN ('needs_compensation', 'compensating', 'compensated', 'not_due',"
            " 'no_budget')",
            name=op.f("ck_payout_paid_on_an_assignment"),
        ),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name=op.f("fk_payout_assignment_id_assignment")),
        sa.ForeignKeyConstraint(["batch_id"], ["hit_batch.id"], name=op.f("fk_payout_batch_id_hit_batch")),
        sa.ForeignKeyConstraint(["compensation_hit_id"], ["hit.id"], name=op.f("fk_payout_compensation_hit_id_hit")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_payout_example_id_example")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_payout_round_id_round")),
        sa.ForeignKeyConstraint(["worker_id"], ["worker.id"], name=op.f("fk_payout_worker_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payout")),
        sa.UniqueConstraint("compensation_hit_id", name=op.f("uq_payout_compensation_hit_id")),
        sa.UniqueConstraint("reference", name=op.f("uq_payout_reference")),
        sa.UniqueConstraint("request_token", name=op.f("uq_payout_request_token")),
        sa.UniqueConstraint("rule", "subject", name=op.f("uq_payout_rule_subject")),
    )
    with op.batch_alter_table("payout", schema=None) as batch_op:
        for column in ("assignment_id", "batch_id", "example_id", "round_id", "worker_id"):
            batch_op.create_index(batch_op.f(f"ix_payout_{column}"), [column], unique=False)
        batch_op.create_index("ix_payout_state", ["state"], unique=False)


def create_payout_before() -> None:
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
        sa.Column("state", states(STATES_BEFORE, "payoutstate"), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("promise_number", sa.Integer(), nullable=False),
        sa.Column("cause", sa.String(length=500), nullable=True),
        sa.Column("planned_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("claimed_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("sent_at", hits.db.UtcDateTime(), nullable=True),
        sa.Column("confirmed_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint("amount > 0", name=op.f("ck_payout_amount")),
        sa.CheckConstraint(
            "state NOT IN ('sent', 'confirmed') OR sent_at IS NOT NULL", name=op.f("ck_payout_sent_has_time")
        ),
        sa.CheckConstraint(
            "state NOT IN ('failed', 'doubtful') OR cause IS NOT NULL", name=op.f("ck_payout_trouble_has_cause")
        ),
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
        for column in ("assignment_id", "round_id", "worker_id"):
            batch_op.create_index(batch_op.f(f"ix_payout_{column}"), [column], unique=False)
        batch_op.create_index("ix_payout_state", ["state"], unique=False)


def states(values: tuple[str, ...], name: str) -> sa.Enum:
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=40)


def qualified(alias: str) -> str:
    return ", ".join(f"{alias}.{column}" for column in COPIED.split(", "))


def allow(table: str, name: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    replace_check(table, f"ck_{table}_{name}", one_of("kind", *before), one_of("kind", *after))


def go_on_counting() -> None:
    """Let ids of new payouts follow the copied ones."""
    if not on_sqlite():
        op.execute("SELECT setval(pg_get_serial_sequence('payout', 'id'), coalesce(max(id), 0) + 1, false) FROM payout")


def on_sqlite() -> bool:
    return bool(op.get_bind().dialect.name == "sqlite")


def run(statements: tuple[str, ...]) -> None:
    for statement in statements:
        op.execute(statement)
