"""The requester console: money, HITs and waiting assignments to read; everything is changed through the API."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask.wrappers import Response

from app.marketplace import sessions
from app.marketplace.extensions import limiter, marketplace, sign_in_limit
from hits.marketplace.errors import NotSignedIn, OperatorError

requester = Blueprint("requester", __name__, url_prefix=sessions.CONSOLE_PATH)
MOST_HITS = 500


def _failed(response: Response) -> bool:
    return response.status_code >= 400


def _email_key() -> str:
    return "requester " + request.form.get("email", "").strip().casefold()


def _me() -> str:
    return cast(str, session["requester_id"])


@requester.route("/sign-in", methods=["GET", "POST"])
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=_failed)
@limiter.limit(sign_in_limit, methods=["POST"], deduct_when=_failed, key_func=_email_key)
def sign_in() -> ResponseReturnValue:
    """Sign a requester in; failures are limited by address and by account."""
    email, error = request.form.get("email", "").strip(), ""
    if request.method == "POST":
        try:
            account = marketplace().authenticate_requester(email, request.form.get("password", ""))
        except NotSignedIn:
            error = "This e-mail address and password do not belong together. Check both and try again."
        else:
            sessions.sign_in_requester(account)
            return redirect(sessions.safe_next(url_for("requester.overview")), 303)
    return render_template("marketplace/requester/sign_in.html", email=email, error=error), 422 if error else 200


@requester.post("/sign-out")
def sign_out() -> ResponseReturnValue:
    """End the requester's session."""
    sessions.sign_out()
    flash("You are signed out.", "success")
    return redirect(url_for("requester.sign_in"), 303)


@requester.before_request
def check_account() -> ResponseReturnValue | None:
    """End a session that outlived its account."""
    requester_id = sessions.requester_id()
    if requester_id is None:
        return None
    try:
        marketplace().requester(requester_id)
    except OperatorError:
        sessions.sign_out()
        flash("This account does not exist (any more). Sign in again.", "warning")
        return redirect(url_for("requester.sign_in"), 303)
    return None


@requester.get("/")
@sessions.for_requesters
def overview() -> ResponseReturnValue:
    """Show the balance, the newest HITs, and the submitted assignments by their auto-approval time."""
    hits = list(islice(_each(_me(), "ListHITs", "HITs", {}), MOST_HITS))
    waiting = sorted(
        (
            {"hit": hit, **assignment}
            for hit in hits
            if _may_wait(hit)
            for assignment in _each(
                _me(),
                "ListAssignmentsForHIT",
                "Assignments",
                {"HITId": hit["HITId"], "AssignmentStatuses": ["Submitted"]},
            )
        ),
        key=lambda assignment: assignment["AutoApprovalTime"],
    )
    return render_template(
        "marketplace/requester/overview.html",
        balance=marketplace().balance(_me()),
        hits=hits,
        waiting=waiting,
        most=MOST_HITS,
    )


@requester.get("/account")
@sessions.for_requesters
def account() -> ResponseReturnValue:
    """Show the account's lines, newest first."""
    return render_template(
        "marketplace/requester/account.html",
        balance=marketplace().balance(_me()),
        entries=list(reversed(marketplace().account_entries(_me()))),
        keys=marketplace().access_keys(_me()),
    )


def _each(requester_id: str, operation: str, member: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Walk every page of a List operation."""
    token: dict[str, str] = {}
    while True:
        page = marketplace().call(requester_id, operation, {**params, **token, "MaxResults": 100})
        yield from page[member]
        if not page.get("NextToken"):
            return
        token = {"NextToken": page["NextToken"]}


def _may_wait(hit: dict[str, Any]) -> bool:
    """Whether the counters leave room for submitted assignments that nobody has judged."""
    counted = ("NumberOfAssignmentsPending", "NumberOfAssignmentsAvailable", "NumberOfAssignmentsCompleted")
    return bool(hit["MaxAssignments"] > sum(hit[name] for name in counted))
