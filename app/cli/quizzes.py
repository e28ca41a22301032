"""``dynahit qualification quiz``: the quizzes of the tasks, launched as paid HITs or put on the marketplace."""

from __future__ import annotations

import json
from decimal import Decimal

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.table import Table

from app.extensions import db
from app.operations.launch_quiz import QuizPlan, QuizTerms, launch_quiz, plan_quiz, publish_quiz, quiz_standings
from app.services import services
from hits.money import display, usd
from hits.tasks import task
from qualification.quiz_requirements import retire_version
from qualification.quizzes import QuizFor, kind_of

group = AppGroup("quiz", help="Launch quizzes that earn qualifications.")

task_argument = click.argument("task_code", metavar="TASK")
audience_argument = click.argument("audience", metavar="FOR", type=click.Choice([one.value for one in QuizFor]))


@group.command("launch", short_help="Offer a task's quiz as paid HITs.")
@task_argument
@audience_argument
@click.option("--reward", required=True, help="Pay for each try, in dollars.")
@click.option("--places", type=int, default=20, show_default=True, help="How many people can take each try.")
@click.option("--minutes", type=int, default=8, show_default=True, help="How long a try takes, as workers are told.")
@click.option("--round", "round_number", type=int, default=1, show_default=True, help="The round that pays for it.")
@click.option("--lifetime-hours", type=int, default=336, show_default=True, help="How long the HITs stay on the site.")
@click.option("--assignment-minutes", type=int, default=60, show_default=True, help="Time limit of a try.")
@click.option("--batch", "name", default="", help="Tells two launches of the same terms apart.")
@click.option("--reason", "wage_reason", default="", help="Why it pays less than DYNAHIT_WAGE_FLOOR; kept and shown.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what it would do and cost; change nothing.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
def launch(
    task_code: str,
    audience: str,
    reward: str,
    places: int,
    minutes: int,
    round_number: int,
    lifetime_hours: int,
    assignment_minutes: int,
    name: str,
    wage_reason: str,
    plan_only: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Offer the quiz of TASK for writer or validator as paid HITs, one for each try."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    terms = QuizTerms(
        task_code=task_code,
        quiz_for=audience,
        places=places,
        reward=usd(reward),
        minutes=minutes,
        round_number=round_number,
        lifetime_hours=lifetime_hours,
        assignment_minutes=assignment_minutes,
        name=name,
        wage_reason=wage_reason,
    )
    here, session = services(), db.session()
    plan = plan_quiz(session, here.mturk, here.settings, here.clock, terms)
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
    result = launch_quiz(session, here.mturk, here.settings, here.clock, terms)
    if as_json:
        fields = {"batch": result.batch_id, "created": result.created, "existing": result.existing}
        click.echo(json.dumps(fields, indent=2))
    elif result.created:
        click.echo(f"Created {result.created} quiz HITs in batch {result.batch_id} on {plan.endpoint}.")
        click.echo(f"`dynahit jobs run` grants {plan.qualification!r}, value {plan.version}, to those who pass.")
    else:
        click.echo(f"This launch is finished: its {result.existing} HITs exist (batch {result.batch_id}).")


@group.command("publish", short_help="Put a task's quiz on the marketplace.")
@task_argument
@audience_argument
@click.option("--plan", "plan_only", is_flag=True, help="Show what would stand there; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def publish(task_code: str, audience: str, plan_only: bool, as_json: bool) -> None:
    """Put the quiz of TASK for writer or validator on the marketplace itself: a fixed form, scored there, unpaid."""
    here, session = services(), db.session()
    if plan_only:
        terms = QuizTerms(task_code=task_code, quiz_for=audience, places=1, reward=Decimal("0.01"))
        plan = plan_quiz(session, here.mturk, here.settings, here.clock, terms)
        said = (
            f"Would put version {plan.version} of the quiz {plan.kind!r}, {plan.drawn} fixed questions, on the"
            f" qualification {plan.qualification!r}. Nothing was changed."
        )
        fields = {"quiz": plan.kind, "version": plan.version, "qualification": plan.qualification, "changed": False}
        click.echo(json.dumps(fields, indent=2) if as_json else said)
        return
    done = publish_quiz(session, here.mturk, here.settings, here.clock, task_code, audience)
    said = (
        f"The quiz {done.kind!r}, version {done.version}, stands on {done.qualification!r} with {done.questions}"
        f" questions{'' if done.changed else ', as it did before'}. Who passes holds the value {done.version}."
    )
    fields = {
        "quiz": done.kind,
        "version": done.version,
        "qualification": done.qualification,
        "changed": done.changed,
    }
    click.echo(json.dumps(fields, indent=2) if as_json else said)


@group.command("retire", short_help="Let new HITs accept a version no more.")
@task_argument
@audience_argument
@click.argument("version", type=click.IntRange(1, 1_000_000))
def retire(task_code: str, audience: str, version: int) -> None:
    """Let new HITs accept VERSION of the quiz no more; those that are on the site still do."""
    here, session = services(), db.session()
    kind = kind_of(QuizFor(audience), task(task_code).code)
    new = retire_version(session, kind, version, here.clock.now())
    session.commit()
    click.echo(f"Version {version} of {kind!r} {'is' if new else 'was'} retired{'' if new else ' before'}.")


@group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_quizzes(as_json: bool) -> None:
    """List the quizzes with their versions and how many people passed."""
    found = quiz_standings(db.session())
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], indent=2))
        return
    columns = ("quiz", "version", "current", "accepted", "tries", "passed", "published")
    table = Table(*columns, caption=None if found else "None yet.")
    for one in found:
        table.add_row(
            one.kind,
            str(one.number),
            "yes" if one.is_current else "no",
            "yes" if one.is_accepted else "no",
            str(one.answered),
            str(one.passed),
            "yes" if one.is_published else "no",
        )
    Console().print(table)


def show_plan(plan: QuizPlan, console: Console) -> None:
    """Print the plan of a launch."""
    terms = plan.terms
    table = Table(title=f"{plan.kind}: {plan.title}", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    new = " (new: the task's file has changed, or it is the first)" if plan.is_new_version else ""
    table.add_row("Version", f"{plan.version}{new}")
    table.add_row("Earns", f"{plan.qualification!r} with the value {plan.version}")
    table.add_row("Questions", f"{plan.drawn} of {plan.pool} each time; {plan.needed} right answers pass")
    table.add_row("HITs to create", f"{plan.missing_hits}, one for each of {plan.tries} tries")
    table.add_row("Places", f"{terms.places} for each HIT")
    table.add_row("Reward", f"{display(terms.reward)} for each try, passed or not")
    table.add_row("Hourly wage", f"{display(plan.hourly_wage)} at {terms.minutes} minutes")
    table.add_section()
    table.add_row("Rewards", display(plan.worst.rewards))
    table.add_row("Fees", display(plan.worst.reward_fees))
    table.add_row("Worst case, every place taken", display(plan.worst.total), style="bold")
    table.add_section()
    table.add_row("Balance", display(plan.balance))
    table.add_row("Left in the worst case", display(plan.left))
    table.add_row("Marketplace", plan.endpoint)
    console.print(table)
    for note in plan.notes:
        console.print(f"Note: {note}", markup=False, highlight=False)
