"""Operators, what they and requesters did, disputes about rejections, and payout runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Connection,
    ForeignKey,
    Index,
    String,
    Table,
    Text,
    event,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import Base, SequenceNumber
from hits.marketplace.tables.accounts import AccountEntryRow

_IN_A_RUN = text("released_at IS NULL")


class OperatorRow(Base):
    """Somebody who runs the marketplace; a closed account stays, since the audit log names it."""

    __tablename__ = "mp_operator"

    operator_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    name_key: Mapped[str] = mapped_column(String(64), unique=True)
    password_hash: Mapped[str] = mapped_column(String(255))
    password_set_at: Mapped[datetime]
    created_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]


class AuditRow(Base):
    """One thing that somebody did; `token` is the one-time token of the form it came from."""

    __tablename__ = "mp_audit"
    __table_args__ = (Index(None, "subject_id", "seq"), Index(None, "actor", "seq"))

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    at: Mapped[datetime]
    actor_kind: Mapped[str] = mapped_column(String(16))
    actor: Mapped[str] = mapped_column(String(200))
    action: Mapped[str] = mapped_column(String(64))
    subject_kind: Mapped[str] = mapped_column(String(16))
    subject_id: Mapped[str] = mapped_column(String(64))
    details: Mapped[dict[str, Any]]
    token: Mapped[str | None] = mapped_column(String(128), unique=True)


class DisputeRow(Base):
    """A worker's objection to a rejection, one for each assignment at most."""

    __tablename__ = "mp_dispute"
    __table_args__ = (
        CheckConstraint("(state = 'Open') = (decided_at IS NULL)", name="decided_once"),
        Index(None, "state", "seq"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    dispute_id: Mapped[str] = mapped_column(String(64), unique=True)
    assignment_id: Mapped[str] = mapped_column(ForeignKey("mp_assignment.assignment_id"), unique=True)
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"), index=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), index=True)
    opened_at: Mapped[datetime]
    words: Mapped[str] = mapped_column(Text)
    reply: Mapped[str | None] = mapped_column(Text)
    replied_at: Mapped[datetime | None]
    state: Mapped[str] = mapped_column(String(16))
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[str | None] = mapped_column(String(200))
    decision: Mapped[str | None] = mapped_column(Text)


class PayoutRunRow(Base):
    """The earnings up to a moment that are paid out together; Drafted, then Paid or Cancelled."""

    __tablename__ = "mp_payout_run"
    __table_args__ = (CheckConstraint("(state = 'Drafted') = (ended_at IS NULL)", name="ended_once"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    run_id: Mapped[str] = mapped_column(String(64), unique=True)
    until: Mapped[datetime]
    drafted_at: Mapped[datetime]
    drafted_by: Mapped[str] = mapped_column(String(200))
    state: Mapped[str] = mapped_column(String(16))
    ended_at: Mapped[datetime | None]
    ended_by: Mapped[str | None] = mapped_column(String(200))
    reference: Mapped[str] = mapped_column(Text, default="")


class PayoutItemRow(Base):
    """One earning in a run: the reward of an assignment, or a bonus. A cancelled run releases its items."""

    __tablename__ = "mp_payout_item"
    __table_args__ = (
        CheckConstraint("amount_cents > 0", name="positive"),
        CheckConstraint("(assignment_id IS NULL) <> (bonus_seq IS NULL)", name="one_earning"),
        Index(None, "run_id", "worker_id"),
        Index(None, "worker_id", "run_id"),
        Index(
            "uq_mp_payout_item_assignment_id",
            "assignment_id",
            unique=True,
            sqlite_where=_IN_A_RUN,
            postgresql_where=_IN_A_RUN,
        ),
        Index(
            "uq_mp_payout_item_bonus_seq", "bonus_seq", unique=True, sqlite_where=_IN_A_RUN, postgresql_where=_IN_A_RUN
        ),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("mp_payout_run.run_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"))
    assignment_id: Mapped[str | None] = mapped_column(ForeignKey("mp_assignment.assignment_id"))
    bonus_seq: Mapped[int | None] = mapped_column(ForeignKey("mp_bonus.seq"))
    amount_cents: Mapped[int] = mapped_column(BigInteger)
    earned_at: Mapped[datetime]
    released_at: Mapped[datetime | None]


#: Tables whose rows the database itself refuses to change or delete.
APPEND_ONLY: Final = (AuditRow.__tablename__, AccountEntryRow.__tablename__)
_POSTGRESQL_FUNCTION: Final = (
    "CREATE OR REPLACE FUNCTION mp_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
)


def append_only_statements(table: str, dialect: str) -> list[str]:
    """Return the statements that make a table append-only."""
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            for change in ("UPDATE", "DELETE")
        ]
    return [
        _POSTGRESQL_FUNCTION,
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION mp_append_only()",
    ]


def _guard(table: Table, connection: Connection, **_event: Any) -> None:
    for statement in append_only_statements(table.name, connection.dialect.name):
        connection.execute(text(statement))


for _name in APPEND_ONLY:
    event.listen(Base.metadata.tables[_name], "after_create", _guard)
