"""HIT types, HITs, layouts and request tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import DISPOSABLE, LISTED, NOT_DELETED, Base, SequenceNumber


class HitTypeRow(Base):
    """A HIT type, found again by the fingerprint of its canonical parts; it is one HIT group for workers."""

    __tablename__ = "mp_hit_type"
    __table_args__ = (
        Index(
            "uq_mp_hit_type_requester_id_fingerprint",
            "requester_id",
            "fingerprint",
            unique=True,
            sqlite_where=NOT_DELETED,
            postgresql_where=NOT_DELETED,
        ),
        CheckConstraint("reward_cents >= 0", name="reward_not_negative"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    hit_type_id: Mapped[str] = mapped_column(String(64), unique=True)
    hit_group_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    fingerprint: Mapped[str] = mapped_column(String(64))
    title: Mapped[str] = mapped_column(Text)
    description: Mapped[str] = mapped_column(Text)
    keywords: Mapped[str] = mapped_column(Text)
    reward_cents: Mapped[int] = mapped_column(BigInteger)
    duration_seconds: Mapped[int] = mapped_column(BigInteger)
    auto_approval_seconds: Mapped[int] = mapped_column(BigInteger)
    requirements: Mapped[list[dict[str, Any]]]
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class HitRow(Base):
    """A HIT with its counters; `is_expired` says that its expiry has been settled and its free places released.

    `missing_elements` names what its page needs of Amazon's elements and cannot be shown, with spaces between.
    """

    __tablename__ = "mp_hit"
    __table_args__ = (
        CheckConstraint("pending >= 0 AND submitted >= 0 AND completed >= 0", name="counters_not_negative"),
        CheckConstraint("pending + submitted + completed <= max_assignments", name="not_overfull"),
        Index("ix_mp_hit_listed", "requester_id", "seq", sqlite_where=LISTED, postgresql_where=LISTED),
        Index(None, "requester_id", "status", "seq"),
        Index(None, "hit_type_id", "status", "created_at", "seq"),
        Index("ix_mp_hit_disposable", "created_at", sqlite_where=DISPOSABLE, postgresql_where=DISPOSABLE),
        Index(None, "is_expired", "expires_at"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    hit_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    hit_type_id: Mapped[str] = mapped_column(ForeignKey("mp_hit_type.hit_type_id"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    is_expired: Mapped[bool] = mapped_column(default=False)
    status: Mapped[str] = mapped_column(String(16))
    max_assignments: Mapped[int] = mapped_column(BigInteger)
    pending: Mapped[int] = mapped_column(BigInteger, default=0)
    submitted: Mapped[int] = mapped_column(BigInteger, default=0)
    completed: Mapped[int] = mapped_column(BigInteger, default=0)
    reward_cents: Mapped[int] = mapped_column(BigInteger)
    fee_cents: Mapped[int] = mapped_column(BigInteger)
    question: Mapped[str] = mapped_column(Text)
    question_kind: Mapped[str] = mapped_column(String(24), server_default="ExternalQuestion")
    external_url: Mapped[str] = mapped_column(Text)
    frame_height: Mapped[int]
    annotation: Mapped[str | None] = mapped_column(Text)
    layout_id: Mapped[str | None] = mapped_column(String(64))
    missing_elements: Mapped[str | None] = mapped_column(Text)
    taken_down_at: Mapped[datetime | None]
    assignment_policy: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    hit_policy: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    @property
    def available(self) -> int:
        """The places that a worker could take now."""
        if self.is_expired or self.status == "Disposed":
            return 0
        return self.max_assignments - self.pending - self.submitted - self.completed

    @property
    def unit_cents(self) -> int:
        """What one assignment costs the requester when it is approved."""
        return self.reward_cents + self.fee_cents

    @property
    def held_cents(self) -> int:
        """What this HIT holds of its requester's money: every place that can still be approved."""
        return (self.available + self.pending + self.submitted) * self.unit_cents


class HitLayoutRow(Base):
    """A page with placeholders that HITs are made from; it never changes, since HITs name it."""

    __tablename__ = "mp_hit_layout"

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    layout_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    html: Mapped[str] = mapped_column(Text)
    frame_height: Mapped[int]
    created_at: Mapped[datetime]


class RequestTokenRow(Base):
    """A request token that has been used; `result` names what the first request made."""

    __tablename__ = "mp_request_token"
    __table_args__ = (Index(None, "requester_id", "created_at"),)

    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), primary_key=True)
    operation: Mapped[str] = mapped_column(String(64), primary_key=True)
    token: Mapped[str] = mapped_column(String(128), primary_key=True)
    created_at: Mapped[datetime]
    result: Mapped[str] = mapped_column(String(64), default="")
