"""Signing in to the operator console, giving the password again, and signing out."""

from __future__ import annotations

from typing import cast

from flask import flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import failed, limiter, marketplace, sign_in_limit
from app.marketplace.languages import gettext
from app.marketplace.operator.console import operator
from hits.marketplace.errors import NotSignedIn
from hits.marketplace.operators import key_of
from hits.marketplace.words import words

WRONG = words("This name and password do not belong together. Check both and try again.")


def _name_key() -> str:
    return "operator " + (sessions.operator_id() or key_of(request.form.get("name", "")))


@operator.route("/sign-in", methods=["GET", "POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed)
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=_name_key)
def sign_in() -> ResponseReturnValue:
    """Sign an operator in; failures are limited by address and by account."""
    name = console.typed("name")
    error: str = ""
    if request.method == "POST":
        try:
            account = marketplace().authenticate_operator(name, request.form.get("password", ""))
        except NotSignedIn:
            error = WRONG
        else:
            sessions.sign_in_operator(account, marketplace().clock.now())
            return redirect(sessions.safe_next(url_for("operator.overview")), 303)
    return render_template("marketplace/operator/sign_in.html", name=name, error=error), 422 if error else 200


@operator.route("/confirm-password", methods=["GET", "POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed)
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=_name_key)
@sessions.for_operators
def confirm_password() -> ResponseReturnValue:
    """Ask for the password again before money moves or an account is closed."""
    error = ""
    if request.method == "POST":
        name = cast(str, session["name"])
        try:
            account = marketplace().authenticate_operator(name, request.form.get("password", ""))
        except NotSignedIn:
            error = gettext("This is not your password. Try again.")
        else:
            sessions.sign_in_operator(account, marketplace().clock.now())
            return redirect(sessions.safe_next(url_for("operator.overview")), 303)
    return render_template("marketplace/operator/confirm_password.html", error=error), 422 if error else 200


@operator.post("/sign-out")
def sign_out() -> ResponseReturnValue:
    """End the operator's session."""
    sessions.sign_out()
    flash(gettext("You are signed out."), "success")
    return redirect(url_for("operator.sign_in"), 303)
