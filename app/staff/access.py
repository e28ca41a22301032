"""Who may see a staff page: signed in, active, and with the page's role."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from functools import wraps
from urllib.parse import urlsplit

from flask import flash, redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from app.errors import AccessDenied, asked_by_script
from app.extensions import db, login_manager
from app.models import AuditEntry, StaffUser
from app.services import services

log = logging.getLogger(__name__)

#: Where the session keeps when the password was typed, in seconds since 1970.
_PASSWORD_AT = "password_at"  # noqa: S105 - a name, no password


@login_manager.user_loader  # type: ignore[untyped-decorator]  # Flask-Login has no types
def load_user(user_id: str) -> StaffUser | None:
    """Return the signed-in person, None when the account is gone, was closed, or has another password since."""
    number = user_id.partition(".")[0]
    user = db.session.get(StaffUser, int(number)) if number.isdecimal() else None
    return user if user is not None and user.active and hmac.compare_digest(user.get_id(), user_id) else None


def open_to_all() -> None:
    """Guard of pages that anybody may see."""


def role_guard(role: str) -> Callable[[], ResponseReturnValue | None]:
    """Return the guard of pages for one role: leads to the sign-in page, raises AccessDenied without the role.

    Who is refused stands in the audit trail and in the log.
    """

    def guard() -> ResponseReturnValue | None:
        if not current_user.is_authenticated:
            log.warning("%s %s was asked for by somebody who is not signed in.", request.method, request.endpoint)
            if request.method == "GET" and not asked_by_script():
                return redirect(url_for("staff.sign_in", next=request.full_path.rstrip("?")))
            return redirect(url_for("staff.sign_in"))
        if role not in current_user.roles:
            refused("access.refused", f"page {request.endpoint}", role=role, method=request.method)
            raise AccessDenied(role)
        return None

    return guard


def safe_next(target: str) -> str | None:
    """Return where to go after signing in if it is a path of this service, else None."""
    parts = urlsplit(target)
    own = not parts.scheme and not parts.netloc and target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if own and "\\" not in target and "\n" not in target else None


def audit(action: str, subject: str, **detail: object) -> None:
    """Note what the signed-in person does, in the same transaction as the deed. The caller commits."""
    db.session.add(
        AuditEntry(
            at=services().clock.now(), staff_name=current_user.name, action=action, subject=subject, detail=detail
        )
    )


def refused(action: str, subject: str, **detail: object) -> None:
    """Keep in the audit trail and in the log that the signed-in person was refused something. Commits that alone."""
    db.session.rollback()
    audit(action, subject, **detail)
    log.warning("%s was refused: %s, %s.", current_user.name, action, subject)
    db.session.commit()


def note_password() -> None:
    """Keep in the session that the password was typed just now."""
    session[_PASSWORD_AT] = int(services().clock.now().timestamp())


def password_is_fresh() -> bool:
    """Tell whether the signed-in person typed the password within the time that DYNAHIT_FRESH_SIGN_IN_MINUTES gives."""
    here = services()
    age = int(here.clock.now().timestamp()) - int(session.get(_PASSWORD_AT, 0))
    return 0 <= age <= here.settings.fresh_sign_in_minutes * 60


def fresh_password(page: Callable[..., ResponseReturnValue]) -> Callable[..., ResponseReturnValue]:
    """Ask for the password again before a page that moves money; then lead to the address of the same page by GET."""

    @wraps(page)
    def asked(*args: object, **values: object) -> ResponseReturnValue:
        if password_is_fresh():
            return page(*args, **values)
        if request.method == "POST":
            flash("Nothing was done yet. Type your password, then do it again.")
        return redirect(url_for("staff.confirm", next=request.full_path.rstrip("?")), 303)

    return asked
