"""`dynahit measure ...`: what models reach on rounds and base sets, what changed between two, what data give away."""

from __future__ import annotations

import json
from pathlib import Path

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from app.cli.measure_bias import bias
from app.cli.measure_models import models
from app.extensions import db
from app.operations.compare_models import compare, matrix_csv, read_leaderboard, read_matrix, read_parts
from hits.measures.intervals import Estimate
from hits.measures.matrix import in_words, percent
from hits.measures.transfers import TRANSFERS
from hits.rates import Rate
from hits.tasks import TASKS

group = AppGroup("measure", help="Models by rounds and base sets; what a round's data give away.")
group.add_command(models)
group.add_command(bias)

task_argument = click.argument("task_code", metavar="TASK", type=click.Choice(sorted(TASKS)))
metric_option = click.option("--metric", metavar="NAME", help="error, accuracy, macro_f1; of readers f1, exact_match.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@group.command("matrix", short_help="Show every model on every set.")
@task_argument
@metric_option
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, one line for each cell.")
@click.option("--svg", "picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw it into this file.")
@json_option
def matrix(task_code: str, metric: str | None, *, as_csv: bool, picture: Path | None, as_json: bool) -> None:
    """Show what every measured model of TASK reaches on every set. [default: the error rate]"""
    found = read_matrix(db.session(), task_code, metric)
    if picture is not None:
        from app.requester.matrix_plot import drawn

        picture.write_text(drawn(found), encoding="utf-8")
        click.echo(f"The picture is in {picture}.")
        return
    if as_json:
        click.echo(json.dumps(found.as_rows(), indent=2))
        return
    if as_csv:
        click.echo(matrix_csv(found), nl=False)
        return
    if not found.models:
        click.echo(f"Nothing was measured for the {task_code} task yet. `dynahit measure models {task_code}` does it.")
        return
    console = Console()
    table = Table("set", *(Column(escape(one.name), overflow="fold") for one in found.models))
    for one in found.sets:
        table.add_row(
            f"{one.name}\n{one.rows:,} rows", *(cell_in_words(found.cell(model, one)) for model in found.models)
        )
    console.print(table)
    console.print(f"{in_words(found.metric, begins=True)}, with 95% bootstrap intervals.")


@group.command("compare", short_help="Compare two models set by set.")
@task_argument
@click.argument("before")
@click.argument("after")
@metric_option
@click.option("--seed", type=int, default=0, show_default=True)
@json_option
def compare_(task_code: str, before: str, after: str, *, metric: str | None, seed: int, as_json: bool) -> None:
    """Say what the model AFTER does better and worse than BEFORE: models by the names that `measure matrix` shows."""
    found = compare(db.session(), task_code, before, after, metric, seed=seed)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
        return
    console = Console()
    table = Table("set", "before", "after", "difference")
    for one in found.compared:
        table.add_row(
            one.set.name, cell_in_words(one.before), cell_in_words(one.after), points_in_words(one.difference)
        )
    console.print(table)
    console.print(f"{in_words(found.metric, begins=True)}; differences are paired, in points, with 95% intervals.")
    for sentence in found.words:
        click.echo(sentence)


@group.command("leaderboard", short_help="Show models by mean rank over sets.")
@task_argument
@click.option("--set", "sets", multiple=True, metavar="NAME", help="A set; may be repeated. [default: all test sets]")
@metric_option
@json_option
def leaderboard(task_code: str, *, sets: tuple[str, ...], metric: str | None, as_json: bool) -> None:
    """Show the measured models of TASK, the best first; only those that were measured on all of the sets."""
    found = read_leaderboard(db.session(), task_code, sets, metric)
    if as_json:
        rows = [
            {
                "place": one.place,
                "shared": one.shared,
                "model": one.model.model_id,
                "revision": one.model.revision,
                "map": one.model.transfer,
                "mean": one.mean,
                "low": one.low,
                "high": one.high,
                "mean_rank": one.mean_rank,
                "clearly_behind_the_one_above": one.apart,
            }
            for one in found.placed
        ]
        click.echo(
            json.dumps({"metric": found.metric, "sets": [one.name for one in found.sets], "models": rows}, indent=2)
        )
        return
    if not found.placed:
        click.echo("No model was measured on all of these sets yet. `dynahit measure matrix` shows what there is.")
        return
    console = Console()
    table = Table("place", "model", f"mean {in_words(found.metric)}", "mean rank", "")
    for one in found.placed:
        table.add_row(
            f"{one.place}{' shared' if one.shared else ''}",
            escape(one.model.name),
            f"{percent(one.mean)}\n{percent(one.low)} to {percent(one.high)}",
            f"{one.mean_rank:.2f}",
            "" if one.apart is None else "clearly behind" if one.apart else "not clearly behind the one above",
        )
    console.print(table)
    console.print(f"Over {', '.join(one.name for one in found.sets)}.")
    if found.left_out:
        console.print(f"Not measured on all of them: {escape(', '.join(one.name for one in found.left_out))}.")


@group.command("functions", short_help="Show errors by functionality or group.")
@task_argument
@json_option
def functions(task_code: str, *, as_json: bool) -> None:
    """Show the error rates of TASK's models by part of a set: the functionality tested, the group that is attacked."""
    found = read_parts(db.session(), task_code)
    if as_json:
        rows = [{"model": one.model.name, "set": one.set.name, "errors": one.parts} for one in found]
        click.echo(json.dumps(rows, indent=2))
        return
    if not found:
        click.echo("No set with parts was measured on. `dynahit measure models TASK --functions NAME=FILE` does it.")
        return
    console = Console()
    for one in found:
        for kind, parts in (one.parts or {}).items():
            table = Table(kind, "rows", "error rate", title=escape(f"{one.model.name} on {one.set.name}"))
            for name, part in sorted(parts.items(), key=lambda item: -item[1]["wrong"] / item[1]["rows"]):
                rate = Rate(part["wrong"], part["rows"])
                table.add_row(escape(name), str(rate.of), f"{rate.percent} ({rate.interval})")
            console.print(table)


@group.command("maps", short_help="List the maps between tasks' labels.")
@json_option
def maps(*, as_json: bool) -> None:
    """List the named maps by which a model is measured on another task's rows, or on fewer labels."""
    if as_json:
        rows = [
            {
                "map": one.code,
                "model_task": one.model_task,
                "set_task": one.set_task,
                "said": dict(one.said),
                "gold": dict(one.gold),
                "inputs": list(one.inputs),
                "meaning": one.meaning,
            }
            for one in TRANSFERS.values()
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table("map", "model of", "rows of", "what it does")
    for one in TRANSFERS.values():
        table.add_row(one.code, one.model_task, one.set_task, one.meaning)
    Console().print(table)


def cell_in_words(estimate: Estimate | None) -> str:
    """Return a figure with its interval, empty where it was not measured."""
    if estimate is None:
        return ""
    return f"{percent(estimate.value)}\n{percent(estimate.low)} to {percent(estimate.high)}"


def points_in_words(one: Estimate) -> str:
    """Return a difference in points with its interval."""
    return f"{100 * one.value:+.1f}\n{100 * one.low:+.1f} to {100 * one.high:+.1f}"
