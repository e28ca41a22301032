"""``dynahit payments``: pay bonuses, report the month, hold the books against the marketplace."""

from __future__ import annotations

import json
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from app.extensions import db
from app.operations.reconcile import Reconciliation
from app.operations.reconcile import reconcile as reconcile_books
from app.operations.settle import PlanLine, Result, Settlement, SettlePlan, plan_settlement
from app.operations.settle import settle as settle_bonuses
from app.services import services
from hits.errors import InvalidInput
from hits.money import display, usd
from payments.ledger import record_deposit
from payments.models import OWED, PayoutState
from payments.payouts import due_bonuses
from payments.report import Figures, Month, MonthReport, Standing, month_report, report_csv, report_rows, standing

group = AppGroup("payments", help="Pay bonuses, report, reconcile.")

_SHORT = 60


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
    plan = plan_settlement(session, here.mturk, here.clock)
    if plan_only:
        if as_json:
            click.echo(json.dumps(_plan_json(plan), indent=2))
        else:
            _show_plan(plan, console)
            click.echo("This is a plan. Nothing was changed; leave --plan out to pay.")
        return
    if not as_json:
        _show_plan(plan, console)
    if not plan.lines and not (retry and plan.untouched):
        settlement = settle_bonuses(session, here.mturk, here.clock, limit=limit, retry_failed=retry)
    else:
        if not yes:
            count = len(plan.lines) if limit is None else min(limit, len(plan.lines))
            click.confirm(f"Pay {_bonuses(count)} on {here.mturk.endpoint}?", abort=True)
        if as_json:
            settlement = settle_bonuses(session, here.mturk, here.clock, limit=limit, retry_failed=retry)
        else:
            columns = (TextColumn("Paying bonuses"), BarColumn(), MofNCompleteColumn())
            with Progress(*columns, console=Console(stderr=True)) as progress:
                bar = progress.add_task("", total=min(len(plan.lines), limit or len(plan.lines)) or None)
                settlement = settle_bonuses(
                    session,
                    here.mturk,
                    here.clock,
                    limit=limit,
                    retry_failed=retry,
                    on_settled=lambda _one: progress.advance(bar),
                )
    if as_json:
        click.echo(json.dumps(_settlement_json(settlement), indent=2))
    else:
        _show_settlement(settlement, console)
    if settlement.stopped or settlement.of(Result.DOUBTFUL, Result.FAILED):
        raise SystemExit(1)


