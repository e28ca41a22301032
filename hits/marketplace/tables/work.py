"""Assignments, bonuses and reviews."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    Text,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import LIVE, REASONED, SUBMITTED, Base, SequenceNumber


class AssignmentRow(Base):
    """One worker's work on one HIT; `hit_type_id` is the HIT's, which cannot change once somebody has accepted it."""

    __tablename__ = "mp_assignment"
    __table_args__ = (
        Index(
            "uq_mp_assignment_hit_id_worker_id",
            "hit_id",
            "worker_id",
            unique=True,
            sqlite_where=LIVE,
            postgresql_where=LIVE,
        ),
        Index("ix_mp_assignment_reasoned", "seq", sqlite_where=REASONED, postgresql_where=REASONED),
        Index(None, "state", "deadline"),
        Index(None, "state", "auto_approval_at"),
        Index(None, "hit_id", "submitted_at", "seq"),
        Index(None, "worker_id", "submitted_at", "seq"),
        Index(None, "hit_type_id", "submitted_at", "seq"),
        Index(
            "ix_mp_assignment_review",
            "requester_id",
            "auto_approval_at",
            "seq",
            sqlite_where=SUBMITTED,
            postgresql_where=SUBMITTED,
        ),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    assignment_id: Mapped[str] = mapped_column(String(64), unique=True)
    hit_id: Mapped[str] = mapped_column(ForeignKey("mp_hit.hit_id"))
    hit_type_id: Mapped[str] = mapped_column(String(64), server_default=text("''"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"))
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    state: Mapped[str] = mapped_column(String(16))
    accepted_at: Mapped[datetime]
    deadline: Mapped[datetime]
    submitted_at: Mapped[datetime | None]
    auto_approval_at: Mapped[datetime | None]
    approved_at: Mapped[datetime | None]
    rejected_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    answer: Mapped[str | None] = mapped_column(Text)
    feedback: Mapped[str | None] = mapped_column(Text)
    return_reason: Mapped[str | None] = mapped_column(Text)


class BonusRow(Base):
    """One bonus payment."""

    __tablename__ = "mp_bonus"
    __table_args__ = (CheckConstraint("amount_cents > 0 AND fee_cents >= 0", name="positive"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"), index=True)
    hit_id: Mapped[str] = mapped_column(ForeignKey("mp_hit.hit_id"), index=True)
    assignment_id: Mapped[str] = mapped_column(ForeignKey("mp_assignment.assignment_id"), index=True)
    amount_cents: Mapped[int] = mapped_column(BigInteger)
    fee_cents: Mapped[int] = mapped_column(BigInteger)
    reason: Mapped[str] = mapped_column(Text)
    granted_at: Mapped[datetime]


class ReviewEntryRow(Base):
    """One result or action of a review policy; an action's target is the subject, its outcome the value."""

    __tablename__ = "mp_review_entry"
    __table_args__ = (Index(None, "hit_id", "seq"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    hit_id: Mapped[str] = mapped_column(ForeignKey("mp_hit.hit_id"))
    level: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(8))
    action_id: Mapped[str] = mapped_column(String(64))
    subject_id: Mapped[str] = mapped_column(String(64))
    subject_type: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(64))
    value: Mapped[str] = mapped_column(Text)
    question_id: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str | None] = mapped_column(String(16))
    error_code: Mapped[str | None] = mapped_column(String(64))
    at: Mapped[datetime]
