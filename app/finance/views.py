"""The finance pages' endpoints."""

from __future__ import annotations

from flask import Blueprint, Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from flask_wtf.csrf import CSRFError

from app.errors import answer, trouble_of
from app.extensions import db
from app.finance.books import (
    EVENTS,
    audit_choices,
    audit_page,
    frozen,
    last_runs,
    month_options,
    page_number,
    spent_by_month,
    statement_page,
)
from app.finance.downloads import download, text_download
from app.finance.figures import GROUPS, payout_detail, payout_page, standing_now
from app.operations.approve_payouts import approve_payouts, payouts_to_approve
from app.operations.month_close import close_month as close_books
from app.services import services
from app.staff.access import fresh_password, refused
from hits.errors import NotFound
from hits.money import from_cents
from payments.beancount_export import beancount_lines
from payments.errors import MonthNotClosable
from payments.journal import journal_table, month_journal
from payments.models import PayoutState
from payments.month import Month
from payments.month_close import closed_month, closed_months, next_to_close
from payments.overview import overview
from payments.report import month_report, months, report_table
from payments.statement import statement, statement_table

bp = Blueprint("finance", __name__, url_prefix="/finance")


@bp.errorhandler(CSRFError)
def form_refused(error: CSRFError) -> ResponseReturnValue:
    """Keep in the audit trail that a form came from elsewhere, or from a session that is over."""
    if current_user.is_authenticated:
        refused("form.refused", f"page {request.endpoint}", why="no valid token")
    return answer(trouble_of(error))


@bp.get("")
def index() -> ResponseReturnValue:
    """Show where the money stands: in all, by round, by task, by month."""
    session = db.session()
    return render_template(
        "finance/index.html",
        found=overview(session),
        by_month=spent_by_month(session),
        now=standing_now(session),
        groups=GROUPS,
        states=PayoutState,
        runs=last_runs(session),
    )


@bp.get("/plots/<name>.svg")
def plot(name: str) -> ResponseReturnValue:
    """Draw one picture of the overview."""
    from app.finance import plots

    session = db.session()
    if name != "spent-by-month" and name not in plots.PLOTS:
        raise NotFound(f"There is no picture {name!r}. The pictures are spent-by-month, {', '.join(plots.PLOTS)}.")
    months_, found = spent_by_month(session), overview(session)
    # Drawing takes longer than reading, and needs no transaction.
    session.rollback()
    svg = plots.PLOTS[name](found) if name in plots.PLOTS else plots.spent_by_month(months_)
    return Response(svg, content_type="image/svg+xml")


@bp.get("/month")
def month() -> ResponseReturnValue:
    """Show one month by round and by worker: a closed one as it was frozen, with the months that were closed."""
    session = db.session()
    chosen = _month()
    closing = closed_month(session, chosen)
    return render_template(
        "finance/month.html",
        report=month_report(session, chosen),
        month=chosen,
        month_options=month_options(months(session), chosen),
        closing=closing,
        kept=None if closing is None else frozen(closing),
        closable=next_to_close(session, services().clock.now()),
        closed=closed_months(session),
    )


@bp.get("/month/<text>/close")
@fresh_password
def close_month(text: str) -> ResponseReturnValue:
    """Ask whether a month is to be closed for good."""
    chosen, session = Month.parse(text), db.session()
    closable = next_to_close(session, services().clock.now())
    if closable != chosen:
        raise MonthNotClosable(
            f"{chosen.words} can't be closed now"
            + (f"; {closable.words} comes first." if closable else ": no month that is over is open.")
        )
    return render_template("finance/close.html", month=chosen, report=month_report(session, chosen))


@bp.post("/month/<text>/close")
@fresh_password
def close_month_post(text: str) -> ResponseReturnValue:
    """Close a month for good."""
    chosen = Month.parse(text)
    try:
        closing = close_books(db.session(), services().clock, chosen, by=current_user.name)
    except MonthNotClosable as error:
        refused("month.close.refused", f"month {chosen}", why=str(error))
        raise
    flash(f"{chosen.words} is closed. The SHA-256 of its ledger is {closing.sha256}.")
    return redirect(url_for("finance.month", month=str(chosen)))


