"""``dynahit round progress``: how a round comes along, with the figures of its dashboard."""

from __future__ import annotations

import json

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.extensions import db
from app.operations.round_progress import Progress, round_progress
from app.services import services
from hits.db import only_reads
from hits.export import find_round
from hits.forecast import Forecast
from hits.money import display


@click.command("progress", short_help="Show pace, writers, cost and a forecast.")
@click.argument("task_code", metavar="TASK")
@click.argument("number", metavar="N", type=click.IntRange(1, 10_000))
@click.option("--target", type=click.IntRange(min=1), metavar="N", help="Verified examples wanted.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_appcontext
def progress(task_code: str, number: int, target: int | None, as_json: bool) -> None:
    """Show how round N of TASK comes along: the figures of its dashboard.

    Without --target the forecast is for the number in the round's stop rules.
    """
    session = db.session()
    only_reads(session)
    found = round_progress(session, find_round(session, task_code, number), services().clock.now(), target=target)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
        return
    show_progress(found, Console())


def show_progress(found: Progress, console: Console) -> None:
    """Print the figures within 80 columns."""
    for name, rate in (("vmer", found.rates.vmer), ("mer", found.rates.mer)):
        interval = f" (95% interval {rate.interval})" if rate.of else ""
        name_shown = "vMER" if name == "vmer" else "MER"
        console.print(Text(f"{name_shown}: {rate.percent}{interval}\n  = {found.rates.denominators[name]}"))
    pace = found.pace
    console.print(
        Text(f"Tries: {_number(pace.tries_fooling)} for one that fooled, {_number(pace.tries_verified)} verified")
    )
    console.print(Text(f"Seconds: {_number(pace.seconds)} collected, {_number(pace.seconds_verified)} verified"))
    cost = "none yet" if found.cost_per_verified is None else display(found.cost_per_verified)
    console.print(Text(f"Cost of a verified one: {cost} ({display(found.spent)} spent)"))
    writers = found.writers
    if writers.top_5 is not None and writers.top_10 is not None:
        console.print(
            Text(
                f"Writers: {writers.writers}; the first 5% wrote {100 * writers.top_5:.1f}%, the first 10%"
                f" {100 * writers.top_10:.1f}%; Gini {writers.gini:.2f}, effective {writers.effective:.1f}"
            )
        )
    console.print(Text("No target is set." if found.forecast is None else forecast_in_words(found.forecast)))
    table = Table("label", "collected", "fooled", "verified")
    for label, counts in found.labels.items():
        table.add_row(label, str(counts.collected), str(counts.fooled), str(counts.verified))
    if found.labels:
        console.print(table)


def forecast_in_words(found: Forecast) -> str:
    """Return when the target is reached, with its range."""
    if found.reached:
        return f"The target of {found.target} is reached."
    rate = f"{found.missing} of {found.target} are missing; {found.per_day:.1f} a day were verified"
    if found.at is None:
        return f"{rate}, which gives no date."
    until = f"to {found.latest:%Y-%m-%d %H:%M}" if found.latest is not None else "on, without an end"
    return f"{rate}: about {found.at:%Y-%m-%d %H:%M} UTC, 95% from {found.earliest:%Y-%m-%d %H:%M} {until}."


def _number(value: float | None) -> str:
    return "none yet" if value is None else f"{value:.1f}"
