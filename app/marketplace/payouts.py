"""What was paid out to a worker, what is yet to be, and how they want to be paid."""

from __future__ import annotations

from typing import cast

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext

from app.marketplace import console, sessions
from app.marketplace.extensions import failed, limiter, marketplace, sign_in_limit
from hits.marketplace.errors import PasswordWrong, PayoutDetailsUnfit
from hits.marketplace.passwords import MOST_LENGTH
from hits.marketplace.payout_runs import MOST_DETAILS

payouts = Blueprint("payouts", __name__)


@payouts.route("/payouts", methods=["GET", "POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed)
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=failed, key_func=sessions.account_key)
@sessions.for_workers
def show() -> ResponseReturnValue:
    """Show the payouts, and let the worker say how to be paid, with the password: a session may be somebody else's."""
    details, errors = console.typed("details"), dict[str, str]()
    if request.method == "POST":
        try:
            marketplace().set_payout_details(_me(), request.form.get("old", ""), details)
        except PayoutDetailsUnfit as refusal:
            errors["details"] = refusal.message
        except PasswordWrong as refusal:
            errors["old"] = refusal.message
        else:
            flash(gettext("Stored. The next payout goes there."), "success")
            return redirect(url_for("payouts.show"), 303)
    return render_template(
        "marketplace/payouts.html",
        payouts=marketplace().worker_payouts(_me()),
        details=details if errors else marketplace().payout_details(_me()),
        errors=errors,
        most_details=MOST_DETAILS,
        most=MOST_LENGTH,
    ), (422 if errors else 200)


def _me() -> str:
    return cast(str, session["worker_id"])
