"""A worker writing to a requester about a HIT, and reporting a HIT to the operator."""

from __future__ import annotations

from typing import cast

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_babel import gettext

from app.marketplace import sessions
from app.marketplace.extensions import marketplace
from hits.marketplace import errors as refusals
from hits.marketplace.contact import LONGEST_MESSAGE
from hits.marketplace.reports import LONGEST_TEXT, REASONS

contact = Blueprint("contact", __name__)


@contact.route("/hits/<entity:hit_id>/contact", methods=["GET", "POST"])
@sessions.for_workers
def write(hit_id: str) -> ResponseReturnValue:
    """Take a message about a HIT for its requester."""
    about, text, problem = marketplace().hit_subject(_me(), hit_id), request.form.get("text", ""), ""
    if request.method == "POST":
        try:
            marketplace().contact_requester(_me(), hit_id, _unix(text))
        except (refusals.MessageUnfit, refusals.WroteTooOften) as refusal:
            problem = refusal.message
        else:
            flash(
                gettext(
                    "Your message was sent to %(name)s. A reply comes under Messages. You can close this page.",
                    name=about.requester_name,
                ),
                "success",
            )
            return redirect(url_for("messages.sent"), 303)
    page = render_template("marketplace/contact.html", about=about, text=text, problem=problem, longest=LONGEST_MESSAGE)
    return page, 422 if problem else 200


@contact.route("/hits/<entity:hit_id>/report", methods=["GET", "POST"])
@sessions.for_workers
def report(hit_id: str) -> ResponseReturnValue:
    """Take a report of a HIT for the operator."""
    about, problem = marketplace().hit_subject(_me(), hit_id), ""
    reason, text = request.form.get("reason", ""), request.form.get("text", "")
    if request.method == "POST":
        try:
            marketplace().report_hit(_me(), hit_id, reason, _unix(text))
        except (refusals.ReportUnfit, refusals.WroteTooOften, refusals.AlreadyReported) as refusal:
            problem = refusal.message
        else:
            flash(
                gettext(
                    "Your report was sent to the operator of this site, whose answer comes under Messages. "
                    "You can close this page."
                ),
                "success",
            )
            return redirect(url_for("worker.hits"), 303)
    page = render_template(
        "marketplace/report.html",
        about=about,
        reasons=tuple(REASONS.items()),
        reason=reason,
        text=text,
        problem=problem,
        longest=LONGEST_TEXT,
    )
    return page, 422 if problem else 200


def _me() -> str:
    return cast(str, session["worker_id"])


def _unix(text: str) -> str:
    # Browsers send line ends as two characters, and count them as one.
    return text.replace("\r\n", "\n")
