"""What every table of the marketplace stands on; its metadata is apart from every other model of the project."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Integer,
    MetaData,
    TypeDecorator,
    text,
)
from sqlalchemy.orm import DeclarativeBase

SequenceNumber = BigInteger().with_variant(Integer, "sqlite")
LIVE_STATES: Final = ("Accepted", "Submitted", "Approved", "Rejected")
LIVE = text("state IN ('Accepted', 'Submitted', 'Approved', 'Rejected')")
SUBMITTED = text("state = 'Submitted'")
CONFIRMED = text("email_confirmed_at IS NOT NULL")
NOT_DELETED = text("deleted_at IS NULL")
WAITING = text("state = 'Pending'")
UNREAD = text("read_at IS NULL")
LISTED = text("status <> 'Disposed'")
DISPOSABLE = text("status IN ('Reviewable', 'Reviewing') AND submitted = 0")
OPEN_REPORT = text("closed_at IS NULL")
REASONED = text("return_reason IS NOT NULL")


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC datetimes; SQLite, which knows no zone, keeps them as naive UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive time, which would mean something else on every machine."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone; pass an aware datetime.")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return aware UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of the marketplace's tables."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: UtcDateTime(),
        dict[str, Any]: JSON(),
        list[dict[str, Any]]: JSON(),
    }
