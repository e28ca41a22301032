"""The sign-in page and the way out."""

from __future__ import annotations

from flask import Blueprint, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, login_user, logout_user
from sqlalchemy import select

from app import limits
from app.extensions import db, limiter
from app.models import StaffUser, password_fits
from app.staff.access import note_password, refused, safe_next

bp = Blueprint("staff", __name__, url_prefix="/staff")


@bp.get("/sign-in")
def sign_in() -> ResponseReturnValue:
    """Ask for name and password."""
    if current_user.is_authenticated:
        return redirect(safe_next(request.args.get("next", "")) or url_for("site.index"))
    return render_template("staff/sign_in.html", name="", error="", next=request.args.get("next", ""))


@bp.post("/sign-in")
@limiter.limit(limits.SIGN_IN, key_func=limits.limit_address)
def sign_in_post() -> ResponseReturnValue:
    """Sign in; a wrong name and a wrong password look the same."""
    name = request.form.get("name", "").strip()
    user = db.session.scalar(select(StaffUser).where(StaffUser.name == name)) if "\0" not in name else None
    if user is None or not password_fits(user, request.form.get("password", "")):
        if user is None:
            password_fits(None, request.form.get("password", ""))
        error = "Name and password do not fit together. Check both; `dynahit staff password NAME` sets a new one."
        return render_template("staff/sign_in.html", name=name, error=error, next=request.form.get("next", "")), 403
    login_user(user)
    note_password()
    return redirect(safe_next(request.form.get("next", "")) or url_for("site.index"))


@bp.get("/confirm")
def confirm() -> ResponseReturnValue:
    """Ask somebody who is signed in for the password again, before something that moves money."""
    if not current_user.is_authenticated:
        return redirect(url_for("staff.sign_in", next=request.args.get("next", "")))
    return render_template("staff/confirm.html", error="", next=request.args.get("next", ""))


@bp.post("/confirm")
@limiter.limit(limits.SIGN_IN, key_func=limits.limit_address)
def confirm_post() -> ResponseReturnValue:
    """Take the password and lead on; a wrong one stands in the audit trail."""
    target = request.form.get("next", "")
    if not current_user.is_authenticated:
        return redirect(url_for("staff.sign_in", next=target))
    if not password_fits(current_user, request.form.get("password", "")):
        refused("password.refused", f"staff {current_user.name}")
        error = "This is not your password. Try again; `dynahit staff password NAME` sets a new one."
        return render_template("staff/confirm.html", error=error, next=target), 403
    note_password()
    return redirect(safe_next(target) or url_for("site.index"))


@bp.post("/sign-out")
def sign_out() -> ResponseReturnValue:
    """Sign out."""
    logout_user()
    session.clear()
    return redirect(url_for("staff.sign_in"))
