"""``dynahit hits``: launch batches of HITs and see how they stand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from app.cli.wage_topup import topup
from app.extensions import db
from app.operations.launch import (
    LaunchPlan,
    LaunchResult,
    LaunchTerms,
    contexts_of_round,
    launch_batch,
    plan_launch,
)
from app.operations.review import approve_reviewed, expire_batch, open_hits, plan_review
from app.operations.status import BatchStatus, batch_statuses
from app.services import services
from hits.contexts import STRATEGIES, read_contexts
from hits.contexts.selection import LEAST_USED
from hits.errors import NotFound
from hits.money import ZERO, display, usd
from hits.states import HitKind
from hits.tasks import TaskSpec, task

group = AppGroup("hits", help="Launch batches of HITs and see how they stand.")
group.add_command(topup)


@group.command("launch")
@click.argument("task_code", metavar="TASK")
@click.option("--round", "round_number", type=int, required=True, help="Number of the round, made if it is new.")
@click.option(
    "--contexts",
    type=click.Path(path_type=Path),
    help="File of contexts, JSON lines or CSV; without it, those that the round holds.",
)
@click.option(
    "--contexts-by",
    type=click.Choice(list(STRATEGIES)),
    default=LEAST_USED,
    show_default=True,
    help="How contexts are chosen for the HITs.",
)
@click.option(
    "--per-context", type=int, default=0, metavar="N", help="No context gets more than N HITs of the round; 0: any."
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
@click.option(
    "--require",
    "requirements",
    multiple=True,
    metavar="TEXT",
    help='What workers must have, such as "percent-approved >= 95" or "locale in US, GB"; repeatable.',
)
@click.option(
    "--practice",
    type=int,
    default=0,
    show_default=True,
    help="How many of a new writer's examples must pass a reviewer before readers get any.",
)
@click.option(
    "--streak",
    nargs=2,
    type=(int, str),
    metavar="HITS DOLLARS",
    help="Pay so much more for every so many HITs in a row with a verified statement.",
)
@click.option(
    "--sure",
    nargs=2,
    type=(int, str),
    metavar="PERCENT DOLLARS",
    help="Pay so much more when the model was so sure of its wrong label.",
)
@click.option("--quiz", is_flag=True, help="Only for those who passed the task's writers' quiz.")
@click.option("--reason", "wage_reason", default="", help="Why it pays less than DYNAHIT_WAGE_FLOOR; kept and shown.")
@click.option("--pilot", type=int, default=0, metavar="N", help="Create N first; the rest after `round release`.")
@click.option("--batch", "name", default="", help="Tells another batch of the same terms apart.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the order of contexts and goals.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what it would do and cost, and change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
def launch(
    task_code: str,
    round_number: int,
    contexts: Path | None,
    contexts_by: str,
    per_context: int,
    hits: int,
    reward: str,
    bonus: str,
    tries: int,
    minutes: int,
    assignments: int,
    lifetime_hours: int,
    auto_approval_hours: int,
    assignment_minutes: int,
    requirements: tuple[str, ...],
    practice: int,
    streak: tuple[int, str] | None,
    sure: tuple[int, str] | None,
    quiz: bool,
    wage_reason: str,
    pilot: int,
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
        practice=practice,
        requirements=requirements,
        quiz=quiz,
        wage_reason=wage_reason,
        pilot=pilot,
        streak_length=streak[0] if streak else 0,
        streak_bonus=usd(streak[1]) if streak else ZERO,
        sure_percent=sure[0] if sure else 0,
        sure_bonus=usd(sure[1]) if sure else ZERO,
        contexts_by=contexts_by,
        per_context=per_context,
        of_round=contexts is None and bool(task(task_code).context_fields),
    )
    here = services()
    session = db.session()
    read = contexts_from(contexts, task(task_code), round_number)
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
        click.confirm(f"Create {plan.hits_now} HITs on {plan.endpoint}?", abort=True)

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
        bar = progress.add_task("", total=plan.existing_hits + plan.hits_now, completed=plan.existing_hits)
        try:
            result = run(lambda done, total: progress.update(bar, completed=done, total=total))
        except KeyboardInterrupt:
            progress.stop()
            click.echo("Stopped. Run the same launch again to go on: no HIT is created twice.", err=True)
            raise
    click.echo(f"Created {result.created} HITs in batch {result.batch_id} on {plan.endpoint}.")
    click.echo("Next: `dynahit hits status` shows how they stand; `dynahit jobs run` collects and approves.")
    if plan.held_hits:
        click.echo(f"{plan.held_hits} more wait: `dynahit round pilot {task_code} {round_number}` shows how it went.")


def contexts_from(path: Path | None, spec: TaskSpec, number: int) -> list[dict[str, str]]:
    """Return the contexts of a file, else those of the round, or the one empty context of a task that has none.

    Raises UsageError when there is neither a file nor such a round.
    """
    if path is not None:
        return read_contexts(path, spec)
    if not spec.context_fields:
        return [{}]
    try:
        return contexts_of_round(db.session(), spec.code, number)
    except NotFound as error:
        names = ", ".join(repr(item.name) for item in spec.context_fields)
        raise click.UsageError(
            f"The {spec.code} task needs --contexts: a file with a JSON object of {names} per line, as"
            f" round {number} is not there and holds none."
        ) from error


@group.command("status")
@click.option("--task", "task_code", help="Only this task.")
@click.option("--round", "round_number", type=click.IntRange(1, 10_000), help="Only this round.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def status(task_code: str | None, round_number: int | None, as_json: bool) -> None:
    """Show every batch: HITs, work, verdicts, deadlines."""
    found = batch_statuses(db.session(), task_code=task_code, round_number=round_number)
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], indent=2))
        return
    if not found:
        click.echo("No such batch was launched yet. `dynahit hits launch` makes one.")
        return
    show_statuses(found, Console())


@group.command("review")
@click.argument("assignment_id", metavar="ASSIGNMENT")
@click.option("--approve", is_flag=True, help="Approve and pay it, though something was not as it should be.")
@click.option("--plan", "plan_only", is_flag=True, help="Show why it waits and what it would cost; change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--by", default="command line", help="Who decides, for the audit trail.")
def review(assignment_id: str, approve: bool, plan_only: bool, yes: bool, by: str) -> None:
    """Decide about an ASSIGNMENT that `hits status` asks you to look at."""
    if approve == plan_only:
        raise click.UsageError("Say --approve to pay it, or --plan to see what that means.")
    here = services()
    session = db.session()
    plan = plan_review(session, here.clock, assignment_id)
    click.echo(f"Assignment {plan.assignment_id} waits because it was {plan.reason}.")
    click.echo(f"Approving it pays {display(plan.reward)} and a fee of {display(plan.fee)}.")
    if plan_only:
        click.echo("This is a plan. Nothing was changed.")
        return
    if not yes:
        click.confirm("Approve it?", abort=True)
    done = approve_reviewed(session, here.mturk, here.clock, assignment_id, by=by)
    for finding in done.findings:
        click.echo(finding, err=True)
    click.echo(f"{done.approved} approved.")


@group.command("expire")
@click.argument("batch_id", metavar="BATCH", type=click.IntRange(1, 2**31 - 1))
@click.option("--yes", is_flag=True, help="Don't ask.")
def expire(batch_id: int, yes: bool) -> None:
    """Take the open HITs of a BATCH off the site. Work in hand can still be submitted and is paid."""
    here = services()
    session = db.session()
    if not yes:
        click.confirm(f"Expire {open_hits(session, batch_id)} HITs of batch {batch_id}?", abort=True)
    done = expire_batch(session, here.mturk, batch_id)
    click.echo(f"{len(done)} HITs of batch {batch_id} are off the site. Their held money is free again.")


def show_plan(plan: LaunchPlan, console: Console) -> None:
    """Print a launch plan."""
    terms, worst = plan.terms, plan.worst
    table = Table(title=f"{plan.terms.task_code}, round {terms.round_number}: {plan.title}", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("HITs to create", str(plan.missing_hits) if not plan.held_hits else _in_two(plan))
    table.add_row("Assignments", f"{worst.assignments} ({terms.assignments} per HIT)")
    table.add_row("Contexts", f"{plan.contexts_used} used of {plan.contexts} in the file")
    table.add_row("Goals", ", ".join(f"{count} {label}" for label, count in plan.goals.items()))
    table.add_row("Reward, bonus", f"{display(terms.reward)}, {display(terms.bonus)} per verified statement")
    table.add_row("Tries, minutes", f"{terms.tries} tries, {terms.minutes} minutes")
    for sentence in terms.extras.sentences:
        table.add_row("Bonus besides", sentence)
    table.add_row("Hourly wage", f"{display(plan.hourly_wage)} at {terms.minutes} minutes, without bonus")
    for requirement in terms.requirements:
        table.add_row("Workers must have", Text(requirement))
    if terms.practice:
        table.add_row("Practice of new writers", f"{terms.practice} examples that pass a reviewer")
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
        goals.add_row(Text(_short(context)), ", ".join(f"{count} {label}" for label, count in sorted(counts.items())))
    if len(plan.goals_by_context) > len(shown):
        goals.caption = f"and {len(plan.goals_by_context) - len(shown)} more contexts"
    console.print(goals)
    for note in plan.notes:
        console.print(f"Note: {note}", markup=False, highlight=False)


def _in_two(plan: LaunchPlan) -> str:
    return f"{plan.hits_now} now, {plan.held_hits} after the pilot"


def show_statuses(found: list[BatchStatus], console: Console) -> None:
    """Print batches, a round's validation batches together, and below what a person must look at."""
    for title, part in _blocks(found):
        table = Table(title=title, title_justify="left", show_header=False)
        reward = ", ".join(sorted({display(one.reward) for one in part}))
        bonus = max(one.bonus for one in part)
        deadlines = [one.next_auto_approval for one in part if one.next_auto_approval]
        places, collected = sum(one.places for one in part), sum(one.collected for one in part)
        table.add_row("HITs", _counts([one.hits for one in part]))
        table.add_row("Work", f"{collected} of {places} submitted ({_counts([one.assignments for one in part])})")
        table.add_row("Pay", f"{reward} each" + (f", {display(bonus)} per verified statement" if bonus else ""))
        if any(one.examples for one in part):
            statements, fooled = sum(one.examples for one in part), sum(one.fooled for one in part)
            table.add_row("Statements", f"{statements}, of which {fooled} fooled the model")
            table.add_row("Verdicts", _counts([one.verdicts for one in part]))
        for one in part:
            if one.median_wage is not None and one.mean_wage is not None:
                left = f", {one.left_open} left open" if one.left_open else ""
                table.add_row(
                    "Hourly wage",
                    f"stated {display(one.stated_wage)}, median {display(one.median_wage)},"
                    f" all together {display(one.mean_wage)}{left} (batch {one.batch_id})",
                )
            if one.wage_reason is not None:
                table.add_row("Below the wage floor because", Text(one.wage_reason))
        if deadlines:
            table.add_row("Approved by itself from", f"{min(deadlines):%Y-%m-%d %H:%M} UTC on")
        table.add_row("Marketplace", ", ".join(sorted({one.endpoint for one in part})))
        console.print(table)
    for one in found:
        if one.held:
            console.print(
                f"{one.held} HITs of batch {one.batch_id} wait behind its pilot:"
                f" `dynahit round pilot {one.task_code} {one.round_number}` shows how it went.",
                markup=False,
                highlight=False,
            )
        if one.unfinished:
            creation = one.kind == HitKind.CREATION
            way_out = "run the same launch again" if creation else "`dynahit jobs run` goes on with it"
            console.print(
                f"Batch {one.batch_id} was interrupted, some of its HITs do not exist yet: {way_out}.",
                markup=False,
                highlight=False,
            )
        for review in one.to_review:
            console.print(
                f"Look at assignment {review.assignment_id} of batch {one.batch_id}: {review.reason}.",
                markup=False,
                highlight=False,
            )
    if any(one.to_review for one in found):
        console.print("`dynahit hits review ASSIGNMENT --approve` pays for it.", markup=False, highlight=False)


def _blocks(found: list[BatchStatus]) -> list[tuple[str, list[BatchStatus]]]:
    """Return what is shown together: each creation batch, and all validation batches of a round."""
    blocks: dict[tuple[str, int, int | None, str], list[BatchStatus]] = {}
    for one in found:
        own = None if one.kind == HitKind.VALIDATION else one.batch_id
        blocks.setdefault((one.task_code, one.round_number, own, one.endpoint), []).append(one)
    titles = []
    for (task_code, number, own, _), part in blocks.items():
        what = f"validation, {len(part)} {'batch' if len(part) == 1 else 'batches'}" if own is None else f"batch {own}"
        titles.append((f"{task_code}, round {number}: {what}", part))
    return titles


def _counts(several: Sequence[Mapping[str, int]]) -> str:
    total = Counter[str]()
    for counts in several:
        total.update(counts)
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in total.items() if count) or "none"


def _short(text: str, most: int = 70) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
