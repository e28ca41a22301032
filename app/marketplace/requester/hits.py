"""HIT types and HITs: how they stand, and what can be done to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext, moment, ngettext
from app.marketplace.requester.console import call, code_of, in_words, me, requester
from hits.marketplace.errors import MarketplaceError, OperatorError
from hits.marketplace.hit_operations import LONGEST_LIFE
from hits.marketplace.requester_site import STATUSES
from hits.marketplace.words import words

STATES = ("Submitted", "Approved", "Rejected")
MOST_ADDED = 1000


@requester.get("/types")
@sessions.for_requesters
def types() -> ResponseReturnValue:
    """List the HIT types."""
    return render_template(
        "marketplace/requester/types.html", types=marketplace().hit_types(me(), page=console.page_number())
    )


@requester.get("/types/<entity:type_id>")
@sessions.for_requesters
def hit_type(type_id: str) -> ResponseReturnValue:
    """Show one HIT type."""
    return render_template("marketplace/requester/type.html", type=marketplace().hit_type(me(), type_id))


@requester.get("/hits")
@sessions.for_requesters
def hits() -> ResponseReturnValue:
    """List HITs, of one status or type if asked for."""
    status, type_id = console.asked("status"), console.asked("type")
    status = status if status in STATUSES else ""
    return render_template(
        "marketplace/requester/hits.html",
        hits=marketplace().requester_hits(me(), status=status, hit_type_id=type_id, page=console.page_number()),
        status=status,
        type=marketplace().hit_type(me(), type_id) if type_id else None,
    )


@requester.get("/hits/<entity:hit_id>")
@sessions.for_requesters
def hit(hit_id: str) -> ResponseReturnValue:
    """Show one HIT with its counters and what was submitted."""
    state = console.asked("state")
    state = state if state in STATES else ""
    return render_template(
        "marketplace/requester/hit.html",
        hit=marketplace().requester_hit(me(), hit_id),
        full=call("GetHIT", HITId=hit_id)["HIT"],
        assignments=marketplace().hit_assignments(me(), hit_id, state=state, page=console.page_number()),
        state=state,
        states=STATES,
        token=console.new_token(),
        error="",
        most=MOST_ADDED,
    )


@requester.route("/hits/<entity:hit_id>/expire", methods=["GET", "POST"])
@sessions.for_requesters
def expire_hit(hit_id: str) -> ResponseReturnValue:
    """Ask, then end a HIT's lifetime."""
    found = marketplace().requester_hit(me(), hit_id)
    if request.method == "POST":
        # The time is new each time, since the same pair of HIT and time is refused for a day.
        call("UpdateExpirationForHIT", HITId=hit_id, ExpireAt=_in_the_past())
        flash(gettext("The HIT has expired. What it held for free places is available again."), "success")
        return redirect(url_for("requester.hit", hit_id=hit_id), 303)
    return render_template("marketplace/requester/expire_hit.html", hit=found)


@requester.post("/hits/<entity:hit_id>/until")
@sessions.for_requesters
def extend_hit(hit_id: str) -> ResponseReturnValue:
    """Let a HIT live until a moment, longer or shorter than now, once however often the form is sent."""
    marketplace().requester_hit(me(), hit_id)
    try:
        expires_at = _extended(hit_id, _moment(console.typed("until")))
    except OperatorError as refusal:
        flash(gettext("%(problem)s Nothing was changed.", problem=console.said(refusal)), "error")
    except MarketplaceError as error:
        flash(in_words(error), "error")
    else:
        flash(gettext("The HIT is open until %(moment)s UTC.", moment=moment(expires_at)), "success")
    return redirect(url_for("requester.hit", hit_id=hit_id), 303)


@requester.post("/hits/<entity:hit_id>/places")
@sessions.for_requesters
def add_places(hit_id: str) -> ResponseReturnValue:
    """Add places to a HIT, once for each form."""
    number = console.whole_number("number", 1, MOST_ADDED)
    if number is None:
        flash(gettext("Give a number of places from 1 to %(most)d. Nothing was changed.", most=MOST_ADDED), "error")
    else:
        try:
            call(
                "CreateAdditionalAssignmentsForHIT",
                HITId=hit_id,
                NumberOfAdditionalAssignments=number,
                UniqueRequestToken=console.given_token(),
            )
        except MarketplaceError as error:
            flash(in_words(error), "error")
        else:
            flash(ngettext("%(num)d place was added.", "%(num)d places were added.", number), "success")
    return redirect(url_for("requester.hit", hit_id=hit_id), 303)


@requester.route("/hits/<entity:hit_id>/delete", methods=["GET", "POST"])
@sessions.for_requesters
def delete_hit(hit_id: str) -> ResponseReturnValue:
    """Ask, then dispose of a HIT that is done and reviewed."""
    found = marketplace().requester_hit(me(), hit_id)
    if request.method == "POST":
        call("DeleteHIT", HITId=hit_id)
        flash(gettext("The HIT is disposed of."), "success")
        return redirect(url_for("requester.hits"), 303)
    return render_template("marketplace/requester/delete_hit.html", hit=found)


def _moment(text: str) -> datetime:
    """Return the moment in UTC that a form gives to the minute.

    Raises OperatorError.
    """
    try:
        wanted = datetime.fromisoformat(text)
        wanted = wanted.replace(tzinfo=UTC) if wanted.tzinfo is None else wanted
        seconds = (wanted - marketplace().clock.now()).total_seconds()
    except ValueError as error:
        raise OperatorError(
            words("Give a moment (UTC) such as 2026-12-31 18:00, not “%(text)s”.", text=text[:40])
        ) from error
    if seconds <= 0:
        raise OperatorError(words("%(text)s lies in the past. To end the HIT let it expire now.", text=text[:40]))
    if seconds > LONGEST_LIFE.total_seconds():
        raise OperatorError(words("%(text)s is more than a year ahead.", text=text[:40]))
    return wanted.astimezone(UTC)


def _extended(hit_id: str, wanted: datetime) -> datetime:
    """Extend a HIT and return until when exactly.

    The same pair of HIT and moment is refused for a day, also where another moment was set in between: the next second
    is taken then. Raises MarketplaceError.
    """
    at, last = wanted, wanted + timedelta(seconds=59)
    while True:
        try:
            call("UpdateExpirationForHIT", HITId=hit_id, ExpireAt=at)
        except MarketplaceError as error:
            if code_of(error) != "DuplicateRequest" or at == last:
                raise
            if marketplace().requester_hit(me(), hit_id).expires_at == at:
                return at
            at += timedelta(seconds=1)
        else:
            return at


def _in_the_past() -> datetime:
    return datetime.fromtimestamp(marketplace().clock.now().timestamp() - 1, UTC)
