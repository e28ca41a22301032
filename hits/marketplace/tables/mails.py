"""The outbox of mail to people."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import Base, SequenceNumber


class MailRow(Base):
    """A mail that is to be written and sent; the links in it are made when it goes out and are stored nowhere.

    `counts_for` is the account or address whose mails of a day are limited.
    """

    __tablename__ = "mp_mail"
    __table_args__ = (Index(None, "state", "next_attempt_at"), Index(None, "counts_for", "recorded_at"))

    seq: Mapped[int] = mapped_column(SequenceNumber, primary_key=True)
    mail_id: Mapped[str] = mapped_column(String(64), unique=True)
    kind: Mapped[str] = mapped_column(String(32))
    address: Mapped[str] = mapped_column(String(320))
    counts_for: Mapped[str | None] = mapped_column(String(320))
    language: Mapped[str | None] = mapped_column(String(16))
    details: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(String(16))
    attempts: Mapped[int] = mapped_column(default=0)
    next_attempt_at: Mapped[datetime]
    recorded_at: Mapped[datetime]
    give_up_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    last_error: Mapped[str | None] = mapped_column(Text)
