"""``dynahit round arms``: the conditions that a round's writers are drawn for, and what they did under each."""

from __future__ import annotations

import json

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.extensions import db
from app.factory import model_references
from app.operations.answer_unseen import waiting_unseen
from app.operations.round_arms import (
    MARGIN,
    RoundArms,
    checked_arms,
    leave_out_unanswered,
    round_arms,
    set_round_arms,
)
from app.services import services
from hits.arms import check_arms, read_arm
from hits.export import find_round
from hits.money import display
from hits.rates import Rate


@click.command("arms", short_help="Draw writers for arms, or show what they did.")
@click.argument("task_code", metavar="TASK")
@click.argument("number", metavar="N", type=click.IntRange(1, 10_000))
@click.option(
    "--arm",
    "written",
    multiple=True,
    metavar="ARM",
    help="'NAME=SHARE', then no-model, no-explanations or model=REFERENCE. Once for each arm: all that there are.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Decides the order of the places. [default: as before]")
@click.option(
    "--margin",
    type=float,
    default=100 * MARGIN,
    show_default=True,
    metavar="POINTS",
    help="How narrow an interval must be to answer.",
)
@click.option("--leave-out", is_flag=True, help="Ask no model any more about texts written unseen without an answer.")
@click.option("--by", default="command line", help="Who decides, for the audit trail.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what it would do, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@with_appcontext
def arms(
    task_code: str,
    number: int,
    written: tuple[str, ...],
    seed: int | None,
    margin: float,
    leave_out: bool,
    by: str,
    plan_only: bool,
    as_json: bool,
) -> None:
    """Show the arms of round N of TASK with their figures; with --arm, set them for people who come from now on.

    Who was drawn stays in the arm. A round that is new is made.
    """
    session, here = db.session(), services()
    if leave_out:
        if written:
            raise click.UsageError("--leave-out goes without --arm: run the command twice.")
        _leave_out(task_code, number, by=by, plan_only=plan_only, as_json=as_json)
        return
    if not written:
        if seed is not None:
            raise click.UsageError("--seed needs the arms that it is for: give them with --arm.")
        found = round_arms(session, task_code, number, margin=margin / 100)
        if as_json:
            click.echo(json.dumps(found.as_json(), indent=2))
        else:
            show_arms(found, Console())
        return
    references = model_references(here.settings)
    wanted = checked_arms(references, task_code, [read_arm(one) for one in written])
    check_arms(wanted)
    changed = not plan_only and set_round_arms(
        session, here.clock, references, task_code, number, wanted, seed=seed, by=by
    )
    if as_json:
        click.echo(json.dumps({"arms": [arm.as_json() for arm in wanted], "changed": changed}, indent=2))
        return
    total = sum(arm.share for arm in wanted)
    for arm in wanted:
        click.echo(f"{arm.name}: {100 * arm.share / total:.1f}% of new writers; {arm.words}.")
    if plan_only:
        click.echo("This is a plan. Nothing was changed; leave --plan out to set it.")
    else:
        click.echo("Set." if changed else "Nothing was changed.")


def _leave_out(task_code: str, number: int, *, by: str, plan_only: bool, as_json: bool) -> None:
    session, clock = db.session(), services().clock
    if plan_only:
        count = len(waiting_unseen(session, clock.now(), round_id=find_round(session, task_code, number).id))
    else:
        count = leave_out_unanswered(session, clock, task_code, number, by=by)
    if as_json:
        click.echo(json.dumps({"left_out": count, "changed": bool(count) and not plan_only}))
        return
    click.echo(f"{count} texts without an answer {'would be' if plan_only else 'were'} left out.")


def show_arms(found: RoundArms, console: Console) -> None:
    """Print the arms of a round within 80 columns."""
    if not found.arms:
        console.print(
            Text(f"Round {found.number} of {found.task_code} has no arms: all write under the same conditions.")
        )
        return
    table = Table("arm", "drawn", "writers", "texts", "a HIT", "sec.", "MER", "vMER", "cost")
    for one in found.arms:
        figures, cost = one.figures, one.cost_per_verified
        table.add_row(
            one.name or "(none)",
            str(one.drawn),
            str(figures.writers),
            str(figures.examples),
            f"{figures.tries:.1f}" if figures.tries is not None else "",
            f"{figures.seconds_each:.0f}" if figures.seconds_each is not None else "",
            figures.mer.percent if figures.examples else "",
            figures.vmer.percent if figures.examples else "",
            display(cost) if cost is not None else "",
        )
    console.print(table)
    for one in found.arms:
        words = one.arm.words if one.arm is not None else "wrote before the round had arms"
        console.print(Text(f"{one.name or '(none)'}: {words}{'' if one.current else '; nobody new'}."))
        if one.figures.examples:
            console.print(Text(f"  MER {_interval(one.figures.mer)}, vMER {_interval(one.figures.vmer)}"))
    console.print(Text("Cost: dollars for one verified fooling text, readers and fees included."))
    for comparison in found.comparisons:
        console.print(Text(comparison.sentence))


def _interval(rate: Rate) -> str:
    return f"{rate.percent} ({rate.interval})"
