"""Accounts of workers and requesters: to find, to look at, to top up, to disable."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from flask import abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.marketplace import console, sessions
from app.marketplace.extensions import marketplace, settings
from app.marketplace.languages import gettext
from app.marketplace.operator.console import by, freshly, operator
from app.marketplace.requester.account import KINDS
from hits.marketplace.console_views import WorkerAccount
from hits.marketplace.errors import NothingThere, OperatorError
from hits.marketplace.oversight import TRAITS
from hits.marketplace.words import words

MOST_INVITATIONS = 50


@operator.get("/")
@sessions.for_operators
def overview() -> ResponseReturnValue:
    """Show what waits for an operator."""
    engine = marketplace()
    return render_template(
        "marketplace/operator/overview.html",
        disputes=engine.disputes(),
        reports=engine.reports(page_size=1),
        owed=engine.open_earnings(),
        runs=engine.payout_runs(),
        workers=engine.worker_accounts(),
        requesters=engine.requester_accounts(),
        log=engine.audit_log(),
    )


@operator.get("/workers")
@sessions.for_operators
def workers() -> ResponseReturnValue:
    """Find workers."""
    query = console.asked("q")
    found = marketplace().worker_accounts(query, page=console.page_number())
    return render_template("marketplace/operator/workers.html", found=found, query=query)


@operator.get("/workers/<entity:worker_id>")
@sessions.for_operators
def worker(worker_id: str) -> ResponseReturnValue:
    """Show one worker."""
    return render_template(
        "marketplace/operator/worker.html",
        account=_worker(worker_id),
        payouts=marketplace().worker_payouts(worker_id),
        log=marketplace().audit_log(about=worker_id),
    )


@operator.post("/workers/<entity:worker_id>/traits")
@sessions.for_operators
def set_traits(worker_id: str) -> ResponseReturnValue:
    """Set what the system's qualifications know of a worker: master, adult, where they live."""
    account = _worker(worker_id).worker
    for trait in TRAITS:
        value = request.form.get(trait) == "1"
        if value != getattr(account, trait):
            marketplace().set_worker_trait(worker_id, trait, value, by=by())
    country, subdivision = console.typed("country").upper() or None, console.typed("subdivision").upper() or None
    try:
        if (country, subdivision) != (account.country, account.subdivision):
            marketplace().set_worker_locale(worker_id, country, subdivision, by=by())
    except OperatorError as refusal:
        flash(console.said(refusal), "error")
    else:
        flash(gettext("Stored."), "success")
    return redirect(url_for("operator.worker", worker_id=worker_id), 303)


@operator.route("/workers/<entity:worker_id>/disable", methods=["GET", "POST"])
@freshly
def disable_worker(worker_id: str) -> ResponseReturnValue:
    """Ask, then disable a worker's account, or enable it again."""
    account = _worker(worker_id)
    if request.method == "POST":
        disabled = request.form.get("disabled") == "1"
        marketplace().set_worker_disabled(worker_id, disabled, by=by())
        flash(gettext("The account is disabled.") if disabled else gettext("The account is open again."), "success")
        return redirect(url_for("operator.worker", worker_id=worker_id), 303)
    return render_template("marketplace/operator/disable_worker.html", account=account)


@operator.get("/requesters")
@sessions.for_operators
def requesters() -> ResponseReturnValue:
    """Find requesters."""
    query = console.asked("q")
    found = marketplace().requester_accounts(query, page=console.page_number())
    return render_template("marketplace/operator/requesters.html", found=found, query=query)


@operator.get("/requesters/<entity:requester_id>")
@sessions.for_operators
def requester(requester_id: str) -> ResponseReturnValue:
    """Show one requester with the lines of the account."""
    return render_template(
        "marketplace/operator/requester.html",
        account=marketplace().requester_account(requester_id),
        lines=marketplace().account_lines(requester_id, page=console.page_number()),
        keys=marketplace().access_keys(requester_id),
        log=marketplace().audit_log(about=requester_id),
        kinds=KINDS,
    )


@operator.route("/requesters/<entity:requester_id>/top-up", methods=["GET", "POST"])
@freshly
def top_up(requester_id: str) -> ResponseReturnValue:
    """Ask for an amount, say what it makes of the balance, then add it, once for each form."""
    account, error = marketplace().requester_account(requester_id), ""
    text, note, amount = console.typed("amount").removeprefix("$").replace(",", ""), console.typed("note"), Decimal(0)
    if request.method == "POST":
        try:
            amount = Decimal(text)
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite() or not 0 < amount < 10**9 or amount != amount.quantize(Decimal("0.01")):
            error = gettext("An amount of dollars and cents, such as 250.00.")
        elif request.form.get("step") == "sure":
            marketplace().operator_top_up(requester_id, amount, note, by=by(), token=console.given_token())
            said = {"amount": f"${amount:,.2f}", "name": account.requester.name}
            flash(gettext("%(amount)s was added to the account of %(name)s.", **said), "success")
            return redirect(url_for("operator.requester", requester_id=requester_id), 303)
    return render_template(
        "marketplace/operator/top_up.html",
        account=account,
        text=text,
        note=note,
        amount=amount,
        error=error,
        sure=request.method == "POST" and not error,
        token=console.given_token() or console.new_token(),
    ), (422 if error else 200)


@operator.route("/requesters/<entity:requester_id>/disable", methods=["GET", "POST"])
@freshly
def disable_requester(requester_id: str) -> ResponseReturnValue:
    """Ask, then disable a requester's account, or enable it again."""
    account = marketplace().requester_account(requester_id)
    if request.method == "POST":
        disabled = request.form.get("disabled") == "1"
        marketplace().set_requester_disabled(requester_id, disabled, by=by())
        flash(gettext("The account is disabled.") if disabled else gettext("The account is open again."), "success")
        return redirect(url_for("operator.requester", requester_id=requester_id), 303)
    return render_template("marketplace/operator/disable_requester.html", account=account)


@operator.route("/invitations", methods=["GET", "POST"])
@sessions.for_operators
def invitations() -> ResponseReturnValue:
    """List the invitations, and make new ones."""
    made: list[str] = []
    if request.method == "POST":
        count = console.whole_number("count", 1, MOST_INVITATIONS)
        if count is None:
            abort(400)
        note = console.typed("note")[:200]
        made = [marketplace().create_invitation(note) for _ in range(count)]
        marketplace().record_act("invitations made", "invitation", made[0], by=by(), count=str(count), note=note)
    every = marketplace().invitations()
    return render_template(
        "marketplace/operator/invitations.html",
        made=[f"{settings().site_url}/join?code={code}" for code in made],
        open=[one for one in reversed(every) if one.used_at is None][:200],
        used=sum(one.used_at is not None for one in every),
        most=MOST_INVITATIONS,
    ), (201 if made else 200)


@operator.get("/audit")
@sessions.for_operators
def audit() -> ResponseReturnValue:
    """Show the audit log, all, about somebody, or of one kind of action."""
    about, action = console.asked("about"), console.asked("action")
    return render_template(
        "marketplace/operator/audit.html",
        log=marketplace().audit_log(about=about, action=action, page=console.page_number()),
        about=about,
        action=action,
        actions=[("", gettext("Anything")), *((one, one) for one in marketplace().audit_actions())],
    )


def _worker(worker_id: str) -> WorkerAccount:
    """Return the worker with this id; the engine would take a user name for one too.

    Raises NothingThere.
    """
    account = marketplace().worker_account(worker_id)
    if account.worker.worker_id != worker_id:
        raise NothingThere(words("There is no worker “%(id)s”.", id=worker_id))
    return account
