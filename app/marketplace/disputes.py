"""A worker's objection to a rejection: once, in words, to the operator."""

from __future__ import annotations

from typing import cast

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import translated
from hits.marketplace.disputes import MOST_WORDS
from hits.marketplace.errors import AlreadyDisputed, DisputeNotPossible, DisputeUnfit

disputes = Blueprint("disputes", __name__)


@disputes.route("/work/<entity:assignment_id>/dispute", methods=["GET", "POST"])
@sessions.for_workers
def dispute(assignment_id: str) -> ResponseReturnValue:
    """Show a dispute, or the form that opens one."""
    work, error = marketplace().work_entry(_me(), assignment_id), ""
    if request.method == "POST":
        try:
            marketplace().open_dispute(_me(), assignment_id, console.typed("words"))
        except DisputeUnfit as refusal:
            error = refusal.message
        except AlreadyDisputed as refusal:
            flash(translated(refusal.message), "info")
        else:
            flash(gettext("The operator will look at it. You are told here, in your messages."), "success")
        if not error:
            return redirect(url_for("disputes.dispute", assignment_id=assignment_id), 303)
    found = marketplace().dispute_of(_me(), assignment_id)
    if found is None and work.state != "Rejected":
        raise DisputeNotPossible(gettext("Only a rejected HIT can be disputed; this one is not rejected."))
    return render_template(
        "marketplace/dispute.html",
        entry=work,
        dispute=found,
        words=console.typed("words"),
        error=error,
        most_words=MOST_WORDS,
    ), (422 if error else 200)


def _me() -> str:
    return cast(str, session["worker_id"])
