"""``dynahit export``: frozen rounds as a data set for others, or a running round as JSON lines for oneself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.extensions import db
from app.operations.export_dataset import DEFAULT_LICENCE, ExportPlan, export_dataset, plan_export
from app.services import services
from hits.export import export_round


@click.command("export")
@click.argument("task_code", metavar="TASK")
@click.option(
    "--round",
    "numbers",
    type=click.IntRange(1, 10_000),
    multiple=True,
    help="Number of a round; may be given several times. [default: all frozen rounds]",
)
@click.option("--to", "folder", type=click.Path(path_type=Path), help="Folder to make, or an empty one.")
@click.option("--licence", default=DEFAULT_LICENCE, show_default=True, help="Of the rounds that were collected here.")
@click.option("--with-attributions", is_flag=True, help="Include how much each word spoke for the model's answer.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what it would hold, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Instead of a data set, one running round as JSON lines in this file. [default: stdout]",
)
@with_appcontext
def export(
    task_code: str,
    numbers: tuple[int, ...],
    folder: Path | None,
    licence: str,
    with_attributions: bool,
    plan_only: bool,
    as_json: bool,
    out: Path | None,
) -> None:
    """Write frozen rounds of TASK as a data set: Parquet, JSON lines, card, Croissant.

    People appear in it under names made for this export. Without --to, the collected statements of one round are
    written as JSON lines as they stand, for looking into a running round; workers appear by the pseudonyms that the
    pages show, so that is not for others.
    """
    if folder is None and not plan_only:
        if as_json or with_attributions:
            raise click.UsageError("--json and --with-attributions belong to --to DIR.")
        _write_lines(task_code, numbers, out)
        return
    if out is not None:
        raise click.UsageError("Give either --to DIR or --out FILE.")
    session = db.session()
    plan = plan_export(session, task_code, numbers, licence=licence, with_attributions=with_attributions)
    if folder is not None and not plan_only:
        from hits.export.folder import require_free

        require_free(folder)
        secret = services().settings.pseudonym_key.get_secret_value()
        with progress("Writing", plan.examples) as advance:
            export_dataset(
                session,
                task_code,
                numbers,
                folder,
                licence=licence,
                with_attributions=with_attributions,
                secret=secret,
                advance=advance,
            )
    if as_json:
        click.echo(json.dumps(plan.as_json() | {"folder": str(folder) if folder and not plan_only else None}, indent=2))
        return
    _show(plan)
    click.echo("Nothing was written." if plan_only else f"The data set is in {folder}.")


@contextmanager
def progress(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how far it is; yields what is told how many more were done."""
    bar = Progress(
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task_id = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task_id, count)


def _show(plan: ExportPlan) -> None:
    rounds = ", ".join(map(str, plan.rounds))
    splits = ", ".join(f"{count:,} {name}" for name, count in plan.splits.items())
    click.echo(f"{plan.task_code}, rounds {rounds}: {plan.examples:,} examples ({splits}).")
    click.echo(f"Licence: {', '.join(plan.licences)}. Identity {plan.identity}.")
    if plan.other_packages:
        click.echo(f"Frozen with other packages, the bytes may differ: {'; '.join(plan.other_packages)}.", err=True)


def _write_lines(task_code: str, numbers: tuple[int, ...], out: Path | None) -> None:
    if len(numbers) != 1:
        raise click.UsageError(
            "Name one round with --round N to see it as JSON lines, or a folder with --to DIR to make a data set."
        )
    rows = export_round(db.session(), task_code, numbers[0])
    written = 0
    try:
        with _opened(out) as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                written += 1
    except OSError as error:
        raise click.ClickException(f"{out or 'stdout'} can't be written: {error.strerror or error}") from error
    click.echo(f"{written} statements written to {out or 'stdout'}.", err=True)


@contextmanager
def _opened(out: Path | None) -> Iterator[TextIO]:
    """Yield the file to write to; a named file appears whole or not at all."""
    if out is None:
        yield sys.stdout
        return
    part = out.with_name(out.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        part.replace(out)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
