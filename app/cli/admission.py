"""``dynahit qualification limit | exclude | allow | set-aside | rules``: who may work where, by our own database."""

from __future__ import annotations

import json

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.table import Table

from app.extensions import db
from app.operations import admission_rules as rules
from app.operations.grant import worker_named
from app.operations.requirements import mirror_lists
from app.services import services
from hits.mturk.errors import MTurkUnavailable
from qualification.limits_models import EVERY_ROUND, LimitPer, Work

round_option = click.option(
    "--round", "round_number", type=click.IntRange(1, rules.MOST_ROUND), help="Only this round. [default: every round]"
)
by_option = click.option("--by", default="command line", help="Who decides, for the audit trail.")
LATER = "HITs that are on the marketplace already still show to everybody there; our pages ask from now on."


@click.command("limit", short_help="Limit the HITs of a type, round or day per worker.")
@click.argument("task_code", metavar="TASK")
@click.option("--per", type=click.Choice(["hit-type", "round", "day"]), required=True, help="What is counted.")
@click.option("--most", type=int, help="The most HITs that each worker may do.")
@click.option("--lift", is_flag=True, help="Take the limit away.")
@click.option("--work", type=click.Choice([one.value for one in Work]), default=Work.WRITING.value, show_default=True)
@round_option
@by_option
@with_appcontext
def limit(task_code: str, per: str, most: int | None, lift: bool, work: str, round_number: int | None, by: str) -> None:
    """Let each worker do at most so many HITs of TASK of one HIT type, in a round or in a day (UTC)."""
    if lift == (most is not None):
        raise click.UsageError("Say --most NUMBER, or --lift.")
    session, clock = db.session(), services().clock
    of = (task_code, round_number or EVERY_ROUND, Work(work), LimitPer(per.replace("-", "_")))
    if most is None:
        rules.lift_limit(session, clock, *of, by=by)
        click.echo("The limit is lifted.")
    else:
        rules.set_limit(session, clock, *of, most, by=by)
        click.echo(f"Each worker does at most {most}. Places that were given stay given. {LATER}")
    _tell_marketplace()


@click.command("exclude", short_help="Keep the writers of other rounds out of a round.")
@click.argument("task_code", metavar="TASK")
@click.option("--round", "round_number", type=int, required=True, help="The round that people are kept out of.")
@click.option("--wrote-in", "others", type=int, multiple=True, help="A round whose writers are kept out; repeatable.")
@click.option("--exclusive", is_flag=True, help="Its writers write nowhere else, nor do others write in it.")
@click.option("--lift", is_flag=True, help="Let them in again.")
@by_option
@with_appcontext
def exclude(task_code: str, round_number: int, others: tuple[int, ...], exclusive: bool, lift: bool, by: str) -> None:
    """Keep the writers of other rounds of TASK out of a round, as for a test set."""
    if bool(others) == exclusive:
        raise click.UsageError("Say --wrote-in ROUND for each round whose writers are kept out, or --exclusive.")
    session, clock = db.session(), services().clock
    for other in others or (EVERY_ROUND,):
        if lift:
            rules.lift_exclusion(session, clock, task_code, round_number, other, by=by)
        else:
            rules.exclude_writers(session, clock, task_code, round_number, other, by=by)
    click.echo("Lifted." if lift else f"Kept out. {LATER}")
    _tell_marketplace()


@click.command("allow", short_help="Let only invited workers work on a task.")
@click.argument("task_code", metavar="TASK")
@click.argument("workers", metavar="[WORKER]...", nargs=-1)
@click.option("--remove", is_flag=True, help="Take these workers' invitations back.")
@click.option("--everybody", is_flag=True, help="End the allow-list: everybody may work.")
@round_option
@by_option
@with_appcontext
def allow(
    task_code: str, workers: tuple[str, ...], remove: bool, everybody: bool, round_number: int | None, by: str
) -> None:
    """Let only invited WORKERs (pseudonyms or ids) work on TASK; without any, begin an empty allow-list."""
    if everybody and (workers or remove):
        raise click.UsageError("--everybody ends the whole list, so it goes with no worker and not with --remove.")
    if remove and not workers:
        raise click.UsageError("Say whose invitations are taken back.")
    here, session = services(), db.session()
    number = round_number or EVERY_ROUND
    if everybody:
        rules.end_allow_list(session, here.clock, task_code, number, by=by)
        click.echo("The allow-list is ended. Who was invited is remembered.")
        return
    if not remove and rules.begin_allow_list(session, here.clock, task_code, number, by=by):
        click.echo(f"Only invited workers may work from now on. {LATER}")
    for one in workers:
        worker = worker_named(session, here.settings, here.clock, one)
        pseudonym = worker.pseudonym
        change = rules.take_invitation_back if remove else rules.invite
        changed = change(session, here.clock, task_code, number, worker, by=by)
        what = "no longer invited" if remove else "invited"
        click.echo(f"{pseudonym} is {what}{'' if changed else ', as before'}.")
    _tell_marketplace()


@click.command("set-aside")
@click.argument("task_code", metavar="TASK")
@click.argument("worker_id", metavar="WORKER")
@click.option("--reason", default="", help="Why; it stays among staff.")
@click.option("--lift", is_flag=True, help="Offer them HITs again.")
@by_option
@with_appcontext
def set_aside(task_code: str, worker_id: str, reason: str, lift: bool, by: str) -> None:
    """Offer WORKER (a pseudonym or an id) no HITs of TASK for now. It is no block, and it can be lifted."""
    here, session = services(), db.session()
    worker = worker_named(session, here.settings, here.clock, worker_id)
    pseudonym = worker.pseudonym
    if lift:
        changed = rules.take_back(session, here.clock, task_code, worker, by=by)
        click.echo(f"{pseudonym} is offered HITs of {task_code}{' again' if changed else ', as before'}.")
    else:
        changed = rules.set_aside(session, here.clock, task_code, worker, reason=reason, by=by)
        click.echo(f"{pseudonym} is set aside{'' if changed else ' already'}. What was begun may be finished.")
    _tell_marketplace()


@click.command("rules", short_help="Show limits, exclusions, lists, people set aside.")
@click.option("--task", "task_code", help="Only of this task.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@with_appcontext
def show_rules(task_code: str | None, as_json: bool) -> None:
    """Show the rules in force: limits, exclusions, allow-lists, and how many are on the lists."""
    found = rules.rules_in_force(db.session(), task_code)
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], indent=2))
        return
    table = Table(
        "task", "round", "rule", "people", "since", "by", caption=None if found else "No rules: all may work."
    )
    for one in found:
        table.add_row(
            one.task_code,
            "every" if one.round_number == EVERY_ROUND else str(one.round_number),
            one.words,
            "" if one.people is None else str(one.people),
            f"{one.since:%Y-%m-%d}",
            one.by,
        )
    Console().print(table)


def _tell_marketplace() -> None:
    here = services()
    try:
        done = mirror_lists(db.session(), here.mturk, here.settings, here.clock)
    except MTurkUnavailable:
        click.echo("The marketplace can't be reached; the next pass of `dynahit jobs run` tells it.", err=True)
        return
    for finding in done.findings:
        click.echo(finding, err=True)


COMMANDS = (limit, exclude, allow, set_aside, show_rules)
