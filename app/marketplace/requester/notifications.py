"""Where the events of a HIT type go, and the secret that webhooks are signed with."""

from __future__ import annotations

from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext
from app.marketplace.requester.console import call, in_words, me, requester
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.notifications import VERSIONS
from hits.marketplace.words import words

EVENTS = (
    "AssignmentAccepted",
    "AssignmentAbandoned",
    "AssignmentReturned",
    "AssignmentSubmitted",
    "AssignmentRejected",
    "AssignmentApproved",
    "HITCreated",
    "HITExtended",
    "HITDisposed",
    "HITReviewable",
    "HITExpired",
)
#: (value, words); a webhook is SNS to an https address.
TRANSPORTS = (
    ("Email", words("E-mail address")),
    ("SQS", words("Queue (SQS)")),
    ("SNS", words("Topic (SNS), or an https address for a signed webhook")),
)


@requester.route("/types/<entity:type_id>/notifications", methods=["GET", "POST"])
@sessions.for_requesters
def notifications(type_id: str) -> ResponseReturnValue:
    """Show and change where a HIT type's events go; try it out with a made-up event."""
    kind, error = marketplace().hit_type(me(), type_id), ""
    form = request.form
    if request.method == "POST":
        wanted = {
            "Destination": console.typed("destination"),
            "Transport": form.get("transport", ""),
            "Version": VERSIONS[-1],
            "EventTypes": [one for one in form.getlist("event") if one in EVENTS],
        }
        try:
            said = _change(type_id, wanted)
        except MarketplaceError as refusal:
            error = in_words(refusal)
        else:
            flash(said, "success")
            return redirect(url_for("requester.notifications", type_id=type_id), 303)
    return render_template(
        "marketplace/requester/notifications.html",
        type=kind,
        events=EVENTS,
        transports=TRANSPORTS,
        chosen=form.getlist("event") if error else kind.event_types,
        transport=form.get("transport") if error else _transport(kind.transport),
        destination=console.typed("destination") if error else kind.destination or "",
        error=error,
    ), (422 if error else 200)


@requester.route("/webhook-secret", methods=["GET", "POST"])
@sessions.for_requesters
def webhook_secret() -> ResponseReturnValue:
    """Show the secret that webhooks are signed with, once it is asked for."""
    secret = marketplace().webhook_secret(me()) if request.method == "POST" else None
    return render_template("marketplace/requester/webhook_secret.html", secret=secret)


def _change(type_id: str, wanted: dict[str, Any]) -> str:
    action = request.form.get("action", "")
    if action == "off":
        call("UpdateNotificationSettings", HITTypeId=type_id, Active=False)
        return gettext("No more events of this HIT type are sent.")
    if action == "test":
        call("SendTestEventNotification", Notification=wanted, TestEventType="HITReviewable")
        return gettext("A made-up event is on its way; the settings were not changed.")
    call("UpdateNotificationSettings", HITTypeId=type_id, Notification=wanted, Active=True)
    return gettext("The events of this HIT type are sent from now on.")


def _transport(stored: str | None) -> str:
    return "SNS" if stored == "Webhook" else stored or "Email"
