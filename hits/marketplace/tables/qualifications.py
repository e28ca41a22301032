"""Qualification types, what workers hold, and what they asked for."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import NOT_DELETED, WAITING, Base, SequenceNumber


class QualificationTypeRow(Base):
    """A qualification type of one requester."""

    __tablename__ = "mp_qualification_type"
    __table_args__ = (
        Index(
            "uq_mp_qualification_type_requester_id_name",
            "requester_id",
            "name",
            unique=True,
            sqlite_where=NOT_DELETED,
            postgresql_where=NOT_DELETED,
        ),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    qualification_type_id: Mapped[str] = mapped_column(String(64), unique=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    name: Mapped[str] = mapped_column(String(200))
    description: Mapped[str] = mapped_column(Text)
    keywords: Mapped[str | None] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    retry_delay_seconds: Mapped[int | None] = mapped_column(BigInteger)
    auto_granted: Mapped[bool] = mapped_column(default=False)
    auto_granted_value: Mapped[int | None]
    test: Mapped[str | None] = mapped_column(Text)
    test_duration_seconds: Mapped[int | None] = mapped_column(BigInteger)
    answer_key: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class QualificationRow(Base):
    """One worker's value of one qualification type."""

    __tablename__ = "mp_qualification"
    __table_args__ = (UniqueConstraint("qualification_type_id", "worker_id"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    qualification_type_id: Mapped[str] = mapped_column(ForeignKey("mp_qualification_type.qualification_type_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"), index=True)
    value: Mapped[int]
    status: Mapped[str] = mapped_column(String(16))
    granted_at: Mapped[datetime]


class QualificationRequestRow(Base):
    """A worker's request for a qualification; `test` and `answer_key` are those of the moment of the request."""

    __tablename__ = "mp_qualification_request"
    __table_args__ = (
        Index("ix_mp_qualification_request_type", "qualification_type_id", "state", "seq"),
        Index("ix_mp_qualification_request_worker", "worker_id", "qualification_type_id", "seq"),
        Index(
            "uq_mp_qualification_request_open",
            "qualification_type_id",
            "worker_id",
            unique=True,
            sqlite_where=WAITING,
            postgresql_where=WAITING,
        ),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    request_id: Mapped[str] = mapped_column(String(64), unique=True)
    qualification_type_id: Mapped[str] = mapped_column(ForeignKey("mp_qualification_type.qualification_type_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"))
    state: Mapped[str] = mapped_column(String(16))
    requested_at: Mapped[datetime]
    test: Mapped[str | None] = mapped_column(Text)
    answer_key: Mapped[str | None] = mapped_column(Text)
    deadline: Mapped[datetime | None]
    submitted_at: Mapped[datetime | None]
    answer: Mapped[str | None] = mapped_column(Text)
    decided_at: Mapped[datetime | None]
    value: Mapped[int | None]
    reason: Mapped[str | None] = mapped_column(Text)
