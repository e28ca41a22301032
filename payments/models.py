"""The tables of money: the append-only ledger, budgets and what is reserved of them, and the outbox of bonuses."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Date,
    ForeignKey,
    Index,
    String,
    Table,
    UniqueConstraint,
    event,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UsdCents, UtcDateTime, append_only_guards, by_value
from hits.models import Assignment, Example, Hit, HitBatch, Round, Worker
from hits.money import ZERO


class TransactionKind(StrEnum):
    """What a ledger transaction records."""

    REWARD = "reward"
    PROMISE = "promise"
    WITHDRAWAL = "withdrawal"
    BONUS = "bonus"
    DEPOSIT = "deposit"
    BUDGET = "budget"
    RESERVATION = "reservation"
    RELEASE = "release"
    COMPENSATION = "compensation"
    REVERSAL = "reversal"


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


#: Tells the postings of the marketplaces' accounts; word for word what the index holds, which serves no other.
LEFT: Final = text("substr(account, 1, 12) = 'marketplace:'")


class Posting(Base):
    """One line of a transaction: cents that enter (positive) or leave (negative) an account."""

    __tablename__ = "posting"
    __table_args__ = (
        CheckConstraint("cents != 0", name="cents"),
        # What a round has cost is added up from it without reading a row.
        Index("ix_posting_left", "transaction_id", "cents", sqlite_where=LEFT, postgresql_where=LEFT),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    transaction_id: Mapped[int] = mapped_column(ForeignKey("ledger_transaction.id"), index=True)
    account: Mapped[str] = mapped_column(String(240), index=True)
    cents: Mapped[int] = mapped_column(BigInteger)


_APPEND_ONLY: Final = "the ledger is append-only: book a correction instead"

#: The statements, by database, that forbid changing the ledger; a migration runs them after creating the tables.
LEDGER_GUARDS: Final[dict[str, tuple[str, ...]]] = append_only_guards(
    "ledger_transaction", "posting", function="forbid_ledger_change", message=_APPEND_ONLY
)

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


class BudgetScope(StrEnum):
    """What a budget or a cap is for.

    project, round and day guard the money: rewards, bonuses and fees, from the moment they are reserved. worker,
    worker_day and assignment cap what one person gets: worker all pay, worker_day and assignment the bonuses.
    """

    PROJECT = "project"
    ROUND = "round"
    DAY = "day"
    WORKER = "worker"
    WORKER_DAY = "worker_day"
    ASSIGNMENT = "assignment"


class Budget(Base):
    """The most that may be committed. The row of the project is also the lock that every commitment takes first."""

    __tablename__ = "budget"
    __table_args__ = (UniqueConstraint("scope", "key"), CheckConstraint("most >= 0", name="most"))

    id: Mapped[int] = mapped_column(primary_key=True)
    scope: Mapped[BudgetScope] = mapped_column(by_value(BudgetScope))
    #: Which one: a round's code, a day, a pseudonym; empty for the project, and for each day or worker without its own.
    key: Mapped[str] = mapped_column(String(80), default="")
    #: None for no limit.
    most: Mapped[Decimal | None] = mapped_column(UsdCents())
    set_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: Raised by every change, so that each has its own key in the ledger.
    changes: Mapped[int] = mapped_column(default=0)


class Reservation(Base):
    """What is set aside for a batch: its worst case from before its first HIT exists, and what is owed on top later.

    The constraint is what makes a bonus that nobody reserved impossible.
    """

    __tablename__ = "reservation"
    __table_args__ = (
        CheckConstraint(
            "promised >= 0 AND spent >= 0 AND released >= 0 AND moved_out >= 0 AND moved_in >= 0"
            " AND bonuses >= 0 AND validation >= 0 AND validation_each >= 0",
            name="amounts",
        ),
        CheckConstraint("promised + spent + released + moved_out + bonuses + validation <= held", name="within"),
        CheckConstraint("moved_in <= held", name="moved_in"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    batch_id: Mapped[int] = mapped_column(ForeignKey("hit_batch.id"), unique=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    #: The UTC day whose budget it counts against.
    day: Mapped[date] = mapped_column(Date(), index=True)
    #: All that was ever set aside.
    held: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    #: Of that, what came from reservations of the same round and counts against their days.
    moved_in: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    moved_out: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    #: For bonuses that are owed and not paid, with their fees.
    promised: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    spent: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    #: Given back.
    released: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    #: Of what is free, what is kept for bonuses that may still be earned.
    bonuses: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    #: Of what is free, what is kept to have the work validated, and how much of it one assignment needs.
    validation: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    validation_each: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
    #: Raised by every change that is booked, so that each has its own key in the ledger.
    changes: Mapped[int] = mapped_column(default=0)
    #: When nothing more could come of its batch; a later cost opens it again.
    closed_at: Mapped[datetime | None] = mapped_column(UtcDateTime())

    batch: Mapped[HitBatch] = relationship()
    round: Mapped[Round] = relationship()

    @property
    def open(self) -> Decimal:
        """What is set aside and neither spent nor given back nor moved on."""
        return self.held - self.spent - self.released - self.moved_out

    @property
    def free(self) -> Decimal:
        """What of that is neither promised nor kept for bonuses or validation: it is there for rewards."""
        return self.open - self.promised - self.bonuses - self.validation


class PayoutState(StrEnum):
    """planned -> approved -> sending (the call may have happened) -> sent -> confirmed (the list shows it).

    doubtful: no clear answer came, so it is looked up before anything else. failed: refused, with the cause.
    held: flagged, waits for the requester. not_due: stopped being owed before it was sent. not_submitted: the
    assignment it hangs on was not sent in yet. no_budget: no budget or cap has room for it, so it is not promised yet.
    needs_compensation: no assignment can carry it (any more) -> compensating (a HIT for its worker exists) ->
    compensated.
    """

    PLANNED = "planned"
    APPROVED = "approved"
    SENDING = "sending"
    SENT = "sent"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    DOUBTFUL = "doubtful"
    HELD = "held"
    NOT_DUE = "not_due"
    NOT_SUBMITTED = "not_submitted"
    NO_BUDGET = "no_budget"
    NEEDS_COMPENSATION = "needs_compensation"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"


#: The marketplace has paid it as a bonus.
PAID = frozenset({PayoutState.SENT, PayoutState.CONFIRMED})
#: Promised and not known to be paid.
OWED = frozenset(
    {
        PayoutState.PLANNED,
        PayoutState.APPROVED,
        PayoutState.SENDING,
        PayoutState.DOUBTFUL,
        PayoutState.FAILED,
        PayoutState.HELD,
        PayoutState.NOT_SUBMITTED,
        PayoutState.NEEDS_COMPENSATION,
        PayoutState.COMPENSATING,
    }
)
#: The marketplace may have paid it; nobody may send it again before looking.
UNSURE = frozenset({PayoutState.SENDING, PayoutState.DOUBTFUL})
#: Nothing is promised: there is no room for it, or it is owed no more.
NOT_PROMISED = frozenset({PayoutState.NOT_DUE, PayoutState.NO_BUDGET})


class Payout(Base):
    """One bonus that is owed. The row and its request token exist before the marketplace is asked to pay."""

    __tablename__ = "payout"
    __table_args__ = (
        UniqueConstraint("rule", "subject"),
        CheckConstraint("amount > 0", name="amount"),
        CheckConstraint("state NOT IN ('sent', 'confirmed') OR sent_at IS NOT NULL", name="sent_has_time"),
        CheckConstraint("state NOT IN ('failed', 'doubtful') OR cause IS NOT NULL", name="trouble_has_cause"),
        CheckConstraint(
            "state NOT IN ('approved', 'sending', 'sent', 'confirmed', 'failed', 'doubtful', 'compensating',"
            " 'compensated') OR approved_by IS NOT NULL",
            name="nothing_moves_unapproved",
        ),
        CheckConstraint(
            "assignment_id IS NOT NULL OR state IN ('needs_compensation', 'compensating', 'compensated', 'not_due',"
            " 'no_budget')",
            name="paid_on_an_assignment",
        ),
        Index("ix_payout_state", "state"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    #: Stands at the end of the reason, by which the payment is found in the marketplace's list.
    reference: Mapped[str] = mapped_column(String(20), unique=True)
    rule: Mapped[str] = mapped_column(String(40))
    #: What the rule owes it for, by a stable key such as "example:12": once for each.
    subject: Mapped[str] = mapped_column(String(80))
    #: The example that it is for, if it is for one.
    example_id: Mapped[int | None] = mapped_column(ForeignKey("example.id"), index=True)
    round_id: Mapped[int] = mapped_column(ForeignKey("round.id"), index=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    #: What it is paid on; None for somebody who has none and can only be compensated.
    assignment_id: Mapped[int | None] = mapped_column(ForeignKey("assignment.id"), index=True)
    #: The batch whose reservation it is owed within.
    batch_id: Mapped[int] = mapped_column(ForeignKey("hit_batch.id"), index=True)
    #: The Requester API endpoint that the assignment lives on.
    endpoint: Mapped[str] = mapped_column(String(200))
    amount: Mapped[Decimal] = mapped_column(UsdCents())
    #: What its batch's reservation keeps for it, fee included; 0.00 while it is not promised and once it is paid.
    kept: Mapped[Decimal] = mapped_column(UsdCents(), default=ZERO)
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
    #: The member of staff who asked for it; None when a rule did.
    requested_by: Mapped[str | None] = mapped_column(String(80))
    #: Who let it be paid: names, or the limit below which nobody is asked.
    approved_by: Mapped[str | None] = mapped_column(String(200))
    approved_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    planned_at: Mapped[datetime] = mapped_column(UtcDateTime())
    #: When it was last promised; None while it never was.
    promised_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    claimed_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    confirmed_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    #: The HIT that pays it when no bonus can.
    compensation_hit_id: Mapped[int | None] = mapped_column(ForeignKey("hit.id"), unique=True)

    example: Mapped[Example | None] = relationship()
    round: Mapped[Round] = relationship()
    worker: Mapped[Worker] = relationship()
    assignment: Mapped[Assignment | None] = relationship()
    compensation_hit: Mapped[Hit | None] = relationship()


class PayoutApproval(Base):
    """One person's word that a payout may be paid. Rows are only ever added; one that was withdrawn needs new ones."""

    __tablename__ = "payout_approval"
    __table_args__ = (UniqueConstraint("payout_id", "promise_number", "staff_name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    payout_id: Mapped[int] = mapped_column(ForeignKey("payout.id"), index=True)
    promise_number: Mapped[int]
    staff_name: Mapped[str] = mapped_column(String(80))
    #: Of all that was approved: to whom, how much, for what.
    digest: Mapped[str] = mapped_column(String(64))
    at: Mapped[datetime] = mapped_column(UtcDateTime())

    payout: Mapped[Payout] = relationship()


_APPROVALS_STAY: Final = "approvals are append-only: a word that was given stays"

#: The same for approvals as LEDGER_GUARDS for the ledger.
APPROVAL_GUARDS: Final[dict[str, tuple[str, ...]]] = append_only_guards(
    "payout_approval", function="forbid_approval_change", message=_APPROVALS_STAY
)


@event.listens_for(PayoutApproval.__table__, "after_create")
def _guard_approvals(_table: Table, connection: Any, **_options: Any) -> None:
    for statement in APPROVAL_GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)
