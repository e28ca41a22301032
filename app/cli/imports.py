"""``dynahit import``: a published adversarial data set as a past round."""

from __future__ import annotations

import json
from pathlib import Path

import click
from flask.cli import with_appcontext

from app.cli.export import progress
from app.extensions import db
from app.operations.import_dataset import Imported, ImportTerms, import_dataset, plan_import
from app.services import services
from hits.imports.forms import FORMS


@click.command("import")
@click.argument("form", type=click.Choice(list(FORMS)))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--round", "number", type=click.IntRange(1, 10_000), required=True, help="The round here that it becomes."
)
@click.option(
    "--published-round",
    type=click.IntRange(1, 10_000),
    help="Of files that hold several rounds, the one to take. [default: the same number]",
)
@click.option("--licence", help="Its licence, if it is not the usual one of this set.")
@click.option("--by", default="command line", help="Who decides, for the audit trail.")
@click.option("--plan", "plan_only", is_flag=True, help="Read and check every row, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_appcontext
def import_(
    form: str,
    files: tuple[Path, ...],
    number: int,
    published_round: int | None,
    licence: str | None,
    by: str,
    plan_only: bool,
    as_json: bool,
) -> None:
    """Import FILES of a published set as a past round, with their votes; nobody is paid for it.

    Every row is checked before anything is stored. Running it again changes nothing, and goes on after an interruption.
    """
    terms = ImportTerms(form, files, number, published_round, licence)
    session = db.session()
    with progress("Importing", None) as advance:
        if plan_only:
            found = plan_import(session, terms, advance=advance)
        else:
            here = services()
            key = here.settings.pseudonym_key.get_secret_value()
            found = import_dataset(session, here.clock, terms, key=key, by=by, advance=advance)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
        return
    _show(found, plan_only=plan_only)


def _show(found: Imported, *, plan_only: bool) -> None:
    click.echo(f"{found.task_code}, round {found.number}: {found.rows:,} rows.")
    for reason, count in found.left_out.items():
        click.echo(f"Left out: {count:,} rows: {reason}.")
    if plan_only:
        click.echo("All rows can be used. Nothing was changed.")
    elif not found.fresh:
        click.echo("All of it was there already. Nothing was changed.")
    else:
        click.echo(f"Stored: {found.stored.examples:,} examples with {found.stored.votes:,} votes.")
        if found.stored.differs:
            click.echo(f"Of them {found.stored.differs:,} whose votes say another label than the published one.")
        click.echo(f"`dynahit round freeze {found.task_code} {found.number}` makes it a round to train and test on.")
