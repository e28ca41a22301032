"""What workers write: messages to requesters, and reports of HITs to the operator."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import OPEN_REPORT, Base, SequenceNumber


class RequesterMessageRow(Base):
    """A message to a requester, from a worker or (without one) from the operator, usually about a HIT."""

    __tablename__ = "mp_requester_message"
    __table_args__ = (
        Index(None, "requester_id", "seq"),
        Index(None, "requester_id", "answered_at", "seq"),
        Index(None, "worker_id", "sent_at"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    message_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    worker_id: Mapped[str | None] = mapped_column(ForeignKey("mp_worker.worker_id"))
    hit_id: Mapped[str | None] = mapped_column(ForeignKey("mp_hit.hit_id"))
    assignment_id: Mapped[str | None] = mapped_column(ForeignKey("mp_assignment.assignment_id"))
    sent_at: Mapped[datetime]
    text: Mapped[str] = mapped_column(Text)
    answered_at: Mapped[datetime | None]


class HitReportRow(Base):
    """A worker's report of a HIT; at most one of each worker and HIT is open."""

    __tablename__ = "mp_hit_report"
    __table_args__ = (
        Index(None, "closed_at", "seq"),
        Index(None, "worker_id", "reported_at"),
        Index(
            "uq_mp_hit_report_open",
            "hit_id",
            "worker_id",
            unique=True,
            sqlite_where=OPEN_REPORT,
            postgresql_where=OPEN_REPORT,
        ),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    report_id: Mapped[str] = mapped_column(String(64), unique=True)
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"))
    hit_id: Mapped[str] = mapped_column(ForeignKey("mp_hit.hit_id"))
    assignment_id: Mapped[str | None] = mapped_column(ForeignKey("mp_assignment.assignment_id"))
    reason: Mapped[str] = mapped_column(String(32))
    text: Mapped[str] = mapped_column(Text)
    reported_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    note: Mapped[str | None] = mapped_column(Text)
