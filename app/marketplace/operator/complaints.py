"""What workers complain about: reports of HITs, reasons for giving them back, disputes about rejections."""

from __future__ import annotations

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext, ngettext, translated
from app.marketplace.operator.console import by, freshly, is_fresh, operator
from hits.marketplace.answer_rows import answer_rows
from hits.marketplace.disputes import MOST_WORDS, STATES
from hits.marketplace.errors import MessageUnfit, OperatorError
from hits.marketplace.reports import REASONS

PAGE_SIZE = 25


@operator.get("/reports")
@sessions.for_operators
def reports() -> ResponseReturnValue:
    """List the reports of HITs, open ones or all."""
    every = console.asked("all") == "1"
    found = marketplace().reports(open_only=not every, page=console.page_number(), page_size=PAGE_SIZE)
    return render_template("marketplace/operator/reports.html", found=found, every=every, reasons=REASONS)


@operator.get("/returns")
@sessions.for_operators
def returns() -> ResponseReturnValue:
    """List the reasons with which workers gave HITs back."""
    found = marketplace().returned_hits(page=console.page_number(), page_size=PAGE_SIZE)
    return render_template("marketplace/operator/returns.html", found=found)


@operator.post("/reports/<entity:report_id>/close")
@sessions.for_operators
def close_report(report_id: str) -> ResponseReturnValue:
    """Close a report with a note to the worker."""
    try:
        marketplace().end_report(report_id, console.typed("words"), by=by())
    except MessageUnfit as refusal:
        flash(translated(refusal.message), "error")
    except OperatorError as refusal:
        flash(console.said(refusal), "error")
    else:
        flash(gettext("The report is closed; the worker has your words."), "success")
    return redirect(url_for("operator.reports"), 303)


@operator.route("/hits/<entity:hit_id>/take-down", methods=["GET", "POST"])
@freshly
def take_down(hit_id: str) -> ResponseReturnValue:
    """Ask why, then take down a HIT or all of its type."""
    words, whole_type, error = console.typed("words"), request.form.get("whole_type") == "1", ""
    if request.method == "POST":
        try:
            count = marketplace().take_down(hit_id, words, whole_type=whole_type, by=by())
        except OperatorError as refusal:
            error = console.said(refusal)
        else:
            said = ngettext(
                "%(num)d HIT is taken down. The requester was told.",
                "%(num)d HITs are taken down. The requester was told.",
                count,
            )
            flash(said, "success")
            return redirect(url_for("operator.reports"), 303)
    return render_template(
        "marketplace/operator/take_down.html",
        hit_id=hit_id,
        hit=marketplace().any_hit(hit_id),
        words=words,
        whole_type=whole_type,
        error=error,
        most_words=MOST_WORDS,
    ), (422 if error else 200)


@operator.get("/disputes")
@sessions.for_operators
def disputes() -> ResponseReturnValue:
    """List the disputes, the longest open first."""
    state = console.asked("state")
    state = state if state in STATES else "Open"
    found = marketplace().disputes(state=state, page=console.page_number())
    return render_template("marketplace/operator/disputes.html", disputes=found, state=state)


@operator.get("/disputes/<entity:dispute_id>")
@sessions.for_operators
def dispute(dispute_id: str) -> ResponseReturnValue:
    """Show both sides of a dispute."""
    return _dispute_page(dispute_id)


@operator.post("/disputes/<entity:dispute_id>")
@freshly
def decide_dispute(dispute_id: str) -> ResponseReturnValue:
    """Overturn the rejection, or uphold it; either is confirmed first and carried out once for each form."""
    action, words, token = request.form.get("action", ""), console.typed("words"), console.given_token()
    if not 0 < len(words) <= MOST_WORDS or action not in {"overturn", "uphold"}:
        said = gettext("Say why, in 1 to %(most)d characters; both sides read it.", most=MOST_WORDS)
        return _dispute_page(dispute_id, said), 422
    if request.form.get("step") != "sure":
        return _dispute_page(dispute_id, action=action)
    decide = marketplace().overturn_dispute if action == "overturn" else marketplace().uphold_dispute
    try:
        decide(dispute_id, words, by=by(), token=token)
    except OperatorError as refusal:
        return _dispute_page(dispute_id, console.said(refusal)), 409
    if action == "overturn":
        flash(gettext("The rejection is overturned; the worker is paid. Both sides have your words."), "success")
    else:
        flash(gettext("The rejection is upheld. Both sides have your words."), "success")
    return redirect(url_for("operator.dispute", dispute_id=dispute_id), 303)


def _dispute_page(dispute_id: str, error: str = "", *, action: str = "") -> str:
    found = marketplace().dispute(dispute_id)
    return render_template(
        "marketplace/operator/dispute.html",
        dispute=found,
        rows=answer_rows(found.answer) if found.answer else [],
        balance=marketplace().balance(found.requester_id),
        words=console.typed("words"),
        error=error,
        action=action,
        fresh=is_fresh(),
        token=console.given_token() or console.new_token(),
        most_words=MOST_WORDS,
    )
