"""``dynahit payments plan | approve | compensate | budget``: what may be spent, what is owed, who lets it be paid."""

from __future__ import annotations

import json
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import click
from flask.cli import AppGroup, with_appcontext
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.cli.payment_output import bonuses_in_words, plan_json, show_plan
from app.extensions import db
from app.operations.approve_payouts import (
    ToApprove,
    approve_payouts,
    check_password,
    payouts_to_approve,
)
from app.operations.budgets import BudgetChange, budget_lines, plan_budget, read_amount, read_scope, set_budget
from app.operations.compensate import CompensationPlan, owe_compensation, plan_compensation
from app.operations.plan_payouts import plan_payouts
from app.operations.settle import plan_settlement
from app.services import services
from hits.errors import NotFound
from hits.money import ZERO, display, usd
from payments.budgets import BudgetLine

_PLAN = click.option("--plan", "plan_only", is_flag=True, help="Show what it would do, and change nothing.")
_YES = click.option("--yes", is_flag=True, help="Don't ask.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
_BY = click.option("--by", default="command line", help="Who asks for it, for the audit trail.")


def add_to(group: AppGroup) -> None:
    """Add these commands to ``dynahit payments``."""
    for command in (plan, approve, compensate, budget):
        group.add_command(command)


@click.command("plan", short_help="Plan every bonus that is owed.")
@with_appcontext
@_PLAN
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def plan(plan_only: bool, as_json: bool) -> None:
    """Plan every bonus that is owed, and promise it within the budgets. Pays nothing; `jobs run` does it too."""
    here, session = services(), db.session()
    if plan_only:
        found = plan_settlement(session, here.mturk, here.clock, approval_limit=here.settings.approval_limit)
        if as_json:
            click.echo(json.dumps(plan_json(found), indent=2))
        else:
            show_plan(found, Console())
            click.echo("This is a plan. Nothing was changed.")
        return
    done = plan_payouts(session, here.clock, endpoint=here.mturk.endpoint, approval_limit=here.settings.approval_limit)
    if as_json:
        click.echo(json.dumps(asdict(done), indent=2))
        return
    click.echo(
        f"Planned {bonuses_in_words(done.new)}; {done.followed} changed with what they are owed for;"
        f" {done.approved} may be paid now; {done.released} batches gave back what they can't need."
    )


@click.command("approve")
@with_appcontext
@click.argument("references", metavar="[REFERENCE]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that wait, as they are shown.")
@click.option("--by", metavar="NAME", help="Your account (dynahit staff), with the role finance.")
@click.option(
    "--password",
    envvar="DYNAHIT_STAFF_PASSWORD",
    help="Your password; asked for when it is left out, or read from DYNAHIT_STAFF_PASSWORD.",
)
@_PLAN
@_YES
@_JSON
def approve(
    references: tuple[str, ...],
    everything: bool,
    by: str | None,
    password: str | None,
    plan_only: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Approve payments above DYNAHIT_APPROVAL_LIMIT. Two people stand behind each; who asked for it is neither."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    here, session = services(), db.session()
    limit, endpoint = here.settings.approval_limit, here.mturk.endpoint
    waiting = payouts_to_approve(session, here.clock, endpoint=endpoint, limit=limit)
    session.rollback()
    if plan_only or not (references or everything):
        _show_waiting(waiting, limit, as_json=as_json)
        return
    if not by:
        raise click.UsageError("Say who approves: --by NAME.")
    chosen = [one for one in waiting if everything or one.reference in references]
    missing = sorted(set(references) - {one.reference for one in chosen})
    if missing:
        raise NotFound(f"{missing[0]} does not wait for an approval. `dynahit payments approve` lists what does.")
    if not as_json:
        _show_waiting(chosen, limit, as_json=False)
    if not chosen:
        return
    total = sum((one.amount for one in chosen), ZERO)
    if not yes:
        click.confirm(f"Approve {bonuses_in_words(len(chosen))} of {display(total)} as {by}?", abort=True)
    check_password(session, here.clock, by, password or click.prompt("Password", hide_input=True))
    shown = {one.reference: one.digest for one in chosen}
    done = approve_payouts(session, here.clock, shown, by=by, endpoint=endpoint, limit=limit)
    if as_json:
        click.echo(json.dumps({"approved": done.approved, "amount": str(done.amount), "free": done.free}, indent=2))
        return
    click.echo(
        f"Approved {bonuses_in_words(done.approved)} of {display(done.amount)}; {done.free} may be paid now."
        " `dynahit payments settle` pays them."
    )


def _show_waiting(waiting: list[ToApprove], limit: Decimal | None, *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                **{key: value for key, value in asdict(one).items() if key != "planned_at"},
                "planned_at": one.planned_at.isoformat(),
                "amount": str(one.amount),
                "fee": str(one.fee),
            }
            for one in waiting
        ]
        click.echo(json.dumps({"limit": None if limit is None else str(limit), "waiting": rows}, indent=2))
        return
    if limit is None:
        click.echo("No approval is asked for. DYNAHIT_APPROVAL_LIMIT sets the amount above which two people are.")
        return
    if not waiting:
        click.echo(f"Nothing above {display(limit)} waits for an approval.")
        return
    table = Table(title="Waiting for an approval", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("reference", no_wrap=True)
    table.add_column("worker", no_wrap=True)
    table.add_column("what for")
    table.add_column("bonus", justify="right", no_wrap=True)
    table.add_column("still", justify="right")
    for one in waiting:
        names = ", ".join((*(["asked by " + one.requested_by] if one.requested_by else []), *one.approved_by))
        what = one.reason + (f" ({names})" if names else "")
        table.add_row(
            one.reference, one.worker, escape(what), display(one.amount), f"{one.missing} to go", end_section=True
        )
    Console().print(table)


@click.command("compensate")
@with_appcontext
@click.argument("who", metavar="ASSIGNMENT|WORKER")
@click.option("--hit", "hit_id", metavar="HIT", help="The HIT, for a WORKER whose page never opened here.")
@click.option("--amount", metavar="DOLLARS", help="[default: the reward of the HIT]")
@click.option("--cause", required=True, help="What went wrong, as the worker reads it.")
@_BY
@_PLAN
@_YES
@_JSON
def compensate(
    who: str, hit_id: str | None, amount: str | None, cause: str, by: str, plan_only: bool, yes: bool, as_json: bool
) -> None:
    """Owe a worker who could not hand in work through our fault. `settle` pays it, by a HIT of their own if need be."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    here, session = services(), db.session()
    dollars = None if amount is None else usd(amount)
    found = plan_compensation(session, here.clock, who, dollars, cause, hit_id=hit_id)
    if plan_only:
        click.echo(json.dumps(_compensation_json(found), indent=2) if as_json else _compensation_words(found))
        return
    if not as_json:
        click.echo(_compensation_words(found))
    if not yes:
        click.confirm("Owe it?", abort=True)
    payout = owe_compensation(session, here.clock, who, dollars, cause, by=by, hit_id=hit_id)
    if as_json:
        click.echo(
            json.dumps(
                {**_compensation_json(found), "reference": payout.reference, "state": payout.state.value}, indent=2
            )
        )
        return
    click.echo(f"{payout.reference} is {payout.state.value.replace('_', ' ')}. `dynahit payments settle` goes on.")


def _compensation_json(found: CompensationPlan) -> dict[str, Any]:
    return {**asdict(found), "amount": str(found.amount), "fee": str(found.fee)}


def _compensation_words(found: CompensationPlan) -> str:
    way = "as a bonus on the work that came in" if found.by_bonus else "by a HIT that only this worker can take"
    return (
        f"{found.worker} in round {found.round} gets {display(found.amount)} (fee {display(found.fee)}) {way}:"
        f" “{found.reason}”"
    )


budget = AppGroup("budget", help="Say how much may be spent, and for whom.")


@budget.command("show")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def show(as_json: bool) -> None:
    """Show each budget and cap with what is spent or set aside of it."""
    lines = budget_lines(db.session(), services().clock)
    if as_json:
        click.echo(json.dumps([_line_json(line) for line in lines], indent=2))
        return
    table = Table(title="Budgets and caps", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("for", no_wrap=True)
    for head in ("limit", "spent or set aside", "left"):
        table.add_column(head, justify="right")
    for line in lines:
        table.add_row(
            escape(_name(line)), _dollars(line.most, "no limit"), _dollars(line.committed), _dollars(line.left)
        )
    Console().print(table)


@budget.command("set")
@click.argument("scope", metavar="project|round|day|worker|worker-day|assignment")
@click.argument("rest", metavar="[NAME] DOLLARS|none", nargs=-1, required=True)
@_BY
@_PLAN
@_YES
@_JSON
def set_(scope: str, rest: tuple[str, ...], by: str, plan_only: bool, yes: bool, as_json: bool) -> None:
    """Set the most that may be committed; none takes the limit away.

    NAME is a round (sentiment/1), a day (2026-11-30) or a pseudonym; without it the limit holds for each day or worker.
    Money is counted from the moment it is set aside. Caps for workers defer bonuses and never touch base pay.
    """
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    if len(rest) > 2:
        raise click.UsageError(f"{len(rest)} words after {scope}; at most a name and an amount are possible.")
    session, clock = db.session(), services().clock
    of, key, most = read_scope(scope), rest[0] if len(rest) == 2 else "", read_amount(rest[-1])
    change = plan_budget(session, of, key, most)
    if plan_only:
        click.echo(json.dumps(_change_json(change), indent=2) if as_json else _change_words(change))
        return
    if not as_json:
        click.echo(_change_words(change))
    if not yes:
        click.confirm("Set it?", abort=True)
    set_budget(session, clock, of, key, most, by=by)
    click.echo(json.dumps(_change_json(change), indent=2) if as_json else "Set.")


def _name(line: BudgetLine) -> str:
    scope = line.scope.value.replace("_", " ")
    return f"{scope} {line.key}" if line.key else scope


def _dollars(amount: Decimal | None, otherwise: str = "") -> str:
    return otherwise if amount is None else display(amount)


def _change_words(change: BudgetChange) -> str:
    before, after = change.before, change.after
    words = f"{_name(after)}: {_dollars(before.most, 'no limit')} -> {_dollars(after.most, 'no limit')}."
    if after.committed is not None:
        words += f" {display(after.committed)} are spent or set aside."
        if after.most is not None and after.committed > after.most:
            words += " That is more than the new limit: nothing is taken back, and nothing new is committed."
    return words


def _line_json(line: BudgetLine) -> dict[str, Any]:
    amounts = {"limit": line.most, "committed": line.committed, "left": line.left}
    return {
        "scope": line.scope.value,
        "key": line.key,
        **{name: None if amount is None else str(amount) for name, amount in amounts.items()},
    }


def _change_json(change: BudgetChange) -> dict[str, Any]:
    return {"before": _line_json(change.before), "after": _line_json(change.after)}
