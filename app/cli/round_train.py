"""``dynahit round train``: the next target model, from base data and frozen rounds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from app.extensions import db
from app.operations.train_round import Machine, TrainedRound, TrainingPlan, TrainTerms, plan_training, train_round
from app.services import services
from app.settings import instance_folder
from hits.errors import InvalidInput
from inference.training.base_files import BaseFile
from inference.training.round_model import Settings

DEFAULTS = Settings()


@click.command("train", short_help="Train the next model on base data and rounds.")
@click.argument("task_code", metavar="TASK")
@click.option("--round", "number", type=click.IntRange(0, 10_000), required=True, help="The last round; 0: none.")
@click.option(
    "--base",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Labelled base data: .csv, .tsv, .jsonl, SQuAD's .json.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Base data of TASK's own model (docs/models.md).",
)
@click.option("--base-licence", default="not stated", show_default=True, help="Licence of the --base files.")
@click.option("--base-column", "columns", multiple=True, metavar="FIELD=COLUMN", help="Where a field stands.")
@click.option("--base-label", "labels", multiple=True, metavar="NAME=LABEL", help="What a label there means.")
@click.option("--model", "models", multiple=True, metavar="REFERENCE", help="What to train. [default: TASK's own]")
@click.option("--start", type=click.Choice(["pretrained", "tuned"]), help="With a new head, or as it is tuned.")
@click.option("--seeds", default="1", show_default=True, metavar="N,N", help="A model for each of them.")
@click.option("--weight", "weights", multiple=True, metavar="SOURCE=N", help="base or a round: rows count N times.")
@click.option("--class-weight", "classes", multiple=True, metavar="balanced|LABEL=N", help="How much a label counts.")
@click.option("--epochs", type=int, default=DEFAULTS.epochs, show_default=True)
@click.option("--batch-size", type=int, default=DEFAULTS.batch_size, show_default=True)
@click.option("--length", type=int, default=DEFAULTS.length, show_default=True, help="Most word pieces of an input.")
@click.option("--rate", "body_rate", type=float, default=DEFAULTS.body_rate, show_default=True)
@click.option("--head-rate", type=float, default=DEFAULTS.head_rate, show_default=True)
@click.option("--patience", type=int, default=DEFAULTS.patience, show_default=True, help="Looks at dev without gain.")
@click.option("--limit-per-source", type=click.IntRange(1), metavar="N", help="At most N rows of each.")
@click.option("--max-minutes", type=click.FloatRange(0, min_open=True), metavar="N", help="Stop then, keep the best.")
@click.option("--bfloat16", is_flag=True, help="Half precision; quicker where the processor has it.")
@click.option("--threads", type=click.IntRange(1, 256), help="Of this machine. [default: all]")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder of models. [default: home's]")
@click.option("--local-files-only", is_flag=True, help="Ask no network for a model.")
@click.option("--by", default="command line", help="Who decides, for the audit trail.")
@click.option("--plan", "plan_only", is_flag=True, help="Show rows, steps and time, and train nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_appcontext
def train(  # one parameter per option
    task_code: str,
    number: int,
    files: tuple[Path, ...],
    data: Path | None,
    base_licence: str,
    columns: tuple[str, ...],
    labels: tuple[str, ...],
    models: tuple[str, ...],
    start: Any,
    seeds: str,
    weights: tuple[str, ...],
    classes: tuple[str, ...],
    limit_per_source: int | None,
    threads: int | None,
    out: Path | None,
    local_files_only: bool,
    by: str,
    plan_only: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Train TASK's model on base data and all frozen rounds up to N, and register it.

    Killed, it goes on where it was when the same command runs again. Several seeds or models make an ensemble.
    """
    from inference.runtime import computing_with, is_first_process

    own = services().settings
    named = tuple(_pair(text, "--base-column") for text in columns)
    meant = tuple(_pair(text, "--base-label") for text in labels)
    terms = TrainTerms(
        task_code,
        number,
        base=tuple(BaseFile(path, base_licence, named, meant) for path in files),
        data=data,
        weights={name: _number(value, "--weight") for name, value in (_pair(text, "--weight") for text in weights)},
        models=models,
        seeds=_seeds(seeds),
        start=start,
        settings=Settings(class_weights=_classes(classes), limit_per_source=limit_per_source, **settings),
    )
    with computing_with(threads or _processors()) as used:
        machine = Machine(
            out=(out or instance_folder() / "models").absolute(),
            threads=used,
            base_weights=own.base_weights,
            local_files_only=local_files_only or own.local_files_only,
        )
        if plan_only:
            plan = plan_training(db.session(), terms, machine)
            click.echo(json.dumps(plan.as_json(), indent=2)) if as_json else _show_plan(plan)
            return
        with _bars(visible=is_first_process()) as bar:
            done = train_round(db.session(), services().clock, terms, machine, by=by, bar=bar)
    if not is_first_process():
        return
    if as_json:
        click.echo(json.dumps(done.as_json(), indent=2, ensure_ascii=False))
    else:
        _show(done)


