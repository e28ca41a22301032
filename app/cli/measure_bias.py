"""`dynahit measure bias`: what the data of a frozen round give away about their labels."""

from __future__ import annotations

import json
from typing import Any

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.cli.export import progress
from app.extensions import db
from app.operations.measure_bias import measure_bias, stored_bias
from app.services import services
from hits.errors import Refused
from hits.export import find_round
from hits.frozen import is_frozen
from hits.measures.matrix import percent
from hits.tasks import TASKS


@click.command("bias", short_help="Show what a frozen round's data give away.")
@click.argument("task_code", metavar="TASK", type=click.Choice(sorted(TASKS)))
@click.argument("number", metavar="N", type=click.IntRange(1, 10_000))
@click.option("--seed", type=int, default=0, show_default=True, help="Of the baselines and intervals.")
@click.option("--plan", "plan_only", is_flag=True, help="Show whether it was done, and what would be read.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_appcontext
def bias(task_code: str, number: int, *, seed: int, plan_only: bool, as_json: bool) -> None:
    """Show what the data of the frozen round N of TASK give away: baselines on parts of the input, skewed words,
    lengths, repeats, errors by group.

    What was found is stored, and shown on the round's page; done once, it is not done again.
    """
    session = db.session()
    if plan_only:
        _plan(task_code, number, seed, as_json=as_json)
        return
    with progress("Reading", None) as advance:
        found = measure_bias(session, services().clock, task_code, number, seed=seed, advance=advance)
    if as_json:
        click.echo(json.dumps(found.report, indent=2, ensure_ascii=False))
        return
    show(found.report, Console())


def show(report: dict[str, Any], console: Console) -> None:
    """Print what was found within 80 columns."""
    console.print(
        f"Round {report['round']} of {report['task']}: {report['examples']:,} examples with a settled label"
        f" ({report['left_out']:,} without one)."
    )
    _show_baselines(report["baselines"], console)
    for name, found in report["skew"].items():
        if not found["words"]:
            console.print(f"{name}: no word is clearly skewed ({found['tests']:,} tests).")
            continue
        table = Table("label", "word", "texts", "with it", "z", title=f"Skewed words in {name}")
        for one in found["words"]:
            table.add_row(
                one["label"], escape(one["word"]), str(one["texts"]), percent(one["share"]), f"{one['z']:.1f}"
            )
        console.print(table)
        console.print(f"{found['found']:,} of {found['tests']:,} pairs of word and label, after correction.")
    for kind, parts in report["errors_by_part"].get("by", {}).items():
        table = Table(kind, "rows", "error rate", title="Errors of the round's own model")
        for name, one in parts.items():
            table.add_row(
                escape(name),
                str(one["rows"]),
                f"{percent(one['share'])} ({percent(one['low'])} to {percent(one['high'])})",
            )
        console.print(table)
    for name, profile in report["lengths"].items():
        table = Table("label", "texts", "mean words", "median", "5% to 95%", title=f"Lengths of {name}")
        for label, one in profile["by_label"].items():
            table.add_row(
                label,
                f"{one['texts']:,}",
                f"{one['mean']:.1f}",
                f"{one['q50']:.0f}",
                f"{one['q05']:.0f} to {one['q95']:.0f}",
            )
        console.print(table)
        if apart := profile["apart"]:
            console.print(
                f"Length alone tells {apart['shorter']} from {apart['longer']} in {percent(apart['area'])} of pairs;"
                " 50% is chance."
            )
    repeats = report["repeats"]
    console.print(
        f"{repeats['repeats']:,} of {repeats['rows']:,} texts repeat an earlier one;"
        f" {repeats['with_several_labels']:,} texts have several labels."
    )


def _show_baselines(found: dict[str, Any], console: Console) -> None:
    if found["why_none"]:
        console.print(f"No baselines: {found['why_none']}")
        return
    usual = found["majority"]
    table = Table("what it sees", "reached", "above the most frequent")
    table.add_row(
        f"nothing: always {escape(str(usual['label']))}",
        f"{percent(usual['value'])}\n{percent(usual['low'])} to {percent(usual['high'])}",
        "",
    )
    for one in found["views"]:
        above = one["above_majority"]
        table.add_row(
            one["view"],
            f"{percent(one['value'])}\n{percent(one['low'])} to {percent(one['high'])}",
            f"{100 * above['value']:+.1f} points\n{100 * above['low']:+.1f} to {100 * above['high']:+.1f}",
        )
    console.print(table)
    figure = found["figure"][:1].upper() + found["figure"][1:]
    console.print(f"{figure} on {found['test']:,} test examples, learned from {found['train']:,}.")


def _plan(task_code: str, number: int, seed: int, *, as_json: bool) -> None:
    session = db.session()
    round_ = find_round(session, task_code, number)
    if not is_frozen(round_):
        raise Refused(f"Round {number} of the {task_code} task is not frozen. `dynahit round freeze` freezes it.")
    done = stored_bias(session, task_code, number, seed=seed) is not None
    count = (round_.manifest or {}).get("examples", {}).get("count", 0)
    if as_json:
        click.echo(json.dumps({"task": task_code, "round": number, "examples": count, "done": done}, indent=2))
    elif done:
        click.echo("It was done before; it would be shown. Nothing would be read.")
    else:
        click.echo(f"{count:,} examples would be read. Nothing was stored.")
