"""`dynahit measure models`: lets models answer the rows of rounds, base sets and functional tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.extensions import db
from app.factory import model_references, remote_of
from app.operations.base_sets import base_sets
from app.operations.measure_models import is_measured, key_of, measure_model, require_measurable
from app.services import services
from app.settings import Settings
from hits.errors import InvalidInput
from hits.frozen import is_frozen
from hits.measures.matrix import in_words, percent
from hits.measures.sets import MEASURED_SPLITS, Columns, RowSet, file_set, split_set
from hits.measures.transfers import transfer
from hits.models import Round
from hits.states import Split
from hits.tasks import TASKS, TaskSpec, task


@click.command("models", short_help="Measure models on rounds and base sets.")
@click.argument("task_code", metavar="TASK", type=click.Choice(sorted(TASKS)))
@click.option("--model", "references", multiple=True, metavar="REFERENCE", help="As in DYNAHIT_MODELS. [default: that]")
@click.option("--round", "numbers", multiple=True, type=click.IntRange(1, 10_000), help="[default: all frozen rounds]")
@click.option(
    "--split",
    "splits",
    multiple=True,
    type=click.Choice([one.value for one in MEASURED_SPLITS]),
    default=["test"],
    show_default=True,
)
@click.option("--no-rounds", is_flag=True, help="Measure on the named sets only.")
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Folder of published sets.")
@click.option("--file", "files", multiple=True, metavar="NAME=FILE", help="A base set: CSV, TSV or JSON lines.")
@click.option("--functions", "tests", multiple=True, metavar="NAME=FILE", help="Functional tests, the same forms.")
@click.option("--column", "columns", multiple=True, metavar="OURS=THEIRS", help="What a file's column is called.")
@click.option("--label", "labels", multiple=True, metavar="THEIRS=OURS", help="What a file's label is here.")
@click.option("--map", "code", metavar="MAP", help="Let another task's model answer; see `measure maps`.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what would be measured, and measure nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_appcontext
def models(
    task_code: str,
    *,
    references: tuple[str, ...],
    numbers: tuple[int, ...],
    splits: tuple[str, ...],
    no_rounds: bool,
    data: Path | None,
    files: tuple[str, ...],
    tests: tuple[str, ...],
    columns: tuple[str, ...],
    labels: tuple[str, ...],
    code: str | None,
    seed: int,
    plan_only: bool,
    as_json: bool,
) -> None:
    """Measure models on frozen rounds of TASK, on base sets and functional tests.

    What was measured before is not measured again; interrupted, the same command goes on where it was.
    """
    from inference.loading import load_model

    session, here = db.session(), services()
    spec = task(task_code)
    via = transfer(code) if code is not None else None
    model_spec = task(via.model_task) if via is not None else spec
    names = Columns(pairs(columns, "--column"), pairs(labels, "--label"))
    sets = [] if no_rounds else round_sets(session, spec, numbers, splits)
    sets += base_sets(spec.code, data) if data is not None else []
    for given, functions in ((files, False), (tests, True)):
        sets += [
            file_set(spec, name, Path(path), names, functions=functions)
            for name, path in pairs(given, "NAME=FILE").items()
        ]
    if not sets:
        raise InvalidInput(
            f"There is nothing to measure on: no round of the {spec.code} task is frozen, and no set is named."
            f" `dynahit round freeze {spec.code} N` freezes a round; --data, --file and --functions name sets."
        )
    for one in sets:
        require_measurable(model_spec.code, one, via)
    found: list[dict[str, Any]] = []
    settings = here.settings
    for reference in references or default_references(settings, model_spec):
        model = load_model(
            model_spec,
            reference,
            base=settings.base_weights,
            local_files_only=settings.local_files_only,
            remote=remote_of(settings),
        )
        for one in sets:
            row = {"model": model.model_id, "revision": model.revision, "map": code or "", "set": one.name}
            if plan_only:
                done = is_measured(session, one, key_of(model.card), via)
                session.rollback()
                found.append(row | {"measured": done, "rows": None if done else len(one.load())})
                continue
            with bar(f"{model.model_id} on {one.name}") as (total, advance):
                done = is_measured(session, one, key_of(model.card), via)
                session.rollback()
                total(0 if done else len(one.load()))
                measured = measure_model(
                    session,
                    here.clock,
                    model,
                    one,
                    model_task=model_spec.code,
                    transfer=via,
                    seed=seed,
                    advance=advance,
                )
            scores = {metric: estimate.as_json() for metric, estimate in measured.scores.items()}
            found.append(row | {"rows": measured.rows, "measured": not measured.fresh, "scores": scores})
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    _show(found, plan_only=plan_only)


def round_sets(session: Session, spec: TaskSpec, numbers: Sequence[int], splits: Sequence[str]) -> list[RowSet]:
    """Return the splits of the named rounds, or of all frozen ones that have them. Raises as split_set does."""
    if numbers:
        return [split_set(session, spec.code, number, Split(name)) for number in numbers for name in splits]
    rounds = session.scalars(select(Round).where(Round.task_code == spec.code).order_by(Round.number)).all()
    there = [
        (one.number, name)
        for one in rounds
        if is_frozen(one)
        for name in splits
        if (one.manifest or {}).get("splits", {}).get("counts", {}).get(name)
    ]
    return [split_set(session, spec.code, number, Split(name)) for number, name in there]


def default_references(settings: Settings, spec: TaskSpec) -> list[str]:
    """Return the model that is set for a task. Raises InvalidInput when none is."""
    references = model_references(settings)
    if spec.code not in references:
        raise InvalidInput(f"No model is set for the {spec.code} task. Name one with --model REFERENCE.")
    return [references[spec.code]]


def pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """Return NAME=VALUE arguments by name. Raises InvalidInput for one without both."""
    found = {}
    for one in given:
        name, _, value = one.partition("=")
        if not name.strip() or not value.strip():
            raise InvalidInput(f"{one!r} is not of the form that {option} takes: one name, =, and what it stands for.")
        found[name.strip()] = value.strip()
    return found


@contextmanager
def bar(title: str) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Show on a terminal how far it is; yields what is told how many rows there are, and how many more were done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        number = progress.add_task(escape(title), total=None)
        yield lambda rows: progress.update(number, total=rows), lambda rows: progress.advance(number, rows)


def _show(found: Sequence[dict[str, Any]], *, plan_only: bool) -> None:
    console = Console()
    if plan_only:
        table = Table("model", "set", "rows", "")
        for row in found:
            table.add_row(
                escape(f"{row['model']} {row['revision'][:8]}"),
                escape(row["set"]),
                "" if row["rows"] is None else f"{row['rows']:,}",
                "measured before" if row["measured"] else "to measure",
            )
        console.print(table)
        console.print("This is a plan. Nothing was measured.")
        return
    for row in found:
        figures = "; ".join(
            f"{in_words(metric)} {percent(one['value'])} ({percent(one['low'])} to {percent(one['high'])})"
            for metric, one in row["scores"].items()
        )
        before = ", measured before" if row["measured"] else ""
        click.echo(f"{row['model']} {row['revision'][:8]} on {row['set']} ({row['rows']:,} rows{before}):")
        click.echo(f"  {figures}")
