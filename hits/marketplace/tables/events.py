"""Notification settings, the outbox of events, and the clock."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    String,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import Base, SequenceNumber


class NotificationRow(Base):
    """Where the events of one HIT type go."""

    __tablename__ = "mp_notification"

    hit_type_id: Mapped[str] = mapped_column(ForeignKey("mp_hit_type.hit_type_id"), primary_key=True)
    transport: Mapped[str] = mapped_column(String(16))
    destination: Mapped[str] = mapped_column(Text)
    event_types: Mapped[dict[str, Any]]
    is_active: Mapped[bool]


class EventRow(Base):
    """An event on its way out; what has the same queue and destination goes out in order."""

    __tablename__ = "mp_event"
    __table_args__ = (
        Index(None, "state", "next_attempt_at"),
        Index(None, "queue", "state", "seq"),
        Index(None, "requester_id", "hit_id", "recorded_at"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    document_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    queue: Mapped[str] = mapped_column(String(64))
    event_type: Mapped[str] = mapped_column(String(32))
    at: Mapped[datetime]
    recorded_at: Mapped[datetime]
    hit_type_id: Mapped[str] = mapped_column(String(64))
    hit_id: Mapped[str] = mapped_column(String(64))
    assignment_id: Mapped[str | None] = mapped_column(String(64))
    transport: Mapped[str] = mapped_column(String(16))
    destination: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(16))
    attempts: Mapped[int] = mapped_column(default=0)
    next_attempt_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)


class ClockRow(Base):
    """How far the clock of a test server has been moved; one row at most."""

    __tablename__ = "mp_clock"

    clock_id: Mapped[int] = mapped_column(primary_key=True)
    offset_microseconds: Mapped[int] = mapped_column(BigInteger)
