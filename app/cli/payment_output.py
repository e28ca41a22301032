"""How ``dynahit payments`` shows plans, results, reports and findings: as tables for people, as JSON for programs."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.operations.reconcile import Reconciliation
from app.operations.settle import PlanLine, Result, Settlement, SettlePlan
from hits.money import display
from payments.models import OWED, PayoutState
from payments.report import Figures, MonthReport, Standing, report_rows

_SHORT = 60


def bonuses_in_words(count: int) -> str:
    return "1 bonus" if count == 1 else f"{count} bonuses"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def show_plan(plan: SettlePlan, console: Console) -> None:
    if not plan.lines and not plan.offers:
        click.echo("No bonus is waiting to be paid.")
    else:
        if plan.lines:
            _lines_table("Bonuses to pay", plan.lines, console)
        totals = Table(show_header=False)
        totals.add_column()
        totals.add_column(justify="right")
        totals.add_row(bonuses_in_words(len(plan.lines) + len(plan.offers)), display(plan.bonuses))
        totals.add_row("Fees", display(plan.fees))
        totals.add_row("Total", display(plan.total), style="bold")
        totals.add_row("Balance", display(plan.balance))
        console.print(totals)
        if plan.missing:
            click.echo(
                f"The balance is {display(plan.missing)} short. Top up the account first, or pay a part: --limit."
            )
    if plan.offers:
        _lines_table("Paid by HITs of their own", plan.offers, console)
    if plan.untouched:
        _lines_table("Not paid now", plan.untouched, console)
        for words in why_not(plan):
            click.echo(words)


def why_not(plan: SettlePlan) -> list[str]:
    """Return what each kind of row that is not paid now waits for."""
    states = {line.state for line in plan.untouched}
    words = {
        PayoutState.FAILED: "Failed ones are tried again with --retry.",
        PayoutState.HELD: "Held ones wait for the requester's decision on a flag.",
        PayoutState.PLANNED: "Planned ones are above the limit: `dynahit payments approve`.",
        PayoutState.NEEDS_COMPENSATION: "Compensations above the limit wait for `dynahit payments approve`.",
        PayoutState.NOT_SUBMITTED: "Not submitted: the work that they hang on has not come in.",
        PayoutState.NO_BUDGET: "No budget: raise one with `dynahit payments budget set`.",
        PayoutState.COMPENSATING: "Compensating: a HIT that pays waits for its worker.",
    }
    return [sentence for state, sentence in words.items() if state in states]


def _table(title: str, *, show_footer: bool = False) -> Table:
    """Return a table whose ids stay whole in a terminal of 80 columns."""
    return Table(title=title, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_footer=show_footer)


def _lines_table(title: str, lines: tuple[PlanLine, ...], console: Console) -> None:
    table = _table(title)
    table.add_column("worker", min_width=max(len(line.worker) for line in lines))
    table.add_column("what for")
    for head in ("bonus", "fee"):
        table.add_column(head, justify="right", no_wrap=True)
    for line in lines:
        worker = (line.worker, line.round, line.state.value.replace("_", " "))
        table.add_row(
            escape("\n".join(worker)),
            escape("\n".join(_what_for(line))),
            display(line.amount),
            display(line.fee),
            end_section=True,
        )
    console.print(table)


def _what_for(line: PlanLine) -> tuple[str, ...]:
    one = line.example
    if one is None:
        return (line.reason,)
    return (
        f"“{_short(one.text)}”",
        f"context: {_short(one.context)}",
        f"writer: {one.goal}, model: {one.model}, readers: {one.votes}",
    )


def show_settlement(settlement: Settlement, console: Console) -> None:
    if settlement.settled:
        table = _table("Settled")
        for head in ("result", "worker", "reference"):
            table.add_column(head, no_wrap=True)
        table.add_column("bonus", justify="right", no_wrap=True)
        table.add_column("cause")
        for one in settlement.settled:
            table.add_row(one.result.value, one.worker, one.reference, display(one.amount), escape(one.cause or ""))
        console.print(table)
    paid = settlement.of(Result.PAID, Result.FOUND)
    click.echo(f"Paid: {bonuses_in_words(len(paid))}, {display(settlement.paid)}. Confirmed: {settlement.confirmed}.")
    if doubtful := settlement.of(Result.DOUBTFUL):
        click.echo(f"Doubtful: {len(doubtful)}. Settle again: each is looked up on the marketplace before it is sent.")
    if failed := settlement.of(Result.FAILED):
        click.echo(f"Failed: {len(failed)}. Mend the cause, then `dynahit payments settle --retry`.")
    if settlement.stopped:
        click.echo(settlement.stopped)
    if settlement.waiting:
        click.echo(f"Still waiting: {settlement.waiting}. `dynahit payments settle` goes on.")


def show_report(found: MonthReport, now: Standing, console: Console) -> None:
    if not found.lines:
        click.echo(f"Nothing was paid or promised in {found.month.words}.")
    else:
        for name, groups in (("round", found.by_round), ("worker", found.by_worker)):
            table = _table(f"{found.month.words} by {name}", show_footer=True)
            table.add_column(name, footer="total", min_width=max(map(len, groups)))
            heads = ("approved", "rewards", "bonuses", "promised", "paid", "fees", "total")
            for head, cell in zip(heads, _figure_cells(found.totals), strict=True):
                table.add_column(head, footer=cell, justify="right", overflow="fold")
            for key, figures in groups.items():
                table.add_row(escape(key), *_figure_cells(figures))
            console.print(table)
    click.echo(
        f"Now: owed {display(now.of(*OWED).amount + now.not_planned.amount)}, "
        f"possible from examples still in validation {display(now.possible.amount)}."
    )
    for words in todo(now):
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


def standing_rows(now: Standing) -> list[tuple[str, Any]]:
    return [
        ("verified, not planned yet", now.not_planned),
        *((state.value.replace("_", " "), now.of(state)) for state in PayoutState),
        ("possible, still in validation", now.possible),
    ]


def todo(now: Standing) -> list[str]:
    words = []
    if (
        now.not_planned.count
        or now.of(PayoutState.PLANNED, PayoutState.APPROVED, PayoutState.SENDING, PayoutState.DOUBTFUL).count
    ):
        words.append("`dynahit payments settle` pays what is owed and looks up what is doubtful.")
    if now.of(PayoutState.FAILED).count:
        words.append("Failed ones: `dynahit payments settle --plan` lists them; mend the cause, then settle --retry.")
    if now.of(PayoutState.HELD).count:
        words.append("Held ones wait for the requester's decision on a flag.")
    if now.of(PayoutState.PLANNED).count:
        words.append("Planned ones above DYNAHIT_APPROVAL_LIMIT wait for `dynahit payments approve`.")
    if now.of(PayoutState.NO_BUDGET).count:
        words.append("Ones without budget: `dynahit payments budget show`, then `... budget set`.")
    if now.of(PayoutState.NEEDS_COMPENSATION).count:
        words.append("Compensations: `dynahit payments settle` offers each worker a HIT that pays.")
    return words


def _dollars(amount: Decimal) -> str:
    """JSON has no decimal numbers that every reader keeps exact, so that money is text there: ``"0.30"``."""
    return str(amount)


def plan_json(plan: SettlePlan) -> dict[str, Any]:
    return {
        "to_pay": [_line_json(line) for line in plan.lines],
        "not_paid_now": [_line_json(line) for line in plan.untouched],
        "hits_of_their_own": [_line_json(line) for line in plan.offers],
        "bonuses": _dollars(plan.bonuses),
        "fees": _dollars(plan.fees),
        "total": _dollars(plan.total),
        "balance": _dollars(plan.balance),
        "missing": _dollars(plan.missing),
    }


def _line_json(line: PlanLine) -> dict[str, Any]:
    return {
        **(asdict(line.example) if line.example is not None else {}),
        "round": line.round,
        "worker": line.worker,
        "state": line.state.value,
        "bonus": _dollars(line.amount),
        "fee": _dollars(line.fee),
        "reason": line.reason,
    }


def settlement_json(settlement: Settlement) -> dict[str, Any]:
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


def report_json(found: MonthReport, now: Standing) -> dict[str, Any]:
    return {
        "month": str(found.month),
        "rows": [
            {key: _dollars(value) if isinstance(value, Decimal) else value for key, value in row.items()}
            for row in report_rows(found)
        ],
        "by_round": {key: _figures_json(figures) for key, figures in found.by_round.items()},
        "by_worker": {key: _figures_json(figures) for key, figures in found.by_worker.items()},
        "totals": _figures_json(found.totals),
        "now": standing_json(now),
    }


def standing_json(now: Standing) -> dict[str, Any]:
    return {
        name.replace(",", "").replace(" ", "_"): {"count": amount.count, "amount": _dollars(amount.amount)}
        for name, amount in standing_rows(now)
    }


def reconciliation_json(found: Reconciliation) -> dict[str, Any]:
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