@group.command("report")
@click.option("--month", "month_text", metavar="YYYY-MM", help="By time of payment, in UTC. [default: this month]")
@click.option("--csv", "csv_path", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def report(month_text: str | None, csv_path: Path | None, as_json: bool) -> None:
    """Show a month's rewards, bonuses and fees, promised and paid, by round and by worker."""
    month = Month.parse(month_text) if month_text else Month.of(services().clock.now())
    session = db.session()
    found = month_report(session, month)
    now = _standing()
    if csv_path is not None:
        try:
            csv_path.write_text(report_csv(found), encoding="utf-8", newline="")
        except OSError as error:
            raise InvalidInput(f"{csv_path} can't be written: {error.strerror}. Choose another file.") from error
    if as_json:
        click.echo(json.dumps(_report_json(found, now), indent=2))
        return
    _show_report(found, now, Console())
    if csv_path is not None:
        click.echo(f"{len(found.lines)} rows, by round and worker, are in {csv_path}.")


@group.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def status(as_json: bool) -> None:
    """Show what is owed, paid and in doubt now."""
    now = _standing()
    if as_json:
        click.echo(json.dumps(_standing_json(now), indent=2))
        return
    table = Table("bonuses", "", "", title="Bonuses now")
    table.columns[1].justify = table.columns[2].justify = "right"
    for name, amount in _standing_rows(now):
        table.add_row(name, str(amount.count), display(amount.amount))
    Console().print(table)
    for words in _todo(now):
        click.echo(words)


@group.command("reconcile")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of lines.")
def reconcile(as_json: bool) -> None:
    """Compare ledger and outbox with the marketplace's bonuses, approvals and balance. Changes nothing.

    Prints one line when the books are clean; otherwise each finding with what to do, and exits with 1.
    """
    here = services()
    found = reconcile_books(db.session(), here.mturk)
    if as_json:
        click.echo(json.dumps(_reconciliation_json(found), indent=2))
    else:
        for finding in found.findings:
            click.echo(str(finding))
        if not found.findings:
            click.echo(str(found))
        if found.note:
            click.echo(found.note)
    if found.findings:
        raise SystemExit(1)


@group.command("deposit")
@click.argument("amount", metavar="DOLLARS")
@click.option("--reference", required=True, help="What it is known by, for example the invoice; booked once for each.")
def deposit(amount: str, reference: str) -> None:
    """Book money that was put into the account on the marketplace. It moves no money."""
    dollars = usd(amount)
    if not dollars:
        raise InvalidInput("A deposit of $0.00 is none. Write what was put into the account.")
    if not 1 <= len(reference) <= 80:
        raise InvalidInput(f"The reference has {len(reference)} characters; 1 to 80 are possible.")
    here = services()
    session = db.session()
    record_deposit(session, here.mturk.endpoint, dollars, reference=reference, now=here.clock.now())
    session.commit()
    click.echo(f"Booked: {display(dollars)} put into the account on {here.mturk.endpoint} ({reference}).")


def _standing() -> Standing:
    session = db.session()
    found = standing(session, [due.bonus.amount for due in due_bonuses(session)])
    session.rollback()
    return found


def _bonuses(count: int) -> str:
    return "1 bonus" if count == 1 else f"{count} bonuses"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def _show_plan(plan: SettlePlan, console: Console) -> None:
    if not plan.lines:
        click.echo("No bonus is waiting to be paid.")
    else:
        _lines_table("Bonuses to pay", plan.lines, console)
        totals = Table(show_header=False)
        totals.add_column()
        totals.add_column(justify="right")
        totals.add_row(_bonuses(len(plan.lines)), display(plan.bonuses))
        totals.add_row("Fees", display(plan.fees))
        totals.add_row("Total", display(plan.total), style="bold")
        totals.add_row("Balance", display(plan.balance))
        console.print(totals)
        if plan.missing:
            click.echo(
                f"The balance is {display(plan.missing)} short. Top up the account first, or pay a part: --limit."
            )
    if plan.untouched:
        _lines_table("Not paid now", plan.untouched, console)
        click.echo("Failed ones are tried again with --retry; held ones wait for the requester's decision on a flag.")


def _lines_table(title: str, lines: tuple[PlanLine, ...], console: Console) -> None:
    table = Table("worker", "round", "statement", "context", "goal → model", "votes", "state", title=title)
    table.add_column("bonus", justify="right")
    table.add_column("fee", justify="right")
    for line in lines:
        one = line.example
        table.add_row(
            *map(escape, (one.worker, one.round, _short(one.text), _short(one.context))),
            escape(f"{one.goal} → {one.model}"),
            escape(one.votes),
            line.state.value.replace("_", " "),
            display(line.amount),
            display(line.fee),
        )
    console.print(table)


def _show_settlement(settlement: Settlement, console: Console) -> None:
    if settlement.settled:
        table = Table("result", "worker", "reference", title="Settled")
        table.add_column("bonus", justify="right")
        table.add_column("cause")
        for one in settlement.settled:
            table.add_row(one.result.value, one.worker, one.reference, display(one.amount), escape(one.cause or ""))
        console.print(table)
    paid = settlement.of(Result.PAID, Result.FOUND)
    click.echo(f"Paid: {_bonuses(len(paid))}, {display(settlement.paid)}. Confirmed: {settlement.confirmed}.")
    if doubtful := settlement.of(Result.DOUBTFUL):
        click.echo(f"Doubtful: {len(doubtful)}. Settle again: each is looked up on the marketplace before it is sent.")
    if failed := settlement.of(Result.FAILED):
        click.echo(f"Failed: {len(failed)}. Mend the cause, then `dynahit payments settle --retry`.")
    if settlement.stopped:
        click.echo(settlement.stopped)
    if settlement.waiting:
        click.echo(f"Still waiting: {settlement.waiting}. `dynahit payments settle` goes on.")


def _show_report(found: MonthReport, now: Standing, console: Console) -> None:
    if not found.lines:
        click.echo(f"Nothing was paid or promised in {found.month.words}.")
    else:
        for name, groups in (("round", found.by_round), ("worker", found.by_worker)):
            table = Table(name, title=f"{found.month.words} by {name}", show_footer=True)
            heads = ("assignments", "rewards", "bonuses", "promised", "paid", "fees", "total")
            for head, cell in zip(heads, _figure_cells(found.totals), strict=True):
                table.add_column(head, footer=cell, justify="right")
            table.columns[0].footer = "total"
            for key, figures in groups.items():
                table.add_row(escape(key), *_figure_cells(figures))
            console.print(table)
    click.echo(
        f"Now: owed {display(now.of(*OWED).amount + now.not_planned.amount)}, "
        f"possible from examples still in validation {display(now.possible.amount)}."
    )
    for words in _todo(now):
        click.echo(words)


def _figure_cells(figures: Figures) -> tuple[str, ...]:
    return (
        str(figures.assignments),
        display(figures.rewards),
        str(figures.bonuses_paid),
        display(figures.promised),
        display(figures.bonuses),
        display(figures.fees),
        display(figures.total),
    )


def _standing_rows(now: Standing) -> list[tuple[str, Any]]:
    return [
        ("verified, not planned yet", now.not_planned),
        *((state.value.replace("_", " "), now.of(state)) for state in PayoutState),
        ("possible, still in validation", now.possible),
    ]


def _todo(now: Standing) -> list[str]:
    words = []
    if now.not_planned.count or now.of(PayoutState.PLANNED, PayoutState.SENDING, PayoutState.DOUBTFUL).count:
        words.append("`dynahit payments settle` pays what is owed and looks up what is doubtful.")
    if now.of(PayoutState.FAILED).count:
        words.append("Failed ones: `dynahit payments settle --plan` lists them; mend the cause, then settle --retry.")
    if now.of(PayoutState.HELD).count:
        words.append("Held ones wait for the requester's decision on a flag.")
    return words


def _dollars(amount: Decimal) -> str:
    """JSON has no decimal numbers that every reader keeps exact, so that money is text there: ``"0.30"``."""
    return str(amount)


def _plan_json(plan: SettlePlan) -> dict[str, Any]:
    return {
        "to_pay": [_line_json(line) for line in plan.lines],
        "not_paid_now": [_line_json(line) for line in plan.untouched],
        "bonuses": _dollars(plan.bonuses),
        "fees": _dollars(plan.fees),
        "total": _dollars(plan.total),
        "balance": _dollars(plan.balance),
        "missing": _dollars(plan.missing),
    }


def _line_json(line: PlanLine) -> dict[str, Any]:
    return {
        **asdict(line.example),
        "state": line.state.value,
        "bonus": _dollars(line.amount),
        "fee": _dollars(line.fee),
        "reason": line.reason,
    }


def _settlement_json(settlement: Settlement) -> dict[str, Any]:
    return {
        "settled": [
            {
                "reference": one.reference,
                "worker": one.worker,
                "bonus": _dollars(one.amount),
                "result": one.result.value,
                "reason": one.reason,
                "cause": one.cause,
            }
            for one in settlement.settled
        ],
        "paid": _dollars(settlement.paid),
        "confirmed": settlement.confirmed,
        "waiting": settlement.waiting,
        "stopped": settlement.stopped,
    }


def _figures_json(figures: Figures) -> dict[str, Any]:
    return {
        "assignments_approved": figures.assignments,
        "rewards": _dollars(figures.rewards),
        "bonuses_promised": _dollars(figures.promised),
        "bonuses_paid": figures.bonuses_paid,
        "bonuses": _dollars(figures.bonuses),
        "fees": _dollars(figures.fees),
        "total": _dollars(figures.total),
    }


def _report_json(found: MonthReport, now: Standing) -> dict[str, Any]:
    return {
        "month": str(found.month),
        "rows": [
            {key: _dollars(value) if isinstance(value, Decimal) else value for key, value in row.items()}
            for row in report_rows(found)
        ],
        "by_round": {key: _figures_json(figures) for key, figures in found.by_round.items()},
        "by_worker": {key: _figures_json(figures) for key, figures in found.by_worker.items()},
        "totals": _figures_json(found.totals),
        "now": _standing_json(now),
    }


def _standing_json(now: Standing) -> dict[str, Any]:
    return {
        name.replace(",", "").replace(" ", "_"): {"count": amount.count, "amount": _dollars(amount.amount)}
        for name, amount in _standing_rows(now)
    }


def _reconciliation_json(found: Reconciliation) -> dict[str, Any]:
    return {
        "clean": not found.findings,
        "findings": [
            {"kind": one.kind.value, "subject": one.subject, "what": one.what, "todo": one.todo}
            for one in found.findings
        ],
        "rewards": found.rewards,
        "reward_total": _dollars(found.reward_total),
        "bonuses": found.bonuses,
        "bonus_total": _dollars(found.bonus_total),
        "balance_checked": None if found.balance_checked is None else _dollars(found.balance_checked),
        "note": found.note,
    }
