"""``dynahit hits``: launch batches of HITs and see how they stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from app.extensions import db
from app.operations.launch import LaunchPlan, LaunchResult, LaunchTerms, launch_batch, plan_launch
from app.operations.status import BatchStatus, batch_statuses
from app.services import services
from hits.contexts import read_contexts
from hits.money import display, usd
from hits.tasks import task

group = AppGroup("hits", help="Launch batches of HITs and see how they stand.")


@group.command("launch")
@click.argument("task_code", metavar="TASK")
@click.option("--round", "round_number", type=int, required=True, help="Number of the round, made if it is new.")
@click.option(
    "--contexts", type=click.Path(path_type=Path), required=True, help="JSON lines file, one context per line."
)
@click.option("--hits", type=int, required=True, help="How many HITs.")
@click.option("--reward", required=True, metavar="DOLLARS", help="Pay for each approved assignment.")
@click.option("--bonus", required=True, metavar="DOLLARS", help="Pay for each verified statement that fools the model.")
@click.option("--tries", type=int, required=True, help="How often a worker may ask the model in a HIT.")
@click.option("--minutes", type=int, default=6, show_default=True, help="How long a HIT takes, as told to workers.")
@click.option("--assignments", type=int, default=1, show_default=True, help="How many people may do each HIT.")
@click.option("--lifetime-hours", type=int, default=168, show_default=True, help="How long the HITs are on offer.")
@click.option("--auto-approval-hours", type=int, default=72, show_default=True, help="Approved by itself after that.")
@click.option(
    "--assignment-minutes", type=int, default=60, show_default=True, help="Time from accepting to submitting."
)
@click.option("--batch", "name", default="", help="Tells another batch of the same terms apart.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the order of contexts and goals.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what it would do and cost, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
def launch(
    task_code: str,
    round_number: int,
    contexts: Path,
    hits: int,
    reward: str,
    bonus: str,
    tries: int,
    minutes: int,
    assignments: int,
    lifetime_hours: int,
    auto_approval_hours: int,
    assignment_minutes: int,
    name: str,
    seed: int,
    plan_only: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Put HITs of TASK on the marketplace. Running it again creates only what is missing."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    terms = LaunchTerms(
        task_code=task_code,
        round_number=round_number,
        hits=hits,
        reward=usd(reward),
        bonus=usd(bonus),
        tries=tries,
        minutes=minutes,
        assignments=assignments,
        lifetime_hours=lifetime_hours,
        auto_approval_hours=auto_approval_hours,
        assignment_minutes=assignment_minutes,
        name=name,
        seed=seed,
    )
    here = services()
    session = db.session()
    read = read_contexts(contexts, task(task_code))
    plan = plan_launch(session, here.mturk, here.settings, here.clock, terms, read)
    if plan_only:
        if as_json:
            click.echo(json.dumps(plan.as_json(), indent=2))
        else:
            show_plan(plan, Console())
            click.echo("This is a plan. Nothing was changed; leave --plan out to launch.")
        return
    if not as_json:
        show_plan(plan, Console())
    if not (plan.finished or plan.left < 0 or yes):
        click.confirm(f"Create {plan.missing_hits} HITs on {plan.endpoint}?", abort=True)

    def run(on_created: Callable[[int, int], None] | None) -> LaunchResult:
        return launch_batch(session, here.mturk, here.settings, here.clock, terms, read, on_created=on_created)

    if as_json:
        result = run(None)
        click.echo(
            json.dumps({"batch": result.batch_id, "created": result.created, "existing": result.existing}, indent=2)
        )
        return
    if plan.finished:
        click.echo("Nothing was created.")
        return
    columns = (TextColumn("Creating HITs"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=plan.existing_hits + plan.missing_hits, completed=plan.existing_hits)
        result = run(lambda done, total: progress.update(bar, completed=done, total=total))
    click.echo(f"Created {result.created} HITs in batch {result.batch_id} on {plan.endpoint}.")
    click.echo("Next: `dynahit hits status` shows how they stand; `dynahit jobs run` collects and approves.")


@group.command("status")
@click.option("--task", "task_code", help="Only this task.")
@click.option("--round", "round_number", type=int, help="Only this round.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def status(task_code: str | None, round_number: int | None, as_json: bool) -> None:
    """Show every batch: HITs, work, verdicts, deadlines."""
    found = batch_statuses(db.session(), task_code=task_code, round_number=round_number)
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], indent=2))
        return
    show_statuses(found, Console())


def show_plan(plan: LaunchPlan, console: Console) -> None:
    """Print a launch plan."""
    terms, worst = plan.terms, plan.worst
    table = Table(title=f"{plan.terms.task_code}, round {terms.round_number}: {plan.title}", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("HITs to create", str(plan.missing_hits))
    table.add_row("Assignments", f"{worst.assignments} ({terms.assignments} per HIT)")
    table.add_row("Contexts", f"{plan.contexts_used} used of {plan.contexts} in the file")
    table.add_row("Goals", ", ".join(f"{count} {label}" for label, count in plan.goals.items()))
    table.add_row("Reward, bonus", f"{display(terms.reward)}, {display(terms.bonus)} per verified statement")
    table.add_row("Tries, minutes", f"{terms.tries} tries, {terms.minutes} minutes")
    table.add_row("Hourly wage", f"{display(plan.hourly_wage)} at {terms.minutes} minutes, without bonus")
    table.add_section()
    table.add_row("Rewards", display(worst.rewards))
    table.add_row(f"Fee on rewards ({plan.fee_percent} %)", display(worst.reward_fees))
    table.add_row("Bonuses, if every assignment earns one", display(worst.bonuses))
    table.add_row("Fee on bonuses", display(worst.bonus_fees))
    table.add_row(f"Validation, {plan.validation_votes} votes each, one statement per HIT", display(plan.validation))
    table.add_row("Worst case, all included", display(plan.cost), style="bold")
    table.add_section()
    table.add_row("Balance", display(plan.balance))
    table.add_row("Left in the worst case", display(plan.left))
    table.add_row("Marketplace", plan.endpoint)
    table.add_row("Pages are served by", plan.service_url)
    console.print(table)
    shown = plan.goals_by_context[:10]
    goals = Table("context", "goals", title="Goals by context")
    for context, counts in shown:
        goals.add_row(_short(context), ", ".join(f"{count} {label}" for label, count in sorted(counts.items())))
    if len(plan.goals_by_context) > len(shown):
        goals.caption = f"and {len(plan.goals_by_context) - len(shown)} more contexts"
    console.print(goals)
    for note in plan.notes:
        console.print(f"Note: {note}", markup=False, highlight=False)


def show_statuses(found: list[BatchStatus], console: Console) -> None:
    """Print batches, and below them what a person must look at."""
    table = Table("batch", "round", "kind", "HITs", "work", "fooled", "verdicts", "next auto-approval", "marketplace")
    for one in found:
        table.add_row(
            str(one.batch_id),
            f"{one.task_code}/{one.round_number}",
            one.kind,
            _counts(one.hits),
            f"{one.collected} of {one.places}: {_counts(one.assignments)}",
            f"{one.fooled} of {one.examples}",
            _counts(one.verdicts),
            f"{one.next_auto_approval:%Y-%m-%d %H:%M} UTC" if one.next_auto_approval else "",
            one.endpoint,
        )
    console.print(table)
    for one in found:
        if one.unfinished:
            console.print(
                f"Batch {one.batch_id} was interrupted: run the same launch again to create the missing HITs.",
                markup=False,
            )
        for review in one.to_review:
            console.print(
                f"Look at assignment {review.assignment_id} of batch {one.batch_id}: {review.reason}.", markup=False
            )


def _counts(counts: object) -> str:
    if not isinstance(counts, dict):
        raise TypeError(f"Counts are a dict, not {counts!r}.")
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count) or "none"


def _short(text: str, most: int = 70) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
