"""``dynahit payments``: pay bonuses, report the month, hold the books against the marketplace."""

from __future__ import annotations

import json

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from app.cli import payment_commitments, payment_reports
from app.cli.payment_output import (
    bonuses_in_words,
    plan_json,
    settlement_json,
    show_plan,
    show_settlement,
    standing_json,
    standing_rows,
    todo,
)
from app.cli.payment_reports import standing_now
from app.extensions import db
from app.operations.compensate import Compensated, offer_compensations
from app.operations.settle import Result, plan_settlement
from app.operations.settle import settle as settle_bonuses
from app.services import services
from hits.errors import InvalidInput
from hits.money import display, usd
from payments.ledger import record_deposit

group = AppGroup("payments", help="Pay bonuses, report, reconcile.")
payment_reports.add_to(group)
payment_commitments.add_to(group)


@group.command("settle")
@click.option("--plan", "plan_only", is_flag=True, help="Show who is owed what, and change nothing.")
@click.option("--limit", type=click.IntRange(min=1), help="Pay at most this many bonuses.")
@click.option("--retry", is_flag=True, help="Try failed ones again as well.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
def settle(plan_only: bool, limit: int | None, retry: bool, yes: bool, as_json: bool) -> None:
    """Pay every bonus that is owed. Running it again never pays one twice."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    here, session, console = services(), db.session(), Console()
    above = here.settings.approval_limit
    plan = plan_settlement(session, here.mturk, here.clock, approval_limit=above)
    if plan_only:
        if as_json:
            click.echo(json.dumps(plan_json(plan), indent=2))
        else:
            show_plan(plan, console)
            click.echo("This is a plan. Nothing was changed; leave --plan out to pay.")
        return
    if not as_json:
        show_plan(plan, console)
    asked = len(plan.lines) + (plan.failed if retry else 0)
    asked = asked if limit is None else min(limit, asked)
    if (asked or plan.offers) and not yes:
        further = f" and offer {len(plan.offers)} HITs that pay compensations" if plan.offers else ""
        click.confirm(f"Pay {bonuses_in_words(asked)}{further} on {here.mturk.endpoint}?", abort=True)
    # What became due since the plan was shown is not paid unasked.
    if as_json:
        settlement = settle_bonuses(
            session, here.mturk, here.clock, limit=asked, retry_failed=retry, approval_limit=above
        )
        click.echo(json.dumps(settlement_json(settlement), indent=2))
    else:
        columns = (TextColumn("Paying bonuses"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=Console(stderr=True), disable=not asked) as progress:
            bar = progress.add_task("", total=asked)
            settlement = settle_bonuses(
                session,
                here.mturk,
                here.clock,
                limit=asked,
                retry_failed=retry,
                approval_limit=above,
                on_settled=lambda _one: progress.advance(bar),
            )
        show_settlement(settlement, console)
    offered = offer_compensations(session, here.mturk, here.settings, here.clock) if plan.offers else Compensated()
    if offered.offered or offered.findings:
        # Standard output is one JSON document where that was asked for.
        click.echo(f"Compensations offered: {offered.offered} HITs.", err=as_json)
        for finding in offered.findings:
            click.echo(finding, err=True)
    if settlement.stopped or offered.findings or settlement.of(Result.DOUBTFUL, Result.FAILED):
        raise SystemExit(1)


@group.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def status(as_json: bool) -> None:
    """Show what is owed, paid and in doubt now."""
    now = standing_now()
    if as_json:
        click.echo(json.dumps(standing_json(now), indent=2))
        return
    table = Table("bonuses", "", "", title="Bonuses now")
    table.columns[1].justify = table.columns[2].justify = "right"
    for name, amount in standing_rows(now):
        table.add_row(name, str(amount.count), display(amount.amount))
    Console().print(table)
    for words in todo(now):
        click.echo(words)


@group.command("deposit")
@click.argument("amount", metavar="DOLLARS")
@click.option("--reference", required=True, help="What it is known by, for example the invoice; booked once for each.")
@click.option("--plan", is_flag=True, help="Show what would be booked, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a line.")
def deposit(amount: str, reference: str, plan: bool, as_json: bool) -> None:
    """Book money that was put into the account on the marketplace. It moves no money."""
    dollars = usd(amount)
    if not dollars:
        raise InvalidInput("A deposit of $0.00 is none. Write what was put into the account.")
    if not 1 <= len(reference) <= 80:
        raise InvalidInput(f"The reference has {len(reference)} characters; 1 to 80 are possible.")
    here = services()
    session = db.session()
    # Booking tells whether the reference is booked with another amount, so that a plan does it and takes it back.
    record_deposit(session, here.mturk.endpoint, dollars, reference=reference, now=here.clock.now())
    if plan:
        session.rollback()
    else:
        session.commit()
    if as_json:
        shown = {"amount": str(dollars), "endpoint": here.mturk.endpoint, "reference": reference, "booked": not plan}
        click.echo(json.dumps(shown, indent=2))
        return
    booked = "Would be booked" if plan else "Booked"
    click.echo(f"{booked}: {display(dollars)} put into the account on {here.mturk.endpoint} ({reference}).")
    if plan:
        click.echo("This is a plan. Nothing was changed; leave --plan out to book it.")
