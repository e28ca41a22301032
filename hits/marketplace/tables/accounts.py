"""Requesters, their money and their keys."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    LargeBinary,
    String,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import Base, SequenceNumber


class RequesterRow(Base):
    """A requester with the totals of its account; what is available is deposited - held - spent."""

    __tablename__ = "mp_requester"
    __table_args__ = (
        CheckConstraint("held_cents >= 0", name="held_not_negative"),
        CheckConstraint("deposited_cents - held_cents - spent_cents >= 0", name="not_overdrawn"),
    )

    requester_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str | None] = mapped_column(String(320), unique=True)
    password_hash: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[datetime]
    deposited_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    held_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    spent_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    disabled_at: Mapped[datetime | None]
    session_number: Mapped[int] = mapped_column(default=0, server_default="0")

    @property
    def available_cents(self) -> int:
        """The cents that new holds and payments can use."""
        return self.deposited_cents - self.held_cents - self.spent_cents


class AccountEntryRow(Base):
    """One change of a requester's account; rows are only ever added."""

    __tablename__ = "mp_account_entry"

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), index=True)
    at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(32))
    deposited_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    held_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    spent_cents: Mapped[int] = mapped_column(BigInteger, default=0)
    hit_id: Mapped[str | None] = mapped_column(String(64))
    assignment_id: Mapped[str | None] = mapped_column(String(64))
    note: Mapped[str] = mapped_column(Text, default="")


class AccessKeyRow(Base):
    """An access key; SigV4 needs the secret back, so it is encrypted and not hashed."""

    __tablename__ = "mp_access_key"

    access_key_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    requester_id: Mapped[str] = mapped_column(ForeignKey("mp_requester.requester_id"), index=True)
    encrypted_secret: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
