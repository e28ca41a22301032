"""``dynahit round freeze`` and ``manifest``: close a round's data for good, and show what they are."""

from __future__ import annotations

import json

import click
from flask.cli import with_appcontext

from app.cli.export import progress
from app.extensions import db
from app.operations.freeze import FreezePlan, freeze_round, plan_freeze
from app.services import services
from hits.errors import InvalidInput, Refused
from hits.export import find_round
from hits.frozen import is_frozen
from hits.manifest import SplitTerms


@click.command("freeze", short_help="Freeze a round: splits, manifest, no changes.")
@click.argument("task_code", metavar="TASK")
@click.argument("number", metavar="N", type=click.IntRange(1, 10_000))
@click.option("--shares", default="80,10,10", show_default=True, metavar="T,D,T", help="Percent of train, dev, test.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides who and what goes to which split.")
@click.option(
    "--test-writer", "exclusive", multiple=True, metavar="PSEUDONYM", help="Only these writers are in the test split."
)
@click.option("--balanced", is_flag=True, help="Leave the target model at chance level in dev and test.")
@click.option("--by", default="command line", help="Who decides, for the audit trail.")
@click.option("--plan", "plan_only", is_flag=True, help="Show what is missing and what the splits would be.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; asks nothing, so it needs --plan or --yes.")
@with_appcontext
def freeze(
    task_code: str,
    number: int,
    shares: str,
    seed: int,
    exclusive: tuple[str, ...],
    balanced: bool,
    by: str,
    plan_only: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Freeze round N of TASK: decide its splits, write its manifest, and let nothing of its data change again."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    terms = SplitTerms(seed, _shares(shares), tuple(sorted(set(exclusive))), balanced)
    session = db.session()
    round_ = find_round(session, task_code, number)
    if not is_frozen(round_) and not (yes and not plan_only):
        plan = plan_freeze(session, task_code, number, terms)
        session.rollback()
        if as_json:
            click.echo(json.dumps(plan.as_json(), indent=2))
        else:
            _show(plan)
        if plan_only:
            return
        if plan.missing:
            raise Refused("It can't be frozen yet. Nothing was changed.")
        click.confirm("Freeze it? This can't be undone.", abort=True)
    with progress("Freezing", None) as advance:
        frozen = freeze_round(session, services().clock, task_code, number, terms, by=by, advance=advance)
    if as_json:
        click.echo(json.dumps({"sha256": frozen.sha256, "fresh": frozen.fresh, "manifest": frozen.manifest}, indent=2))
        return
    was = "is frozen" if frozen.fresh else f"was frozen on {frozen.manifest['frozen_at'][:10]}; nothing was changed"
    click.echo(f"Round {number} of {task_code} {was}. Manifest {frozen.sha256}")


@click.command("manifest", short_help="Print a frozen round's manifest.")
@click.argument("task_code", metavar="TASK")
@click.argument("number", metavar="N", type=click.IntRange(1, 10_000))
@with_appcontext
def manifest(task_code: str, number: int) -> None:
    """Print the manifest of the frozen round N of TASK, with its hash, as JSON."""
    round_ = find_round(db.session(), task_code, number)
    if not is_frozen(round_):
        raise Refused(f"Round {number} of the {task_code} task is not frozen, so that it has no manifest yet.")
    click.echo(
        json.dumps({"sha256": round_.manifest_sha256, "manifest": round_.manifest}, indent=2, ensure_ascii=False)
    )


def _shares(text: str) -> tuple[float, float, float]:
    try:
        percents = [float(part) for part in text.split(",")]
        train, dev, test = percents
    except ValueError:
        raise InvalidInput(f"{text!r} are not three shares. Write percents of train, dev and test: 80,10,10.") from None
    return train / 100, dev / 100, test / 100


def _show(plan: FreezePlan) -> None:
    splits = ", ".join(f"{count:,} {name}" for name, count in plan.splits.items())
    click.echo(f"{plan.task_code}, round {plan.number}: {plan.examples:,} examples ({splits}).")
    for one in plan.missing:
        click.echo(f"Missing: {one}.")
