"""``dynahit round list``, ``status`` and the commands that take a round from one state into the next."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from app.extensions import db
from app.operations import stop_rules as rules_of_rounds
from app.operations.close_round import close_round, plan_close
from app.operations.move_round import Standing, archive_round, list_rounds, open_round, standing_of
from app.operations.pilot import PilotReport, pilot_report, release_pilot
from app.services import services
from hits.errors import InvalidInput
from hits.export import find_round
from hits.money import display, usd
from hits.rates import Rate
from hits.rounds import NotReady, StopRules, rules_of
from hits.states import RoundState

task_argument = click.argument("task_code", metavar="TASK")
number_argument = click.argument("number", metavar="N", type=click.IntRange(1, 10_000))
by_option = click.option("--by", default="command line", help="Who decides, for the audit trail.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plan_option = click.option("--plan", "plan_only", is_flag=True, help="Show what it would do, and change nothing.")
yes_option = click.option("--yes", is_flag=True, help="Don't ask.")

_PLAN = "This is a plan. Nothing was changed; leave --plan out to do it."


@click.command("list", short_help="List the rounds and what comes next.")
@click.option("--all", "archived", is_flag=True, help="Also those that were archived.")
@json_option
@with_appcontext
def list_(archived: bool, as_json: bool) -> None:
    """List the rounds: state, what comes next and how much is missing for it."""
    found = list_rounds(db.session(), services().clock.now(), archived=archived)
    if as_json:
        rows = [
            {
                "task": one.task_code,
                "round": one.number,
                "state": one.state.value,
                "since": one.since.isoformat(),
                "examples": one.examples,
                "next": None if one.then is None else one.then.value,
                "missing": list(one.lacks),
            }
            for one in found
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    if not found:
        click.echo("There is no round yet. `dynahit hits launch` makes one, or `dynahit round policy`.")
        return
    table = Table("round", "state", "since", "examples", "next", "missing")
    for one in found:
        then = "" if one.then is None else one.then.value
        missing = "" if one.then is None else str(len(one.lacks) or "nothing")
        table.add_row(
            f"{one.task_code} {one.number}", one.state.value, f"{one.since:%Y-%m-%d}", str(one.examples), then, missing
        )
    Console().print(table)
    click.echo("`dynahit round status TASK N` says what is missing.")


@click.command("status", short_help="Show a round's state, moves and what comes next.")
@task_argument
@number_argument
@json_option
@with_appcontext
def status(task_code: str, number: int, as_json: bool) -> None:
    """Show the state of round N of TASK, how it came there, and what the next moves are and lack."""
    found = standing_of(db.session(), task_code, number, services().clock.now())
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
        return
    show_standing(found, Console())


@click.command("open", short_help="Open a draft, or a round that was closed.")
@task_argument
@number_argument
@by_option
@plan_option
@with_appcontext
def open_(task_code: str, number: int, by: str, plan_only: bool) -> None:
    """Let work of round N of TASK be launched: a draft's, or again of a round that was closed too early."""
    session, clock = db.session(), services().clock
    if plan_only:
        _show_plan(standing_of(session, task_code, number, clock.now()), RoundState.COLLECTING)
        return
    done = open_round(session, clock, task_code, number, by=by)
    click.echo("It is open; `dynahit hits launch` puts work on offer." if done else "It is open. Nothing was changed.")


@click.command("close", short_help="Offer no more work to writers; readers finish.")
@task_argument
@number_argument
@by_option
@plan_option
@yes_option
@with_appcontext
def close(task_code: str, number: int, by: str, plan_only: bool, yes: bool) -> None:
    """Take round N of TASK's open writing HITs off the site. Work in hand is still taken and paid; readers finish."""
    here, session = services(), db.session()
    offered, unmade = plan_close(session, here.mturk.endpoint, here.clock, task_code, number)
    click.echo(f"{offered} open HITs are taken off the site; {unmade} that do not exist yet are never created.")
    if plan_only:
        click.echo(_PLAN)
        return
    if not yes:
        click.confirm("Close it?", abort=True)
    done = close_round(session, here.mturk, here.clock, task_code, number, by=by)
    for finding in done.findings:
        click.echo(finding, err=True)
    click.echo(
        f"Closed: {done.expired} HITs are off the site, {done.withdrawn} were never created."
        " `dynahit jobs run` takes in what is still submitted and lets readers finish."
    )


