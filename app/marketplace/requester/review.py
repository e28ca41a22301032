"""Reviewing what workers handed in: one or many, approved, rejected with a reason, rewarded with a bonus."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext, ngettext
from app.marketplace.requester.console import call, code_of, in_words, me, requester
from hits.marketplace.answer_rows import answer_rows
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.fees import bonus_fee
from hits.marketplace.money import from_cents, to_cents

LONGEST_WORDS = 1024
MOST_APPROVED = 100
#: Mass rejections are what harms workers most, so they go in small steps.
MOST_REJECTED = 10
_ID = re.compile("[A-Z0-9]{1,64}")


@requester.get("/review")
@sessions.for_requesters
def review() -> ResponseReturnValue:
    """List what waits, the first to be approved by itself first."""
    return render_template(
        "marketplace/requester/review.html",
        waiting=marketplace().waiting_assignments(me(), page=console.page_number()),
        answer_rows=answer_rows,
    )


@requester.get("/assignments/<entity:assignment_id>")
@sessions.for_requesters
def assignment(assignment_id: str) -> ResponseReturnValue:
    """Show one assignment with its answers and bonuses."""
    return render_template("marketplace/requester/assignment.html", **_shown(assignment_id))


@requester.post("/review/decide")
@sessions.for_requesters
def decide() -> ResponseReturnValue:
    """Approve or reject assignments: what will happen is shown first, a rejection's reason is confirmed."""
    action, ids = request.form.get("action", ""), list(dict.fromkeys(request.form.getlist("assignment")))
    if action not in {"approve", "reject"} or not all(_ID.fullmatch(one) for one in ids):
        abort(400)
    most = MOST_REJECTED if action == "reject" else MOST_APPROVED
    if not 0 < len(ids) <= most:
        if not ids:
            flash(gettext("Choose at least one assignment. Nothing was changed."), "error")
        elif action == "approve":
            flash(gettext("Choose at most %(most)d at a time to approve. Nothing was changed.", most=most), "error")
        else:
            flash(gettext("Choose at most %(most)d at a time to reject. Nothing was changed.", most=most), "error")
        return redirect(url_for("requester.review"), 303)
    words, step, error = console.typed("words"), request.form.get("step", ""), ""
    if len(words) > LONGEST_WORDS:
        error = gettext("At most %(most)d characters; these are %(length)d.", most=LONGEST_WORDS, length=len(words))
    elif step and action == "reject" and not words:
        error = gettext("Write the reason; the worker reads it.")
    if error or step not in {"words", "sure"} or (action == "reject" and step == "words"):
        return render_template(
            "marketplace/requester/decide.html",
            action=action,
            chosen=[call("GetAssignment", AssignmentId=one) for one in ids],
            words=words,
            error=error,
            sure=bool(step) and not error,
            most_words=LONGEST_WORDS,
        ), (422 if error else 200)
    _carry_out(action, ids, words)
    return redirect(url_for("requester.review"), 303)


@requester.route("/assignments/<entity:assignment_id>/override", methods=["GET", "POST"])
@sessions.for_requesters
def override(assignment_id: str) -> ResponseReturnValue:
    """Ask, then approve a rejected assignment after all."""
    shown = _shown(assignment_id)
    if request.method == "POST":
        call("ApproveAssignment", AssignmentId=assignment_id, OverrideRejection=True)
        flash(gettext("The assignment is approved; its reward and fee were taken from your balance."), "success")
        return redirect(url_for("requester.assignment", assignment_id=assignment_id), 303)
    return render_template("marketplace/requester/override.html", **shown)


@requester.route("/assignments/<entity:assignment_id>/bonus", methods=["GET", "POST"])
@sessions.for_requesters
def bonus(assignment_id: str) -> ResponseReturnValue:
    """Ask for amount and reason, show what it costs, then pay a bonus, once for each form."""
    shown, errors = _shown(assignment_id), {}
    amount, words, cents = console.typed("amount").removeprefix("$"), console.typed("words"), 0
    if request.method == "POST":
        try:
            cents = to_cents(Decimal(amount))
        except (InvalidOperation, ValueError):
            cents = 0
        if not 0 < cents < 10**9:
            cents = 0
            errors["amount"] = gettext("An amount in dollars and cents, such as 1.50.")
        if not 0 < len(words) <= LONGEST_WORDS:
            errors["words"] = gettext(
                "Say what it is for, in 1 to %(most)d characters; the worker reads it.", most=LONGEST_WORDS
            )
    if request.method == "POST" and not errors and request.form.get("step") == "sure":
        return _pay_bonus(shown["assignment"], cents, words)
    return render_template(
        "marketplace/requester/bonus.html",
        **shown,
        amount=amount,
        words=words,
        errors=errors,
        sure=request.method == "POST" and not errors,
        bonus=from_cents(cents),
        fee=from_cents(bonus_fee(cents, at=marketplace().clock.now())) if cents else None,
        token=console.given_token() or console.new_token(),
        most_words=LONGEST_WORDS,
    ), (422 if errors else 200)


def _pay_bonus(assignment: dict[str, Any], cents: int, words: str) -> ResponseReturnValue:
    try:
        call(
            "SendBonus",
            AssignmentId=assignment["AssignmentId"],
            WorkerId=assignment["WorkerId"],
            BonusAmount=f"{from_cents(cents):.2f}",
            Reason=words,
            UniqueRequestToken=console.given_token(),
        )
    except MarketplaceError as error:
        if code_of(error) != "DuplicateRequest":
            raise
        flash(gettext("This bonus was paid when you sent the form the first time. It was not paid again."), "info")
    else:
        amount = f"${from_cents(cents):,.2f}"
        flash(gettext("The bonus of %(amount)s is paid.", amount=amount), "success")
    return redirect(url_for("requester.assignment", assignment_id=assignment["AssignmentId"]), 303)


def _carry_out(action: str, ids: list[str], words: str) -> None:
    operation = "ApproveAssignment" if action == "approve" else "RejectAssignment"
    feedback = {"RequesterFeedback": words} if words else {}
    problems: dict[str, str] = {}
    for one in ids:
        try:
            call(operation, AssignmentId=one, **feedback)
        except MarketplaceError as error:
            problems[one] = in_words(error)
    done = len(ids) - len(problems)
    approved = action == "approve"
    if done and approved:
        flash(ngettext("%(num)d assignment is approved.", "%(num)d assignments are approved.", done), "success")
    elif done:
        flash(ngettext("%(num)d assignment is rejected.", "%(num)d assignments are rejected.", done), "success")
    for one, problem in problems.items():
        said = {"assignment": one, "problem": problem}
        flash(
            gettext("%(assignment)s was not approved: %(problem)s", **said)
            if approved
            else gettext("%(assignment)s was not rejected: %(problem)s", **said),
            "error",
        )


def _shown(assignment_id: str) -> dict[str, Any]:
    found = call("GetAssignment", AssignmentId=assignment_id)
    bonuses: list[dict[str, Any]] = []
    token: dict[str, str] = {}
    while page := call("ListBonusPayments", AssignmentId=assignment_id, MaxResults=100, **token):
        bonuses += page["BonusPayments"]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    return {
        "assignment": found["Assignment"],
        "hit": found["HIT"],
        "rows": answer_rows(found["Assignment"].get("Answer", "")) if found["Assignment"].get("Answer") else [],
        "bonuses": bonuses,
    }
