"""The finance pages' endpoints."""

from __future__ import annotations

from flask import Blueprint, Response, render_template, request
from flask.typing import ResponseReturnValue

from app.extensions import db
from app.finance.figures import GROUPS, payout_detail, payout_page, standing_now
from app.services import services
from hits.errors import NotFound
from hits.money import from_cents
from payments.models import PayoutState
from payments.month import Month
from payments.report import month_report, months, report_table
from payments.tables import csv_lines

bp = Blueprint("finance", __name__, url_prefix="/finance")


@bp.get("")
def index() -> ResponseReturnValue:
    """Show what is owed and paid now, and one month by round and by worker."""
    session = db.session()
    month = _month()
    known = months(session)
    return render_template(
        "finance/index.html",
        now=standing_now(session),
        groups=GROUPS,
        states=PayoutState,
        report=month_report(session, month),
        month=month,
        month_options=[(str(one), one.words) for one in (known if month in known else [month, *known])],
    )


@bp.get("/payouts/<group>")
def payouts(group: str) -> ResponseReturnValue:
    """List the payouts behind one of the figures, or all of them."""
    session = db.session()
    if group != "all" and group not in GROUPS:
        raise NotFound(f"There is no table {group!r}. The tables are all, {', '.join(GROUPS)}.")
    words, states = GROUPS.get(group, ("all", tuple(PayoutState)))
    number = request.args.get("page", "1")
    page = payout_page(session, states, int(number) if number.isdecimal() and len(number) < 9 else 0)
    return render_template(
        "finance/payouts.html", group=group, words=words, page=page, groups=GROUPS, now=standing_now(session)
    )


@bp.get("/payout/<reference>")
def payout(reference: str) -> ResponseReturnValue:
    """Show one payout: the sentence that its worker reads, the statement it is for, its postings."""
    return render_template("finance/payout.html", detail=payout_detail(db.session(), reference), dollars=from_cents)


@bp.get("/report.csv")
def report_file() -> ResponseReturnValue:
    """Give a month by round and worker as a CSV file."""
    month = _month()
    return Response(
        csv_lines(report_table(month_report(db.session(), month))),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="dynahit-{month}.csv"'},
    )


def _month() -> Month:
    """Return the month that the address asks for, else this one. Raises InvalidMonth."""
    text = request.args.get("month", "")
    return Month.parse(text) if text else Month.of(services().clock.now())
