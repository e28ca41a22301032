"""What people agreed to, which disturbing texts they were shown, and work that was rejected."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import CheckConstraint, ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from hits.db import Base, UtcDateTime, by_value
from hits.models.people import Worker
from hits.models.work import Assignment
from hits.states import BadFaith, RejectionState


class ConsentText(Base):
    """One version of what people are asked to agree to. The row's number is the version; a text never changes."""

    __tablename__ = "consent_text"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    body: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())


class Consent(Base):
    """A worker has agreed to a version of the text."""

    __tablename__ = "consent"
    __table_args__ = (UniqueConstraint("worker_id", "consent_text_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    consent_text_id: Mapped[int] = mapped_column(ForeignKey("consent_text.id"), index=True)
    given_at: Mapped[datetime] = mapped_column(UtcDateTime())

    text: Mapped[ConsentText] = relationship()


class Exposure(Base):
    """A worker chose to see a text that may disturb. ``number`` counts the worker's texts of the UTC day."""

    __tablename__ = "exposure"
    __table_args__ = (
        UniqueConstraint("assignment_id", "subject"),
        # Two windows can't take the same number, so that the day's cap holds whatever locks are there.
        UniqueConstraint("worker_id", "day", "number"),
        CheckConstraint("number >= 1", name="number_from_one"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"))
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"))
    #: Which text: "example:12" or "context:5".
    subject: Mapped[str] = mapped_column(String(40))
    day: Mapped[date]
    number: Mapped[int]
    shown_at: Mapped[datetime] = mapped_column(UtcDateTime())


class Rejection(Base):
    """Work that a member of staff rejected as done in bad faith. The row exists before the marketplace is told.

    An assignment is rejected at most once: undone, it is approved, and that is final.
    """

    __tablename__ = "rejection"
    __table_args__ = (
        CheckConstraint("state = 'sending' OR rejected_at IS NOT NULL", name="rejected_has_time"),
        CheckConstraint("(state = 'undone') = (undone_at IS NOT NULL)", name="undone_has_time"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    assignment_id: Mapped[int] = mapped_column(ForeignKey("assignment.id"), unique=True)
    worker_id: Mapped[int] = mapped_column(ForeignKey("worker.id"), index=True)
    batch_id: Mapped[int] = mapped_column(ForeignKey("hit_batch.id"), index=True)
    category: Mapped[BadFaith] = mapped_column(by_value(BadFaith))
    #: What the worker is told.
    words: Mapped[str] = mapped_column(String(1000))
    staff_name: Mapped[str] = mapped_column(String(80))
    state: Mapped[RejectionState] = mapped_column(by_value(RejectionState), default=RejectionState.SENDING)
    decided_at: Mapped[datetime] = mapped_column(UtcDateTime())
    rejected_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    undone_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    undone_by: Mapped[str | None] = mapped_column(String(80))
    #: Why; about a person, and so not in the audit trail, which forgets nothing.
    undone_reason: Mapped[str | None] = mapped_column(String(500))

    assignment: Mapped[Assignment] = relationship()
    worker: Mapped[Worker] = relationship()
