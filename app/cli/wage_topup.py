"""``dynahit hits topup``: pay what a batch's work fell short of its stated wage."""

from __future__ import annotations

import json
from decimal import Decimal

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.table import Table

from app.extensions import db
from app.operations.wage_topup import TopUpPlan, pay_topup, plan_topup
from app.services import services
from hits.money import display, usd


@click.command("topup", short_help="Pay what a batch's reward lacked of the wage.")
@click.argument("batch_id", metavar="BATCH", type=int)
@click.option("--hourly", metavar="DOLLARS", help="Pay up to this wage instead of the one that was stated.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what it would pay, and plan nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
@click.option("--by", default="command line", help="Who asks for it, for the audit trail.")
@with_appcontext
def topup(batch_id: int, hourly: str | None, plan_only: bool, yes: bool, as_json: bool, by: str) -> None:
    """Pay workers of BATCH, as bonuses, what their reward lacked of the stated hourly wage. Each HIT once."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    target = usd(hourly) if hourly is not None else None
    session, clock = db.session(), services().clock
    plan = plan_topup(session, clock, batch_id, hourly=target)
    if plan_only or not as_json:
        _show(plan, as_json)
    if plan_only:
        return
    if not plan.rows:
        if as_json:
            _show(plan, as_json)
        return
    if not yes:
        click.confirm(f"Plan {len(plan.rows)} bonuses of {display(plan.total)} in all?", abort=True)
    done = pay_topup(session, clock, batch_id, hourly=target, by=by)
    if as_json:
        _show(done, as_json)
        return
    click.echo(
        f"Planned {len(done.rows)} bonuses of {display(done.total)} in all. `dynahit payments settle` pays them."
    )


def _show(plan: TopUpPlan, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(plan.as_json(), indent=2))
        return
    console = Console()
    measured = "nothing submitted yet"
    if plan.wage.median is not None and plan.wage.mean is not None:
        measured = f"measured: median {_hourly(plan.wage.median)}, all together {_hourly(plan.wage.mean)}"
    console.print(f"Batch {plan.batch_id}: stated {_hourly(plan.wage.stated)}; {measured}.", highlight=False)
    if plan.rows:
        table = Table("assignment", "worker", "minutes", "bonus", title=f"Up to {_hourly(plan.hourly)}")
        for row in plan.rows:
            table.add_row(row.mturk_assignment_id, row.pseudonym, f"{row.seconds / 60:.1f}", display(row.amount))
        console.print(table)
        console.print(f"{display(plan.total)} for workers, {display(plan.fees)} of fees.", highlight=False)
    else:
        console.print("Nothing is missing.", highlight=False)
    if plan.wage.left_open:
        console.print(f"{plan.wage.left_open} were left open and count with the median.", highlight=False)
    if plan.before:
        console.print(f"{plan.before} were topped up before and stay as they are.", highlight=False)
    if plan.not_approved:
        console.print(f"{plan.not_approved} more wait for their approval first.", highlight=False)


def _hourly(amount: Decimal) -> str:
    return f"{display(amount)} an hour"