@click.command("archive", short_help="Put a round away for good; its data stay.")
@task_argument
@number_argument
@by_option
@plan_option
@yes_option
@with_appcontext
def archive(task_code: str, number: int, by: str, plan_only: bool, yes: bool) -> None:
    """Put round N of TASK away: nothing more is done with it. Its data and its export stay as they are."""
    session, clock = db.session(), services().clock
    if plan_only:
        _show_plan(standing_of(session, task_code, number, clock.now()), RoundState.ARCHIVED)
        return
    if not yes:
        click.confirm("This can't be undone. Archive it?", abort=True)
    done = archive_round(session, clock, task_code, number, by=by)
    click.echo("Archived." if done else "It was archived before. Nothing was changed.")


@click.command("pilot", short_help="Show what came of a launch's pilot.")
@task_argument
@number_argument
@json_option
@with_appcontext
def pilot(task_code: str, number: int, as_json: bool) -> None:
    """Show time, wage, error rates and cost of round N of TASK's pilot, and what the rest would cost."""
    found = pilot_report(db.session(), services().settings, services().clock, task_code, number)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
        return
    show_pilot(found, Console())


@click.command("release", short_help="Create the HITs that wait behind a pilot.")
@task_argument
@number_argument
@click.option("--early", is_flag=True, help="Though the pilot's work is not all in, or not all decided.")
@by_option
@plan_option
@yes_option
@with_appcontext
def release(task_code: str, number: int, early: bool, by: str, plan_only: bool, yes: bool) -> None:
    """Let the HITs behind round N of TASK's pilot be created. Running it again creates only what is missing."""
    here, session = services(), db.session()
    found = pilot_report(session, here.settings, here.clock, task_code, number)
    if not found.released:
        show_pilot(found, Console())
    if plan_only:
        click.echo(_PLAN)
        return
    if found.missing and not (early or found.released):
        raise NotReady(task_code, number, found.missing, becoming="released")
    if not (yes or found.released):
        click.confirm(f"Create {found.held} HITs on {here.mturk.endpoint}?", abort=True)
    columns = (TextColumn("Creating HITs"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=found.hits + found.held, completed=found.hits)
        done = release_pilot(
            session,
            here.mturk,
            here.settings,
            here.clock,
            task_code,
            number,
            by=by,
            early=early,
            on_created=lambda count, total: progress.update(bar, completed=count, total=total),
        )
    click.echo(f"Created {done.created} HITs in batch {done.batch_id} on {here.mturk.endpoint}.")


@click.command("stop-rules", short_help="Say when a round stops by itself, or show it.")
@task_argument
@number_argument
@click.option("--validated", metavar="N", help="At so many verified fooling examples.")
@click.option("--spent", metavar="DOLLARS", help="At so much paid and owed, fees included.")
@click.option("--at", "moment", metavar="WHEN", help="At a time, such as 2026-12-24T18:00+01:00.")
@click.option("--plateau", "window", metavar="N", help="When vMER has settled: N examples in a window.")
@click.option("--points", type=int, help="How wide half of its interval may be. [default: 5 points]")
@by_option
@plan_option
@json_option
@with_appcontext
def stop_rules(
    task_code: str,
    number: int,
    *,
    validated: str | None,
    spent: str | None,
    moment: str | None,
    window: str | None,
    points: int | None,
    by: str,
    plan_only: bool,
    as_json: bool,
) -> None:
    """Set when round N of TASK stops by itself; without options, show it. `none` takes a rule away.

    The first rule that is fulfilled closes the round with the next pass of `dynahit jobs run`.
    """
    session, clock = db.session(), services().clock
    before = rules_of(find_round(session, task_code, number))
    session.rollback()

    def change(rules: StopRules) -> StopRules:
        return StopRules(
            validated=rules.validated if validated is None else _whole(validated),
            spent=rules.spent if spent is None else None if spent == "none" else usd(spent),
            at=rules.at if moment is None else _moment(moment),
            window=rules.window if window is None else _whole(window),
            points=rules.points if points is None else points,
        )

    wanted = change(before)
    changing = wanted != before
    if changing and not plan_only:
        wanted = rules_of_rounds.set_rules(session, clock, task_code, number, change, by=by)
    if as_json:
        click.echo(json.dumps({**wanted.as_json(), "changed": changing and not plan_only}, indent=2))
        return
    standing = rules_of_rounds.rules_standing(session, find_round(session, task_code, number), clock.now(), wanted)
    session.rollback()
    for rule in standing:
        click.echo(f"Stops at {rule.words}: {rule.standing}{'; fulfilled' if rule.fired else ''}.")
    if not standing:
        click.echo("It never stops by itself.")
    click.echo("Nothing was changed." if not changing else _PLAN if plan_only else "Set.")


def show_standing(found: Standing, console: Console) -> None:
    """Print where a round is within 80 columns."""
    console.print(Text(f"Round {found.number} of {found.task_code}: {found.state.value}."))
    if found.moves:
        table = Table("when", "from", "to", "by", "note")
        for one in found.moves:
            table.add_row(f"{one.at:%Y-%m-%d %H:%M}", one.before or "", one.after, Text(one.by), Text(one.note))
        console.print(table)
    for rule in found.rules:
        console.print(Text(f"Stops at {rule.words}: {rule.standing}{'; fulfilled' if rule.fired else ''}."))
    for move in found.next_moves:
        console.print(Text(f"Can become {move.to.value}: {move.command}"))
        for lack in move.missing:
            console.print(Text(f"  missing: {lack}"))
    if not found.next_moves:
        console.print(Text("Nothing comes after that."))


def show_pilot(found: PilotReport, console: Console) -> None:
    """Print a pilot's report within 80 columns."""
    wage = found.wage
    table = Table(title=f"{found.task_code}, round {found.number}: pilot of {found.hits} HITs", show_header=False)
    table.add_column()
    table.add_column()
    table.add_row("Submitted", f"{found.submitted} of {found.places} assignments")
    table.add_row("Time, median", "none yet" if found.seconds is None else f"{found.seconds / 60:.1f} minutes")
    measured = (
        f"{display(wage.median)} median, {display(wage.mean)} all together"
        if wage.median is not None and wage.mean is not None
        else "none yet"
    )
    table.add_row("Hourly wage", f"{measured} (stated {display(wage.stated)})")
    table.add_row("MER", _in_words(found.rates.mer))
    table.add_row("vMER", _in_words(found.rates.vmer))
    table.add_row("Waiting for readers or for you", str(found.waiting))
    table.add_row("Cost so far, fees included", display(found.cost))
    table.add_section()
    if found.forecast is None:
        table.add_row("The whole launch will cost", "no forecast until readers have decided")
    else:
        low, likely, high = (display(amount) for amount in found.forecast.cost)
        few, some, many = found.forecast.verified
        each = found.forecast.cost_per_verified
        table.add_row("The whole launch will cost", f"{likely} ({low} to {high})")
        table.add_row("Verified fooling examples", f"{some} ({few} to {many})")
        if each is not None:
            table.add_row("Cost of each", display(each))
    table.add_row(f"The other {found.held} HITs cost at most", display(found.worst))
    console.print(table)
    if found.released:
        console.print(Text("It was released."))
    for one in found.missing if not found.released else ():
        console.print(Text(f"Missing for the release: {one}"))
    if not (found.missing or found.released):
        console.print(Text(f"Ready: dynahit round release {found.task_code} {found.number}"))


def _show_plan(found: Standing, to: RoundState) -> None:
    move = next((one for one in found.next_moves if one.to is to), None)
    if found.state is to:
        click.echo(f"It is {to.value} already.")
    elif move is None:
        click.echo(f"It is {found.state.value} and can't become {to.value}.")
    else:
        click.echo(f"It is {found.state.value} and would become {to.value}.")
        for one in move.missing:
            click.echo(f"Missing: {one}.")
    click.echo(_PLAN)


def _in_words(rate: Rate) -> str:
    return f"{rate.percent} of {rate.of} (95% interval {rate.interval})" if rate.of else "none yet"


def _whole(text: str) -> int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is no whole number. Write digits, or none to take the rule away.") from None


def _moment(text: str) -> datetime | None:
    if text == "none":
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is no time. Write it as 2026-12-24T18:00+01:00, or none.") from None
    try:
        return found if found.tzinfo is None else found.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{text!r} is before the year 1 or after 9999 in UTC. Write a nearer time.") from None
