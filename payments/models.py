"""The tables of money: the append-only ledger, and the outbox of bonuses."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, String, Table, UniqueConstraint, event
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UsdCents, UtcDateTime, by_value
from hits.models import Assignment, Example, Round, Worker


class TransactionKind(StrEnum):
    """What a ledger transaction records."""

    REWARD = "reward"
    PROMISE = "promise"
    WITHDRAWAL = "withdrawal"
    BONUS = "bonus"
    DEPOSIT = "deposit"


class LedgerTransaction(Base):
    """One event of money. Its postings sum to zero; it is never changed, a mistake is corrected by another one."""

    __tablename__ = "ledger_transaction"

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(120), unique=True)
    kind: Mapped[TransactionKind] = mapped_column(by_value(TransactionKind))
    #: What it was for: an assignment's id on the marketplace, a payout's reference, a deposit's note.
    reference: Mapped[str] = mapped_column(String(80), index=True)
    #: None for what belongs to no round, such as a deposit.
    round_id: Mapped[int | None] = mapped_column(ForeignKey("round.id"), index=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime(), index=True)

    postings: Mapped[list[Posting]] = relationship(order_by="Posting.id")


class Posting(Base):
    """One line of a transaction: cents that enter (positive) or leave (negative) an account."""

    __tablename__ = "posting"
    __table_args__ = (CheckConstraint("cents != 0", name="cents"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    transaction_id: Mapped[int] = mapped_column(ForeignKey("ledger_transaction.id"), index=True)
    account: Mapped[str] = mapped_column(String(240), index=True)
    cents: Mapped[int] = mapped_column(BigInteger)


_APPEND_ONLY: Final = "the ledger is append-only: book a correction instead"

#: The statements, by database, that forbid changing the ledger; a migration runs them after creating the tables.
LEDGER_GUARDS: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": tuple(
        f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb.upper()} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{_APPEND_ONLY}'); END"
        for table in ("ledger_transaction", "posting")
        for verb in ("update", "delete")
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION forbid_ledger_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_APPEND_ONLY}'; END $$",
        *(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION forbid_ledger_change()"
            for table in ("ledger_transaction", "posting")
        ),
    ),
}

#: What takes the guards away again, for a migration's way back.
LEDGER_GUARDS_DROPPED: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": tuple(
        f"DROP TRIGGER IF EXISTS {table}_no_{verb}"
        for table in ("ledger_transaction", "posting")
        for verb in ("update", "delete")
    ),
    "postgresql": (
        *(f"DROP TRIGGER IF EXISTS {table}_append_only ON {table}" for table in ("ledger_transaction", "posting")),
        "DROP FUNCTION IF EXISTS forbid_ledger_change()",
    ),
}


@event.listens_for(Posting.__table__, "after_create")
def _guard_ledger(_table: Table, connection: Any, **_options: Any) -> None:
    """Put the guards on a database that ``create_all`` makes; posting comes after ledger_transaction."""
    for statement in LEDGER_GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)


class PayoutState(StrEnum):
    """planned -> sending (the call may have happened) -> sent -> confirmed (seen in the marketplace's own list).

    doubtful: no clear answer came, so it is looked up before anything else. failed: refused, with the cause.
    held: flagged, waits for the requester. not_due: the example stopped being one that earns a bonus before it was
    sent.
    """

    PLANNED = "planned"
    SENDING = "sending"
    SENT = "sent"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    DOUBTFUL = "doubtful"
    HELD = "held"
    NOT_DUE = "not_due"


#: The marketplace has paid it.
PAID = frozenset({PayoutState.SENT, PayoutState.CONFIRMED})
#: Promised and not known to be paid.
OWED = frozenset({PayoutState.PLANNED, PayoutState.SENDING, PayoutState.DOUBTFUL, PayoutState.FAILED, PayoutState.HELD})
#: The marketplace may have paid it; nobody may send it again before looking.
UNSURE = frozenset({PayoutState.SENDING, PayoutState.DOUBTFUL})


class Payout(Base):
    """One bonus that is owed. The row and its request token exist before the marketplace is asked to pay."""

    __tablename__ = "payout"
    __table_args__ = (
        UniqueConstraint("example_id", "rule"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("state NOT IN ('sent', 'confirmed') OR sent_at IS NOT NULL", name="sent_has_time"),
        CheckConstraint("state NOT IN ('failed', 'doubtful') OR cause IS NOT NULL", name="trouble_has_cause"),
        Index("ix_payout_state", "state"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    #: Stands at the end of the reason, by which the payment is found in the marketplace's list.
    reference: Mapped[str] = mapped_column(String(20), unique=True)
    example_id: Mapped[int] = mapped_column(ForeignKey("example.id"))
    rule: Mapped[str] = mapped_column(String(40))
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"), index=True)
    #: The Requester API endpoint that the assignment lives on.
    endpoint: Mapped[str] = mapped_column(String(200))
    amount: Mapped[Decimal] = mapped_column(UsdCents())
    #: The sentence that the worker and finance both see.
    reason: Mapped[str] = mapped_column(String(500))
    request_token: Mapped[str] = mapped_column(String(64), unique=True)
    #: When the token was first sent; the marketplace remembers it for 24 hours from then.
    token_sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    state: Mapped[PayoutState] = mapped_column(by_value(PayoutState), default=PayoutState.PLANNED)
    #: Raised by every claim, so that a process that lost its claim can't write over the one that took it.
    tries: Mapped[int] = mapped_column(default=0)
    #: Raised when a promise is withdrawn or given again, so that each has its own key in the ledger.
    promise_number: Mapped[int] = mapped_column(default=1)
    cause: Mapped[str | None] = mapped_column(String(500))
    planned_at: Mapped[datetime] = mapped_column(UtcDateTime())
    claimed_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    confirmed_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    example: Mapped[Example] = relationship()
    round: Mapped[Round] = relationship()
    worker: Mapped[Worker] = relationship()
    assignment: Mapped[Assignment] = relationship()
