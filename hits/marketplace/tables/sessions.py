"""Sessions that were ended before their cookie was."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import Base


class EndedSessionRow(Base):
    """A session that somebody ended; the row can go once no cookie of that session is accepted by its age."""

    __tablename__ = "mp_ended_session"

    session_key: Mapped[str] = mapped_column(String(64), primary_key=True)
    ended_at: Mapped[datetime]
    forget_at: Mapped[datetime] = mapped_column(index=True)
