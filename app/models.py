"""The tables of the service itself; importing this module registers every table of dynahit."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any, Final

from sqlalchemy import JSON, String, Table, event
from sqlalchemy.orm import Mapped, mapped_column
from werkzeug.security import check_password_hash, generate_password_hash

import hits.models  # noqa: F401 - registers its tables
import payments.closed_months
import payments.models  # noqa: F401 - registers its tables
import qualification.limits_models
import qualification.models  # noqa: F401 - registers its tables
from hits.db import Base, UtcDateTime, append_only_guards

ROLES = ("requester", "finance")

#: With the cost that Werkzeug takes for it.
HASH_METHOD = "scrypt"
#: Checked when nobody has the name, so that the answer takes as long as for somebody.
_NOBODY = generate_password_hash("nobody has this password", method=HASH_METHOD)


class StaffUser(Base):
    """A person who runs collections or pays. ``roles`` names what the person may see and do."""

    __tablename__ = "staff_user"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(80), unique=True)
    password_hash: Mapped[str] = mapped_column(String(300))
    roles: Mapped[list[str]] = mapped_column(JSON)
    active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime())

    is_authenticated = True
    is_anonymous = False

    @property
    def is_active(self) -> bool:
        """Whether the person may sign in (Flask-Login)."""
        return self.active

    def get_id(self) -> str:
        """Return what the session cookie carries (Flask-Login): it changes with the password."""
        return f"{self.id}.{hashlib.sha256(self.password_hash.encode()).hexdigest()[:16]}"

    def set_password(self, password: str) -> None:
        """Store the password's hash."""
        self.password_hash = generate_password_hash(password, method=HASH_METHOD)


def password_fits(user: StaffUser | None, password: str) -> bool:
    """Tell whether the password is the active user's; takes as long when there is no user."""
    fits = check_password_hash(user.password_hash if user is not None else _NOBODY, password)
    return fits and user is not None and user.active


class AuditEntry(Base):
    """What a member of staff did and why. Rows are only ever added."""

    __tablename__ = "audit_entry"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime(), index=True)
    staff_name: Mapped[str] = mapped_column(String(80))
    action: Mapped[str] = mapped_column(String(60))
    subject: Mapped[str] = mapped_column(String(120))
    detail: Mapped[dict[str, Any]] = mapped_column(JSON)


_APPEND_ONLY: Final = "the audit trail is append-only"

#: The statements, by database, that forbid changing the audit trail; a migration runs them.
AUDIT_GUARDS: Final[dict[str, tuple[str, ...]]] = append_only_guards(
    "audit_entry", function="forbid_audit_change", message=_APPEND_ONLY
)


@event.listens_for(AuditEntry.__table__, "after_create")
def _guard_audit_trail(_table: Table, connection: Any, **_options: Any) -> None:
    """Put the guards on a database that ``create_all`` makes."""
    for statement in AUDIT_GUARDS[connection.dialect.name]:
        connection.exec_driver_sql(statement)


class ReconcileRun(Base):
    """One run of reconcile on one marketplace: when, and what it found."""

    __tablename__ = "reconcile_run"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime(), index=True)
    endpoint: Mapped[str] = mapped_column(String(200))
    clean: Mapped[bool] = mapped_column()
    #: The line that clean books print, or how much was found.
    summary: Mapped[str] = mapped_column(String(1000))
    #: Each finding: kind, subject, what, todo.
    findings: Mapped[list[dict[str, str]]] = mapped_column(JSON)
    seconds: Mapped[int] = mapped_column(default=0)
    #: When the mail about the findings was tried last, and when it went out; None while it has not, or need not.
    mail_tried_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
    mailed_at: Mapped[datetime | None] = mapped_column(UtcDateTime())
