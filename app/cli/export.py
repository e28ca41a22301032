"""``dynahit export``: a round's data as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click
from flask.cli import with_appcontext

from app.extensions import db
from hits.export import export_round


@click.command("export")
@click.argument("task_code", metavar="TASK")
@click.option("--round", "round_number", type=click.IntRange(1, 10_000), required=True, help="Number of the round.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write. [default: stdout]")
@with_appcontext
def export(task_code: str, round_number: int, out: Path | None) -> None:
    """Write the collected statements of TASK's round as JSON lines; workers appear by pseudonym only."""
    rows = export_round(db.session(), task_code, round_number)
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
