"""The validation queue and its policies.

Items are drawn when a HIT is opened and held by leases; the lists that HITs had before are gone.

Revision ID: 0004
Revises: 0003
Create Date: 2026-11-30 18:45:00+00:00
"""

from collections import Counter, defaultdict

import sqlalchemy as sa
from alembic import op

import hits.db

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

#: Column, its definition, and the check that comes with it. SQLite takes a check only with a column; a table made anew
#: would lose those that alembic can't see.
COLUMNS = {
    "round": (
        (
            "split_votes",
            "INTEGER",
            "ck_round_split_votes",
            "split_votes IS NULL OR (split_votes >= agreeing_votes AND split_votes <= max_votes)",
        ),
        ("senior_value", "INTEGER", "ck_round_senior_value", "senior_value IS NULL OR senior_value >= 1"),
        ("gold_items", "INTEGER DEFAULT 0 NOT NULL", "ck_round_gold_items", "gold_items >= 0"),
        ("non_fooling_percent", "INTEGER DEFAULT 0 NOT NULL", "", ""),
        ("gold_warning_percent", "INTEGER DEFAULT 70 NOT NULL", "", ""),
        (
            "pair_percent",
            "INTEGER DEFAULT 25 NOT NULL",
            "ck_round_percents",
            "non_fooling_percent BETWEEN 0 AND 100 AND pair_percent BETWEEN 1 AND 100"
            " AND gold_warning_percent BETWEEN 0 AND 100",
        ),
    ),
    "hit_batch": (("items", "INTEGER", "", ""), ("senior_value", "INTEGER", "", "")),
    "example": (
        ("moderated_at", "TIME", "", ""),
        ("override_reason", "VARCHAR(500)", "", ""),
        (
            "overridden_at",
            "TIME",
            "ck_example_override_has_reason",
            "(overridden_at IS NULL) = (override_reason IS NULL)",
        ),
        (
            "override_label",
            "VARCHAR(40)",
            "ck_example_override_label",
            "override_label IS NULL OR overridden_at IS NOT NULL",
        ),
        ("retraction_reason", "VARCHAR(500)", "", ""),
        (
            "retracted_at",
            "TIME",
            "ck_example_retraction_has_reason",
            "(retracted_at IS NULL) = (retraction_reason IS NULL)",
        ),
        ("votes_wanted", "INTEGER DEFAULT 0 NOT NULL", "", ""),
        ("for_seniors", "BOOLEAN DEFAULT false NOT NULL", "", ""),
        ("leased", "INTEGER DEFAULT 0 NOT NULL", "ck_example_counters", "votes_wanted >= 0 AND leased >= 0"),
    ),
}
TIMES = {"sqlite": "DATETIME", "postgresql": "TIMESTAMP WITH TIME ZONE"}