@bp.get("/payouts/<group>")
def payouts(group: str) -> ResponseReturnValue:
    """List the payouts behind one of the figures, or all of them."""
    session = db.session()
    if group != "all" and group not in GROUPS:
        raise NotFound(f"There is no table {group!r}. The tables are all, {', '.join(GROUPS)}.")
    words, states = GROUPS.get(group, ("all", tuple(PayoutState)))
    page = payout_page(session, states, page_number(request.args.get("page", "1")))
    return render_template(
        "finance/payouts.html", group=group, words=words, page=page, groups=GROUPS, now=standing_now(session)
    )


@bp.get("/payout/<reference>")
def payout(reference: str) -> ResponseReturnValue:
    """Show one payout: the sentence that its worker reads, the statement it is for, its postings."""
    return render_template("finance/payout.html", detail=payout_detail(db.session(), reference), dollars=from_cents)


@bp.get("/approvals")
def approvals() -> ResponseReturnValue:
    """List the payouts above the limit that wait for somebody's approval."""
    return _approvals()


@bp.post("/approvals")
@fresh_password
def approve() -> ResponseReturnValue:
    """Approve the chosen payouts as they were shown, all or none."""
    here = services()
    # A NUL byte is no text for PostgreSQL, and in no reference.
    chosen = [reference for reference in request.form.getlist("payout") if "\0" not in reference]
    if not chosen:
        return _approvals("Choose what you approve. Nothing was done."), 422
    shown = {reference: request.form.get(f"digest-{reference}", "") for reference in chosen}
    done = approve_payouts(
        db.session(),
        here.clock,
        shown,
        by=current_user.name,
        endpoint=here.mturk.endpoint,
        limit=here.settings.approval_limit,
    )
    flash(f"Approved: {done.approved}. The next dynahit payments settle pays those that have two approvals.")
    return redirect(url_for("finance.approvals"), 303)


def _approvals(error: str = "") -> str:
    here = services()
    limit = here.settings.approval_limit
    waiting = payouts_to_approve(db.session(), here.clock, endpoint=here.mturk.endpoint, limit=limit)
    return render_template("finance/approvals.html", waiting=waiting, limit=limit, error=error, me=current_user.name)


@bp.get("/workers/<pseudonym>")
def worker(pseudonym: str) -> ResponseReturnValue:
    """Show what one worker was promised and paid, with the sentences that the worker read."""
    found, page = statement_page(db.session(), pseudonym, page_number(request.args.get("page", "1")))
    return render_template("finance/worker.html", statement=found, page=page, events=EVENTS)


@bp.get("/workers/<pseudonym>/statement.<kind>")
def worker_file(pseudonym: str, kind: str) -> ResponseReturnValue:
    """Give a worker's statement as a file."""
    return download(statement_table(statement(db.session(), pseudonym)), kind, byte_order_mark=_bom())


@bp.get("/reconcile")
def reconcile() -> ResponseReturnValue:
    """Show what the last look at the books found, with the command that mends each finding."""
    return render_template(
        "finance/reconcile.html", runs=last_runs(db.session()), hours=services().settings.reconcile_hours
    )


@bp.get("/audit")
def audit_trail() -> ResponseReturnValue:
    """Show who did what, and what was refused."""
    session = db.session()
    who, action = request.args.get("who", ""), request.args.get("action", "")
    names, actions = audit_choices(session)
    return render_template(
        "finance/audit.html",
        page=audit_page(session, who, action, page_number(request.args.get("page", "1"))),
        who=who,
        action=action,
        names=names,
        actions=actions,
    )


@bp.get("/report.<kind>")
def report_file(kind: str) -> ResponseReturnValue:
    """Give a month by round and worker as a file."""
    return download(report_table(month_report(db.session(), _month())), kind, byte_order_mark=_bom())


@bp.get("/ledger.<kind>")
def ledger_file(kind: str) -> ResponseReturnValue:
    """Give the ledger of a month, or all of it, as a file; for beancount always all of it."""
    session = db.session()
    if kind == "beancount":
        return text_download(beancount_lines(session), "dynahit-ledger.beancount")
    table = month_journal(session, _month()) if request.args.get("month") else journal_table(session)
    return download(table, kind, byte_order_mark=_bom())


def _bom() -> bool:
    return request.args.get("bom") == "1"


def _month() -> Month:
    """Return the month that the address asks for, else this one. Raises InvalidMonth."""
    text = request.args.get("month", "")
    return Month.parse(text) if text else Month.of(services().clock.now())
