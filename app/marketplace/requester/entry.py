"""Signing in to the requester console, and out."""

from __future__ import annotations

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import sessions
from app.marketplace.extensions import failed, limiter, marketplace, sign_in_limit
from app.marketplace.languages import gettext
from app.marketplace.requester.console import requester
from hits.marketplace.errors import AccountDisabled, NotSignedIn


def _email_key() -> str:
    return "requester " + request.form.get("email", "").strip().casefold()


@requester.route("/sign-in", methods=["GET", "POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed)
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=_email_key)
def sign_in() -> ResponseReturnValue:
    """Sign a requester in; failures are limited by address and by account."""
    email, error = request.form.get("email", "").strip(), ""
    if request.method == "POST":
        try:
            account = marketplace().authenticate_requester(email, request.form.get("password", ""))
        except NotSignedIn:
            error = gettext("This e-mail address and password do not belong together. Check both and try again.")
        except AccountDisabled as refusal:
            error = refusal.message
        else:
            sessions.sign_in_requester(account)
            return redirect(sessions.safe_next(url_for("requester.overview")), 303)
    return render_template("marketplace/requester/sign_in.html", email=email, error=error), 422 if error else 200


@requester.post("/sign-out")
def sign_out() -> ResponseReturnValue:
    """End the requester's session."""
    sessions.sign_out()
    flash(gettext("You are signed out."), "success")
    return redirect(url_for("requester.sign_in"), 303)