def _processors() -> int:
    """Return how many processors this process may use; a launcher of several says how many are each one's."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ.get("OMP_NUM_THREADS", "1"))
    return len(os.sched_getaffinity(0))


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InvalidInput(f"{option} {text!r} is not of the form NAME=VALUE.")
    return name, value


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{option}: {text!r} is no number.") from None


def _classes(texts: tuple[str, ...]) -> Any:
    if texts in ((), ("balanced",)):
        return texts[0] if texts else None
    return {name: _number(value, "--class-weight") for name, value in (_pair(text, "--class-weight") for text in texts)}


def _seeds(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) < 2**31 for part in parts):
        raise InvalidInput(f"--seeds {text!r} are no seeds. Write whole numbers with commas between: 1,2,3.")
    return tuple(int(part) for part in parts)


@contextmanager
def _bars(*, visible: bool) -> Iterator[Any]:
    """Yield what makes a bar on the terminal: called with title and total, told how many more are done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as shown:

        @contextmanager
        def bar(title: str, total: int | None) -> Iterator[Callable[[int, str], None]]:
            row = shown.add_task(title, total=total)

            def told(count: int, word: str) -> None:
                shown.update(row, advance=count, description=f"{title}, {word}" if word else title)

            yield told

        yield bar


def _show_plan(plan: TrainingPlan) -> None:
    console = Console()
    console.print(_sources(plan.as_json()["sources"]))
    for one in plan.sources:
        for reason, count in one.left_out.items():
            click.echo(f"Left out of {one.name}: {count:,}: {reason}.")
    click.echo(f"{', '.join(plan.models)}, {plan.start}: {plan.steps:,} steps each at most.")
    for name in plan.names:
        click.echo(f"Would be written: {name}")
    if plan.seconds is None:
        click.echo("How long it takes can't be told before the model is on this machine.")
    else:
        click.echo(f"About {_time(plan.seconds)} on this machine as busy as it is now, less if it ends early.")
    click.echo("Nothing was trained; leave --plan out to do it.")


def _show(done: TrainedRound) -> None:
    console = Console()
    for one in done.models:
        facts = one.facts
        training = facts["training"]
        was = "" if one.fresh else " It was there already."
        click.echo(f"{one.folder}, revision {one.card.revision}.{was}")
        click.echo(
            f"{training['steps']:,} of {training['planned_steps']:,} steps (ended: {training['ended']}); kept is what"
            f" was after step {training['best_step']:,}."
        )
        span = not facts["labels"]
        keys = ("exact_match", "f1") if span else ("accuracy", "macro_f1")
        table = Table("rows", "count", *(("exact match", "F1") if span else ("accuracy", "macro F1")))
        for name, score in facts["scores"].items():
            table.add_row(name, f"{score['rows']:,}", *(f"{score[key]:.1%}" for key in keys))
        console.print(table)
    for line in done.models[0].facts["consequences"]:
        click.echo(line)
    click.echo("To serve it as the next target:")
    click.echo(f"DYNAHIT_MODELS={json.dumps({done.task_code: done.reference})}")


def _sources(sources: list[dict[str, Any]]) -> Table:
    table = Table(
        Column("source", overflow="fold"), "train", "dev", "test", "weight", Column("licence", overflow="fold")
    )
    for one in sources:
        counts = (f"{one[split]:,}" for split in ("train", "dev", "test"))
        table.add_row(one["name"], *counts, f"{one['weight']:g}", one["licence"])
    return table


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
