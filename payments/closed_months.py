"""The months whose books are closed: their table, and the triggers by which no posting reaches a closed month."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import JSON, CheckConstraint, ForeignKey, String, Table, event, func, select
from sqlalchemy.orm import Mapped, Session, mapped_column

import payments.models  # noqa: F401 - the table that this one refers to
from hits.db import Base, UtcDateTime


class MonthClose(Base):
    """A closed month: its figures as they were then, and the hash that proves its postings are the same today."""

    __tablename__ = "month_close"
    __table_args__ = (
        CheckConstraint("length(month) = 7", name="month"),
        CheckConstraint("length(sha256) = 64 AND length(chain_sha256) = 64", name="hashes"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    #: As ``2026-11``.
    month: Mapped[str] = mapped_column(String(7), unique=True)
    #: The first moment that no longer belongs to it; nothing is booked before the latest of these.
    ends_at: Mapped[datetime] = mapped_column(UtcDateTime(), unique=True)
    closed_at: Mapped[datetime] = mapped_column(UtcDateTime())
    closed_by: Mapped[str] = mapped_column(String(80))
    transactions: Mapped[int] = mapped_column()
    postings: Mapped[int] = mapped_column()
    #: The last posting of the month, None for a month without any.
    last_posting_id: Mapped[int | None] = mapped_column(ForeignKey("posting.id"))
    #: Totals and sums by round, as text in dollars.
    figures: Mapped[dict[str, Any]] = mapped_column(JSON)
    #: Of the month's ledger as CSV, as ``sha256sum`` prints it for the file that finance downloads.
    sha256: Mapped[str] = mapped_column(String(64))
    #: Of the chain of the month before and this month's hash, so that no month can be exchanged alone.
    chain_sha256: Mapped[str] = mapped_column(String(64))


_CLOSED: Final = "this month is closed: book it in an open one"
_KEPT: Final = "a closed month stays closed"
_END: Final = "(SELECT max(ends_at) FROM month_close)"

#: The statements, by database, that keep closed months as they are; a migration runs them after creating the table.
CLOSED_MONTH_GUARDS: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": (
        *(
            f"CREATE TRIGGER month_close_no_{verb} BEFORE {verb.upper()} ON month_close "
            f"BEGIN SELECT RAISE(ABORT, '{_KEPT}'); END"
            for verb in ("update", "delete")
        ),
        "CREATE TRIGGER ledger_transaction_open_month BEFORE INSERT ON ledger_transaction "
        f"WHEN NEW.at < {_END} BEGIN SELECT RAISE(ABORT, '{_CLOSED}'); END",
        "CREATE TRIGGER posting_open_month BEFORE INSERT ON posting "  # noqa: S608 - fixed words
        f"WHEN (SELECT at FROM ledger_transaction WHERE id = NEW.transaction_id) < {_END} "
        f"BEGIN SELECT RAISE(ABORT, '{_CLOSED}'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION keep_closed_month() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_KEPT}'; END $$",
        "CREATE TRIGGER month_close_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON month_close "
        "FOR EACH STATEMENT EXECUTE FUNCTION keep_closed_month()",
        # The code of a broken constraint, as SQLite's ABORT gives it too.
        "CREATE OR REPLACE FUNCTION forbid_closed_month() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF NEW.at < {_END} "
        f"THEN RAISE EXCEPTION '{_CLOSED}' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
        "RETURN NEW; END $$",
        "CREATE TRIGGER ledger_transaction_open_month BEFORE INSERT ON ledger_transaction "
        "FOR EACH ROW EXECUTE FUNCTION forbid_closed_month()",
        "CREATE OR REPLACE FUNCTION forbid_closed_posting() RETURNS trigger LANGUAGE plpgsql AS "  # noqa: S608 - as above
        f"$$ BEGIN IF (SELECT at FROM ledger_transaction WHERE id = NEW.transaction_id) < {_END} "
        f"THEN RAISE EXCEPTION '{_CLOSED}' USING ERRCODE = 'integrity_constraint_violation'; END IF; "
        "RETURN NEW; END $$",
        "CREATE TRIGGER posting_open_month BEFORE INSERT ON posting "
        "FOR EACH ROW EXECUTE FUNCTION forbid_closed_posting()",
    ),
}

#: What takes the guards away again, for a migration's way back.
CLOSED_MONTH_GUARDS_DROPPED: Final[dict[str, tuple[str, ...]]] = {
    "sqlite": tuple(
        f"DROP TRIGGER IF EXISTS {name}"
        for name in (
            "month_close_no_update",
            "month_close_no_delete",
            "ledger_transaction_open_month",
            "posting_open_month",
        )
    ),
    "postgresql": (
        "DROP TRIGGER IF EXISTS month_close_kept ON month_close",
        "DROP TRIGGER IF EXISTS ledger_transaction_open_month ON ledger_transaction",
        "DROP TRIGGER IF EXISTS posting_open_month ON posting",
        "DROP FUNCTION IF EXISTS keep_closed_month()",
        "DROP FUNCTION IF EXISTS forbid_closed_month()",
        "DROP FUNCTION IF EXISTS forbid_closed_posting()",
    ),
}


@event.listens_for(MonthClose.__table__, "after_create")
def _guard_closed_months(_table: Table, connection: Any, **_options: Any) -> None:
    """Put the guards on a database that ``create_all`` makes; the key to posting lets this table come after it."""
    for statement in CLOSED_MONTH_GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)


def closed_until(session: Session) -> datetime | None:
    """Return the first moment that may still be booked, None while no month is closed."""
    return session.scalar(select(func.max(MonthClose.ends_at)))


def in_open_month(session: Session, at: datetime) -> datetime:
    """Return when an event of this time is booked: then, or at the start of the first month that is not closed."""
    until = closed_until(session)
    return at if until is None else max(at, until)
