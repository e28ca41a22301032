"""Workers, invitations, blocks and messages."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import CONFIRMED, UNREAD, Base, SequenceNumber


class WorkerRow(Base):
    """A worker account with what the system qualifications need to know.

    A confirmed e-mail address belongs to one account. A new `session_number` ends every session of before.
    """

    __tablename__ = "mp_worker"
    __table_args__ = (
        Index(
            "uq_mp_worker_email_key",
            "email_key",
            unique=True,
            sqlite_where=CONFIRMED,
            postgresql_where=CONFIRMED,
        ),
    )

    worker_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_name: Mapped[str] = mapped_column(String(64))
    user_name_key: Mapped[str] = mapped_column(String(64), unique=True)
    password_hash: Mapped[str] = mapped_column(String(255))
    created_at: Mapped[datetime]
    country: Mapped[str | None] = mapped_column(String(2))
    subdivision: Mapped[str | None] = mapped_column(String(2))
    is_adult: Mapped[bool] = mapped_column(default=False)
    is_master: Mapped[bool] = mapped_column(default=False)
    disabled_at: Mapped[datetime | None]
    payout_details: Mapped[bytes | None] = mapped_column(LargeBinary)
    email: Mapped[str | None] = mapped_column(String(320))
    email_key: Mapped[str | None] = mapped_column(String(320))
    email_confirmed_at: Mapped[datetime | None]
    session_number: Mapped[int] = mapped_column(default=0, server_default="0")
    language: Mapped[str | None] = mapped_column(String(16))


class InvitationRow(Base):
    """A code that lets one person register."""

    __tablename__ = "mp_invitation"

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    code: Mapped[str] = mapped_column(String(64), unique=True)
    note: Mapped[str] = mapped_column(Text)
    grants: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    worker_id: Mapped[str | None] = mapped_column(ForeignKey("mp_worker.worker_id"))


class WorkerBlockRow(Base):
    """A worker whom one requester takes no work from."""

    __tablename__ = "mp_worker_block"
    __table_args__ = (UniqueConstraint("requester_id", "worker_id"),)

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"))
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"), index=True)
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class MessageRow(Base):
    """A message to a worker, shown on the worker site; one without a requester is the operator's."""

    __tablename__ = "mp_message"
    __table_args__ = (
        Index(None, "worker_id", "seq"),
        Index("ix_mp_message_unread", "worker_id", sqlite_where=UNREAD, postgresql_where=UNREAD),
        Index(None, "question_id"),
    )

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    worker_id: Mapped[str] = mapped_column(ForeignKey("mp_worker.worker_id"))
    requester_id: Mapped[str | None] = mapped_column(ForeignKey("mp_requester.requester_id"))
    question_id: Mapped[str | None] = mapped_column(ForeignKey("mp_requester_message.message_id"))
    sent_at: Mapped[datetime]
    subject: Mapped[str] = mapped_column(Text)
    text: Mapped[str] = mapped_column(Text)
    read_at: Mapped[datetime | None]
