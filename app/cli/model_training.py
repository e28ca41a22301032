"""`dynahit model evaluate` and `train`: how good a model is on published rows, and the embedded ones made again."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from hits.tasks import task
from inference.training.recipes import RECIPES, Recipe, Rows

DATA = click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder with the published data sets; docs/models.md lists the files.",
)
BASE = click.option(
    "--base",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="DYNAHIT_BASE_WEIGHTS",
    help="Folder with the base weights, if they are not found by themselves.",
)


@click.command("evaluate", short_help="Measure a model on held-out rows.")
@click.argument("task_code", metavar="TASK", type=click.Choice(sorted(RECIPES)))
@DATA
@click.option("--model", "reference", help="Model to measure, as in DYNAHIT_MODELS; the task's own unless given.")
@click.option("--rows", "limit", type=click.IntRange(min=1), help="At most so many rows of each set, spread evenly.")
@click.option("--local-files-only", is_flag=True, envvar="DYNAHIT_LOCAL_FILES_ONLY", help="Ask no network.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@BASE
def evaluate(
    task_code: str,
    data: Path,
    reference: str | None,
    limit: int | None,
    local_files_only: bool,
    as_json: bool,
    base: Path | None,
) -> None:
    """Measure a model on rows that the embedded model of TASK never learned."""
    from inference.loading import load_model
    from inference.training.measures import measure

    recipe = RECIPES[task_code]
    _check_files(recipe, data, learning=False)
    spec = task(task_code)
    chosen = reference or spec.default_model
    model = load_model(spec, chosen, base=base, local_files_only=local_files_only)
    sets: dict[str, Rows] = {name: part.rows(data) for name, part in recipe.tests.items()}
    if limit is not None:
        sets = {name: _spread(rows, limit) for name, rows in sets.items()}
    results: dict[str, dict[str, Any]] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        for name, rows in sets.items():
            bar = progress.add_task(name, total=len(rows))
            results[name] = measure(model, rows, advance=partial(progress.advance, bar))
    if as_json:
        click.echo(
            json.dumps(
                {"task": task_code, "model": model.model_id, "revision": model.revision, "results": results}, indent=2
            )
        )
        return
    console = Console()
    console.print(f"{model.model_id}, revision {model.revision}")
    for table in _tables(results):
        console.print(table)


@click.command("train", short_help="Make the embedded model of a task again.")
@click.argument("task_code", metavar="TASK", type=click.Choice(sorted(RECIPES)))
@DATA
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for delta.safetensors and card.json.",
)
@click.option("--seed", type=int, default=1, show_default=True)
@BASE
def train(task_code: str, data: Path, out: Path, seed: int, base: Path | None) -> None:
    """Make the embedded model of TASK again: the same seed, machine and versions give the same file."""
    from inference.embedded import DELTA
    from inference.train import train as run

    recipe = RECIPES[task_code]
    _check_files(recipe, data, learning=True)
    card = run(recipe, data, out, seed=seed, base=base, console=Console(stderr=True))
    console = Console()
    for table in _tables(card["evaluation"]):
        console.print(table)
    console.print(f"{out / DELTA}: {card['delta']['bytes'] / 1e6:.1f} MB, revision {card['revision']}")


def _spread(rows: Rows, limit: int) -> Rows:
    return rows if len(rows) <= limit else [rows[index * len(rows) // limit] for index in range(limit)]


def _check_files(recipe: Recipe, data: Path, *, learning: bool) -> None:
    parts = list(recipe.tests.values())
    if learning:
        parts += [recipe.train, *([] if recipe.chosen_on is None else [recipe.chosen_on])]
    files = {file.path: file for part in parts for file in part.files}
    absent = [file for path, file in sorted(files.items()) if not (data / path).is_file()]
    if absent:
        listed = "\n".join(f"  {file.path}  ({file.source}; {file.licence})" for file in absent)
        raise click.ClickException(
            f"{len(absent)} of {len(files)} files are not in {data}:\n{listed}\n"
            "Fetch them from there, or name another folder with --data."
        )


def _tables(results: dict[str, dict[str, Any]]) -> list[Table]:
    if any("f1" in one for one in results.values()):
        table = Table("held-out rows", "rows", "exact match", "F1", "F1 at least 0.4")
        for name, one in results.items():
            table.add_row(name, f"{one['rows']:,}", *(f"{one[key]:.1%}" for key in ("exact_match", "f1", "right")))
        return [table]
    table = Table("held-out rows", "rows", "accuracy", "macro F1")
    for name, one in results.items():
        table.add_row(name, f"{one['rows']:,}", f"{one['accuracy']:.1%}", f"{one['macro_f1']:.1%}")
    return [table, *(_confusion(name, one["confusion"]) for name, one in results.items())]


def _confusion(name: str, confusion: dict[str, dict[str, int]]) -> Table:
    from inference.training.measures import UNREAD

    unread = [UNREAD] if any(UNREAD in answered for answered in confusion.values()) else []
    heads = [*(f"answered {label}" for label in confusion), *("no word read" for _ in unread)]
    table = Table("right answer", *heads, title=name)
    for label, answered in confusion.items():
        table.add_row(label, *(f"{answered.get(other, 0):,}" for other in (*confusion, *unread)))
    return table
