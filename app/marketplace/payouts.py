"""What was paid out to a worker, what is yet to be, and how they want to be paid."""

from __future__ import annotations

from typing import cast

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from hits.marketplace.errors import PayoutDetailsUnfit
from hits.marketplace.payout_runs import MOST_DETAILS

payouts = Blueprint("payouts", __name__)


@payouts.route("/payouts", methods=["GET", "POST"])
@sessions.for_workers
def show() -> ResponseReturnValue:
    """Show the payouts, and let the worker say how to be paid."""
    details, error = console.typed("details"), ""
    if request.method == "POST":
        try:
            marketplace().set_payout_details(_me(), details)
        except PayoutDetailsUnfit as refusal:
            error = refusal.message
        else:
            flash(gettext("Stored. The next payout goes there."), "success")
            return redirect(url_for("payouts.show"), 303)
    return render_template(
        "marketplace/payouts.html",
        payouts=marketplace().worker_payouts(_me()),
        details=details if error else marketplace().payout_details(_me()),
        error=error,
        most_details=MOST_DETAILS,
    ), (422 if error else 200)


def _me() -> str:
    return cast(str, session["worker_id"])