def upgrade() -> None:
    database = op.get_bind().dialect.name
    for table, columns in COLUMNS.items():
        for name, kind, check, condition in columns:
            defined = f"{name} {kind.replace('TIME', TIMES[database])}"
            rule = f" CONSTRAINT {check} CHECK ({condition})" if check else ""
            op.execute(f"ALTER TABLE {table} ADD COLUMN {defined}{rule}")
    op.create_index("ix_example_queue", "example", ["round_id", "verdict", "collected_at", "id"])
    op.create_table(
        "gold_item",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round_id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.String(length=40), nullable=False),
        sa.Column("context", sa.JSON(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("label", sa.String(length=40), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=True),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("retired_at", hits.db.UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_gold_item_example_id_example")),
        sa.ForeignKeyConstraint(["round_id"], ["round.id"], name=op.f("fk_gold_item_round_id_round")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gold_item")),
        sa.UniqueConstraint("public_id", name=op.f("uq_gold_item_public_id")),
        sa.UniqueConstraint("round_id", "digest", name=op.f("uq_gold_item_round_id_digest")),
    )
    op.create_index(op.f("ix_gold_item_round_id"), "gold_item", ["round_id"])
    op.create_index(op.f("ix_gold_item_example_id"), "gold_item", ["example_id"])
    op.create_table(
        "lease",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("validator_id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=True),
        sa.Column("gold_item_id", sa.Integer(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.Column("of_places", sa.Integer(), nullable=False),
        sa.Column("drawn_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("expires_at", hits.db.UtcDateTime(), nullable=True),
        sa.CheckConstraint("(example_id IS NULL) != (gold_item_id IS NULL)", name=op.f("ck_lease_example_or_gold")),
        sa.CheckConstraint(
            "place IS NULL OR (example_id IS NOT NULL AND place BETWEEN 1 AND of_places)", name=op.f("ck_lease_place")
        ),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name=op.f("fk_lease_assignment_id_assignment")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_lease_example_id_example")),
        sa.ForeignKeyConstraint(["gold_item_id"], ["gold_item.id"], name=op.f("fk_lease_gold_item_id_gold_item")),
        sa.ForeignKeyConstraint(["validator_id"], ["worker.id"], name=op.f("fk_lease_validator_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lease")),
        sa.UniqueConstraint("assignment_id", "position", name=op.f("uq_lease_assignment_id_position")),
        sa.UniqueConstraint("example_id", "place", name=op.f("uq_lease_example_id_place")),
        sa.UniqueConstraint("example_id", "validator_id", name=op.f("uq_lease_example_id_validator_id")),
        sa.UniqueConstraint("gold_item_id", "validator_id", name=op.f("uq_lease_gold_item_id_validator_id")),
    )
    for column in ("assignment_id", "validator_id", "example_id", "gold_item_id", "expires_at"):
        op.create_index(op.f(f"ix_lease_{column}"), "lease", [column])
    _change_vote(nullable=True)
    _fill()
    op.drop_table("hit_item")


def downgrade() -> None:
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
    op.create_index(op.f("ix_hit_item_hit_id"), "hit_item", ["hit_id"])
    op.create_index(op.f("ix_hit_item_example_id"), "hit_item", ["example_id"])
    op.execute(
        "INSERT INTO hit_item (hit_id, example_id, position)"
        " SELECT hit_id, example_id, row_number() OVER (PARTITION BY hit_id ORDER BY example_id) FROM"
        " (SELECT DISTINCT assignment.hit_id AS hit_id, lease.example_id AS example_id FROM lease"
        " JOIN assignment ON assignment.id = lease.assignment_id WHERE lease.example_id IS NOT NULL) AS drawn"
    )
    op.execute("DELETE FROM vote WHERE example_id IS NULL")
    _change_vote(nullable=False)
    op.drop_table("lease")
    op.drop_table("gold_item")
    op.drop_index("ix_example_queue", table_name="example")
    for table, columns in COLUMNS.items():
        for name, _, check, _ in reversed(columns):
            if check and op.get_bind().dialect.name != "sqlite":
                op.drop_constraint(op.f(check), table, type_="check")
            op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")


def _change_vote(*, nullable: bool) -> None:
    """Let votes be about gold items, or about examples only as before. No other table refers to this one."""
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("vote", "example_id", nullable=nullable)
        if not nullable:
            for column in ("seconds", "correction", "gold_item_id"):
                op.drop_column("vote", column)
            return
        op.add_column("vote", sa.Column("gold_item_id", sa.Integer(), nullable=True))
        op.add_column("vote", sa.Column("correction", sa.JSON(none_as_null=True), nullable=True))
        op.add_column("vote", sa.Column("seconds", sa.Double(), nullable=True))
        op.create_check_constraint(
            op.f("ck_vote_example_or_gold"), "vote", "(example_id IS NULL) != (gold_item_id IS NULL)"
        )
        op.create_foreign_key(op.f("fk_vote_gold_item_id_gold_item"), "vote", "gold_item", ["gold_item_id"], ["id"])
        op.create_unique_constraint(op.f("uq_vote_gold_item_id_validator_id"), "vote", ["gold_item_id", "validator_id"])
        op.create_index(op.f("ix_vote_gold_item_id"), "vote", ["gold_item_id"])
        return
    kept = ["id", "example_id", "validator_id", "assignment_id", "label", "flag_reason", "details", "created_at"]
    kept.append("counted_at")
    columns = [
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("example_id", sa.Integer(), nullable=nullable),
        sa.Column("validator_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(length=40), nullable=True),
        sa.Column("flag_reason", sa.String(length=500), nullable=True),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", hits.db.UtcDateTime(), nullable=False),
        sa.Column("counted_at", hits.db.UtcDateTime(), nullable=True),
    ]
    constraints = [
        sa.CheckConstraint("(label IS NULL) != (flag_reason IS NULL)", name=op.f("ck_vote_label_or_flag")),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignment.id"], name=op.f("fk_vote_assignment_id_assignment")),
        sa.ForeignKeyConstraint(["example_id"], ["example.id"], name=op.f("fk_vote_example_id_example")),
        sa.ForeignKeyConstraint(["validator_id"], ["worker.id"], name=op.f("fk_vote_validator_id_worker")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vote")),
        sa.UniqueConstraint("example_id", "validator_id", name=op.f("uq_vote_example_id_validator_id")),
    ]
    if nullable:
        columns += [
            sa.Column("gold_item_id", sa.Integer(), nullable=True),
            sa.Column("correction", sa.JSON(none_as_null=True), nullable=True),
            sa.Column("seconds", sa.Double(), nullable=True),
        ]
        constraints += [
            sa.CheckConstraint("(example_id IS NULL) != (gold_item_id IS NULL)", name=op.f("ck_vote_example_or_gold")),
            sa.ForeignKeyConstraint(["gold_item_id"], ["gold_item.id"], name=op.f("fk_vote_gold_item_id_gold_item")),
            sa.UniqueConstraint("gold_item_id", "validator_id", name=op.f("uq_vote_gold_item_id_validator_id")),
        ]
    op.create_table("vote_new", *columns, *constraints)
    names = ", ".join(kept)
    op.execute(f"INSERT INTO vote_new ({names}) SELECT {names} FROM vote")  # noqa: S608 - names of ours
    op.drop_table("vote")
    op.rename_table("vote_new", "vote")
    for column in ("assignment_id", "example_id", "validator_id", *(("gold_item_id",) if nullable else ())):
        op.create_index(op.f(f"ix_vote_{column}"), "vote", [column])


def _fill() -> None:
    """Give every vote its lease, and every undecided example the number of votes that could decide it."""
    connection = op.get_bind()
    connection.execute(
        sa.text(
            "INSERT INTO lease (assignment_id, validator_id, example_id, position, place, of_places, drawn_at,"
            " expires_at) SELECT assignment_id, validator_id, example_id, position,"
            " CASE WHEN label IS NOT NULL AND place <= max_votes THEN place END, max_votes, created_at, expires_at FROM"
            " (SELECT vote.*, round.max_votes AS max_votes,"
            "  row_number() OVER (PARTITION BY vote.assignment_id ORDER BY vote.id) AS position,"
            "  row_number() OVER (PARTITION BY vote.example_id ORDER BY CASE WHEN label IS NULL THEN 2"
            "   WHEN counted_at IS NULL THEN 1 ELSE 0 END, vote.id) AS place,"
            "  CASE WHEN counted_at IS NULL AND assignment.state = 'opened' THEN assignment.deadline_at END"
            "   AS expires_at"
            "  FROM vote JOIN example ON example.id = vote.example_id JOIN round ON round.id = example.round_id"
            "  JOIN assignment ON assignment.id = vote.assignment_id) AS judged"
        )
    )
    connection.execute(
        sa.text(
            "UPDATE example SET leased = (SELECT count(*) FROM lease JOIN vote ON vote.example_id = lease.example_id"
            " AND vote.validator_id = lease.validator_id WHERE lease.example_id = example.id"
            " AND lease.place IS NOT NULL AND vote.counted_at IS NULL)"
        )
    )
    undecided = connection.execute(
        sa.text(
            "SELECT example.id, round.agreeing_votes, round.max_votes FROM example"
            " JOIN round ON round.id = example.round_id WHERE example.verdict = 'pending'"
        )
    ).all()
    labels: dict[int, list[str]] = defaultdict(list)
    counted = connection.execute(
        sa.text("SELECT example_id, label FROM vote WHERE counted_at IS NOT NULL AND label IS NOT NULL")
    )
    for example_id, label in counted:
        labels[example_id].append(label)
    for example_id, agreeing, most in undecided:
        top = max(Counter(labels[example_id]).values(), default=0)
        wanted = max(min(most - len(labels[example_id]), max(agreeing - top, 1)), 0)
        connection.execute(
            sa.text("UPDATE example SET votes_wanted = :wanted WHERE id = :id"), {"wanted": wanted, "id": example_id}
        )
