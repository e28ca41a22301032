"""externalSubmit: where a HIT's page, on another site and in a frame, sends a worker's answers."""

from __future__ import annotations

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.marketplace import errors
from app.marketplace.extensions import csrf, marketplace
from app.marketplace.headers import be_framed_by_this_site
from hits.marketplace.errors import AlreadySubmitted, SiteError

submit = Blueprint("submit", __name__)
csrf.exempt(submit)


@submit.route("/mturk/externalSubmit", methods=["GET", "POST"])
def external_submit() -> ResponseReturnValue:
    """Store the answers of the assignment that the form names.

    The post comes from another site's frame, where browsers hold back cookies: the held, unguessable assignment id
    is the authority, no session is read or written. Fields may come in the body or in the address.
    """
    be_framed_by_this_site()
    fields = request.values.to_dict(flat=False)
    assignment_id = request.values.get("assignmentId", "")
    try:
        receipt = marketplace().external_submit(assignment_id, fields)
    except SiteError as refusal:
        # After a double click only this answer is shown, and the work page must go on to the receipt all the same.
        stored = assignment_id if isinstance(refusal, AlreadySubmitted) else ""
        content = render_template("marketplace/not_stored.html", text=refusal.message, stored=stored)
        return content, errors.status_of(refusal)
    return render_template("marketplace/stored.html", receipt=receipt)
