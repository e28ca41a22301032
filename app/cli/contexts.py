"""``dynahit contexts``: upload what writers start from, see what became of it, retire it, ask the model about it."""

from __future__ import annotations

import json
from pathlib import Path

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.export import progress
from app.extensions import db
from app.operations.context_list import ListedContext, RoundContexts, contexts_listed
from app.operations.score_contexts import plan_scores, score_contexts
from app.operations.upload_contexts import UploadReport, UploadTerms, plan_upload, retire_contexts, upload_contexts
from app.services import services
from hits.contexts.uploads import Repeat
from hits.tasks import task

group = AppGroup("contexts", help="What writers start from: upload, list, retire, score.")

round_option = click.option("--round", "number", type=click.IntRange(1, 10_000), required=True, help="Of which round.")
by_option = click.option("--by", default="command line", help="Who decides, for the audit trail.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plan_option = click.option("--plan", "plan_only", is_flag=True, help="Show what it would do, and change nothing.")

#: Of repeated lines so many are shown; all are in the JSON.
_SHOWN = 20


@group.command("upload", short_help="Store a file of contexts in a round.")
@click.argument("task_code", metavar="TASK")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@round_option
@click.option("--source", required=True, help="Whose texts they are: name and address, as it is to be cited.")
@click.option("--licence", required=True, help="Under which licence they may be used.")
@click.option("--keep-near", is_flag=True, help="Store lines that nearly repeat others, too.")
@click.option("--new-only", is_flag=True, help="Leave out what repeats other rounds of the task.")
@by_option
@plan_option
@json_option
def upload(
    task_code: str,
    path: Path,
    number: int,
    source: str,
    licence: str,
    keep_near: bool,
    new_only: bool,
    by: str,
    plan_only: bool,
    as_json: bool,
) -> None:
    """Store the contexts of FILE, JSON lines or CSV, in a round of TASK: all that is new of it, or nothing.

    Every broken line is listed with its value. Lines that repeat one of the file or of the round are left out.
    """
    terms = UploadTerms(task_code, number, path, source, licence, keep_near, new_only)
    session = db.session()
    with progress("Comparing contexts", None) as advance:
        if plan_only:
            found = plan_upload(session, terms, advance=advance)
        else:
            found = upload_contexts(session, services().clock, terms, by=by, advance=advance)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
        return
    _show_upload(found, plan_only=plan_only)


@group.command("list", short_help="Show a round's contexts and what became of them.")
@click.argument("task_code", metavar="TASK")
@round_option
@click.option("--all", "all_of_them", is_flag=True, help="Every context, not only the first 50.")
@json_option
def list_(task_code: str, number: int, all_of_them: bool, as_json: bool) -> None:
    """Show the contexts of a round of TASK: HITs that hold or used them, examples, verdicts, scores, sources."""
    found = contexts_listed(db.session(), services().clock, task_code, number)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
        return
    _show_list(found, None if all_of_them else 50)


@group.command("retire", short_help="Let no further HIT have some contexts.")
@click.argument("task_code", metavar="TASK")
@click.argument("names", metavar="CONTEXT...", nargs=-1, required=True)
@round_option
@click.option("--reason", default="", help="Kept with the decision; needed unless --undo.")
@click.option("--undo", is_flag=True, help="Let HITs have them again.")
@by_option
@plan_option
@json_option
def retire(
    task_code: str,
    names: tuple[str, ...],
    number: int,
    reason: str,
    undo: bool,
    by: str,
    plan_only: bool,
    as_json: bool,
) -> None:
    """Let no further HIT of a round of TASK have CONTEXT, named as `dynahit contexts list` shows it.

    HITs that have it already keep it, and examples stay.
    """
    clock = services().clock
    changed = retire_contexts(
        db.session(), clock, task_code, number, list(names), reason=reason, undo=undo, by=by, plan_only=plan_only
    )
    if as_json:
        click.echo(json.dumps({"changed": changed, "retired": not undo, "plan": plan_only}, indent=2))
        return
    done = "taken back" if undo else "retired"
    click.echo(
        f"{len(changed)} {'would be' if plan_only else 'contexts'} {done}, {len(names) - len(changed)} were before."
    )


@group.command("score", short_help="Ask the model how unsure it is about each.")
@click.argument("task_code", metavar="TASK")
@round_option
@plan_option
@json_option
def score(task_code: str, number: int, plan_only: bool, as_json: bool) -> None:
    """Ask the target model about a round's contexts, for `dynahit hits launch --contexts-by uncertainty`.

    A version of the model is asked once about each; run again, it goes on with what is left.
    """
    session, here = db.session(), services()
    plan = plan_scores(session, task_code, number)
    if plan_only:
        if as_json:
            click.echo(json.dumps(plan.as_json(), indent=2))
            return
        click.echo(f"{plan.contexts:,} contexts, {plan.scored:,} with a score of some version: {plan.how}.")
        click.echo(f"Without examples to ask about: {plan.silent:,}. This is a plan; nothing was changed.")
        return
    here.start_engine()
    settle = getattr(here.engine, "wait_until_settled", None)
    if settle is not None:
        settle(600)
    with progress("Scoring contexts", plan.contexts - plan.silent) as advance:
        done = score_contexts(
            session,
            here.engine,
            here.clock,
            task_code,
            number,
            cards=getattr(here.engine, "card", None),
            advance=advance,
        )
    if as_json:
        click.echo(json.dumps(done.as_json(), indent=2))
        return
    click.echo(f"{done.model_id}, revision {done.revision[:12]}: {done.new:,} contexts scored, {done.known:,} before.")
    if done.silent:
        click.echo(f"{done.silent:,} have no examples to ask about.")


def _show_upload(found: UploadReport, *, plan_only: bool) -> None:
    sort = found.found
    terms = found.terms
    click.echo(f"{found.read:,} contexts read, {len(sort.new):,} of them new to round {terms.number}.")
    _show_repeats("repeat another of the file or the round and are left out", sort.repeats)
    kept = "are kept" if terms.keep_near else "are left out (--keep-near keeps them)"
    _show_repeats(f"nearly repeat another and {kept}", sort.near)
    kept = "are left out" if terms.new_only else "are kept (--new-only leaves them out)"
    _show_repeats(f"repeat, or nearly, one of another round and {kept}", sort.elsewhere)
    if plan_only:
        click.echo("This is a plan. Nothing was stored; leave --plan out to store them.")
    elif found.upload_id is None:
        click.echo("Nothing is new. Nothing was stored.")
    else:
        click.echo(f"Stored as upload {found.upload_id}, from {terms.source}, licence {terms.licence}.")
        click.echo(f"Next: `dynahit hits launch {terms.task_code} --round {terms.number} …` without --contexts.")


def _show_repeats(what: str, found: tuple[Repeat, ...]) -> None:
    if not found:
        return
    click.echo(f"{len(found):,} {what}:")
    for one in found[:_SHOWN]:
        like = "the same" if one.similarity == 1 else f"{one.similarity:.0%} like it"
        click.echo(f"  line {one.line}: {one.of} ({like})")
    if len(found) > _SHOWN:
        click.echo(f"  and {len(found) - _SHOWN:,} more (--json has all)")


def _show_list(found: RoundContexts, most: int | None) -> None:
    spec = task(found.task_code)
    for one in found.uploads:
        click.echo(
            f"Upload {one.id}: {one.added:,} contexts of {one.file_name}, from {one.source}, licence {one.licence}."
        )
    table = Table(
        "context", "held", "used", "ex.", "fooled", "sound", "failed", "unsure", "text", box=None, pad_edge=False
    )
    for context in found.contexts[:most]:
        table.add_row(*_cells(context, hidden=spec.content_warning is not None))
    console = Console()
    console.print(table)
    if most is not None and len(found.contexts) > most:
        console.print(f"and {len(found.contexts) - most:,} more (--all shows them)")
    if found.scored_by is not None:
        console.print(Text(f"Unsure: {found.scored_by[0]}, revision {found.scored_by[1][:12]}."))


def _cells(one: ListedContext, *, hidden: bool) -> list[str]:
    known = one.known
    text = "" if hidden else " / ".join(one.fields.values())
    shown = text if len(text) <= 24 else f"{text[:23]}…"
    return [
        one.name,
        str(known.held),
        str(known.used),
        str(known.asked),
        str(known.fooled),
        str(known.sound),
        str(known.failed),
        f"{known.uncertainty:.2f}" if known.uncertainty is not None else "",
        f"(retired) {shown}" if known.retired else shown,
    ]
