"""Payout runs: drafted, downloaded, paid outside of the marketplace, marked paid; or cancelled."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask.wrappers import Response

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace
from app.marketplace.languages import gettext
from app.marketplace.operator.console import by, freshly, operator
from hits.marketplace.errors import OperatorError
from hits.marketplace.payout_runs import MOST_REFERENCE
from hits.marketplace.words import words


@operator.get("/payouts")
@sessions.for_operators
def payouts() -> ResponseReturnValue:
    """Show what is owed, and the runs."""
    return _payouts_page()


@operator.post("/payouts")
@freshly
def draft_payout() -> ResponseReturnValue:
    """Draft a run of what was earned through a day, once for each form."""
    day = console.typed("day")
    try:
        run = marketplace().draft_payout_run(
            _end_of(day), only_with_details=request.form.get("only") == "1", by=by(), token=console.given_token()
        )
    except OperatorError as refusal:
        return _payouts_page(day, console.said(refusal)), 409
    flash(gettext("The run is drafted. Download its file, pay, then mark the run as paid."), "success")
    return redirect(url_for("operator.payout", run_id=run.run_id), 303)


@operator.get("/payouts/<entity:run_id>")
@sessions.for_operators
def payout(run_id: str) -> ResponseReturnValue:
    """Show one run with what each worker gets."""
    return _run_page(run_id)


@operator.get("/payouts/<entity:run_id>.csv")
@freshly
def payout_csv(run_id: str) -> ResponseReturnValue:
    """Give the file that a run is paid from."""
    rows = marketplace().payout_csv(run_id)
    marketplace().record_act("payout file downloaded", "payout run", run_id, by=by())
    headers = {"Content-Disposition": f"attachment; filename=payout-{run_id}.csv", "Cache-Control": "no-store"}
    return Response(rows, mimetype="text/csv", headers=headers)


@operator.post("/payouts/<entity:run_id>/paid")
@freshly
def pay_payout(run_id: str) -> ResponseReturnValue:
    """Mark a run as paid."""
    try:
        marketplace().mark_payout_run_paid(run_id, console.typed("reference"), by=by(), token=console.given_token())
    except OperatorError as refusal:
        return _run_page(run_id, console.said(refusal)), 409
    flash(gettext("The run is marked as paid; each worker sees it on the dashboard."), "success")
    return redirect(url_for("operator.payout", run_id=run_id), 303)


@operator.route("/payouts/<entity:run_id>/cancel", methods=["GET", "POST"])
@freshly
def cancel_payout(run_id: str) -> ResponseReturnValue:
    """Ask, then cancel a run."""
    if request.method == "POST":
        marketplace().cancel_payout_run(run_id, by=by(), token=console.given_token())
        flash(gettext("The run is cancelled; what was in it can go into another run."), "success")
        return redirect(url_for("operator.payout", run_id=run_id), 303)
    run = marketplace().payout_run(run_id)
    return render_template("marketplace/operator/cancel_payout.html", run=run, token=console.new_token())


def _payouts_page(day: str = "", error: str = "") -> str:
    return render_template(
        "marketplace/operator/payouts.html",
        owed=marketplace().open_earnings(),
        runs=marketplace().payout_runs(page=console.page_number()),
        day=day or _yesterday().isoformat()[:10],
        token=console.new_token(),
        error=error,
    )


def _run_page(run_id: str, error: str = "") -> str:
    return render_template(
        "marketplace/operator/payout.html",
        run=marketplace().payout_run(run_id),
        lines=marketplace().payout_lines(run_id, page=console.page_number()),
        token=console.given_token() or console.new_token(),
        reference=console.typed("reference"),
        error=error,
        most_reference=MOST_REFERENCE,
    )


def _end_of(day: str) -> datetime:
    """Return the end of a day in UTC, now for today.

    Raises OperatorError for what is no day, and days to come.
    """
    try:
        wanted = datetime.fromisoformat(day).date()
    except ValueError as error:
        raise OperatorError(
            words("The last day is a date such as 2026-12-31, not “%(text)s”.", text=day[:40])
        ) from error
    now = marketplace().clock.now()
    if wanted > now.date():
        raise OperatorError(words("The last day is today at the latest, not %(day)s.", day=wanted))
    return min(now, datetime.combine(wanted, time(), UTC) + timedelta(days=1))


def _yesterday() -> datetime:
    return marketplace().clock.now() - timedelta(days=1)
