"""What is open of each HIT type."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    String,
)
from sqlalchemy.orm import Mapped, mapped_column

from hits.marketplace.tables._base import Base


class HitGroupRow(Base):
    """What workers find of a HIT type: its HITs with a place left, and how long one takes, as last measured.

    The counts belong to the HITs' own rows and change with them in one transaction; HITs that no site can show are
    not among them. `is_open` says that there are any. It stands apart from them, so that PostgreSQL can change a count
    without touching an index.
    """

    __tablename__ = "mp_hit_group"
    __table_args__ = (CheckConstraint("open_hits >= 0 AND open_html_hits >= 0", name="counts_not_negative"),)

    hit_type_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("mp_hit_type.hit_type_id", ondelete="CASCADE"), primary_key=True
    )
    is_open: Mapped[bool] = mapped_column(default=False, index=True)
    open_hits: Mapped[int] = mapped_column(BigInteger, default=0)
    open_html_hits: Mapped[int] = mapped_column(BigInteger, default=0)
    work_seconds: Mapped[int | None] = mapped_column(BigInteger)
