"""Who may see a staff page: signed in, active, and with the page's role."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from urllib.parse import urlsplit

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from app.errors import AccessDenied, asked_by_script
from app.extensions import db, login_manager
from app.models import AuditEntry, StaffUser
from app.services import services


@login_manager.user_loader  # type: ignore[untyped-decorator]  # Flask-Login has no types
def load_user(user_id: str) -> StaffUser | None:
    """Return the signed-in person, None when the account is gone, was closed, or has another password since."""
    number = user_id.partition(".")[0]
    user = db.session.get(StaffUser, int(number)) if number.isdecimal() else None
    return user if user is not None and user.active and hmac.compare_digest(user.get_id(), user_id) else None


def open_to_all() -> None:
    """Guard of pages that anybody may see."""


def role_guard(role: str) -> Callable[[], ResponseReturnValue | None]:
    """Return the guard of pages for one role: leads to the sign-in page, raises AccessDenied without the role."""

    def guard() -> ResponseReturnValue | None:
        if not current_user.is_authenticated:
            if request.method == "GET" and not asked_by_script():
                return redirect(url_for("staff.sign_in", next=request.full_path.rstrip("?")))
            return redirect(url_for("staff.sign_in"))
        if role not in current_user.roles:
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
