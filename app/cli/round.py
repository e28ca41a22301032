"""``dynahit round``: how a round's votes decide, its gold items, its readers' figures, and single examples."""

from __future__ import annotations

import json
from pathlib import Path

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.round_arms import arms
from app.cli.round_freeze import freeze, manifest
from app.cli.round_moves import archive, close, list_, open_, pilot, release, status, stop_rules
from app.cli.round_progress import progress
from app.cli.round_train import train
from app.extensions import db
from app.operations import override as examples
from app.operations import round_policy
from app.operations.round_stats import RoundStats, round_stats
from app.services import services
from hits.agreement import Agreement
from hits.rates import Rate
from hits.states import Verdict

group = AppGroup("round", help="Take a round from state to state; say how its votes decide; see how it stands.")
for command in (
    list_,
    status,
    open_,
    pilot,
    release,
    close,
    freeze,
    train,
    archive,
    stop_rules,
    progress,
    arms,
    manifest,
):
    group.add_command(command)

number_argument = click.argument("number", metavar="N", type=click.IntRange(1, 10_000))
by_option = click.option("--by", default="command line", help="Who decides, for the audit trail.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plan_option = click.option("--plan", "plan_only", is_flag=True, help="Show what it would do, and change nothing.")


@group.command("stats", short_help="Show error rates, agreement and validators.")
@click.argument("task_code", metavar="TASK")
@number_argument
@json_option
def stats(task_code: str, number: int, as_json: bool) -> None:
    """Show error rates, agreement and validators of round N of TASK, each with what it is divided by."""
    found = round_stats(db.session(), task_code, number)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
        return
    show_stats(found, Console())


@group.command("policy", short_help="Say how a round's votes decide, or show it.")
@click.argument("task_code", metavar="TASK")
@number_argument
@click.option("--agree", "agreeing_votes", type=int, metavar="N", help="Votes for one label that settle an example.")
@click.option("--max", "max_votes", type=int, metavar="N", help="The most votes on one example.")
@click.option("--split", "split_votes", type=int, metavar="N", help="Votes needed once readers differ; 0: as before.")
@click.option("--senior", "senior_value", type=int, metavar="N", help="Qualification value that breaks ties; 0: any.")
@click.option("--non-fooling", "non_fooling_percent", type=int, metavar="PERCENT", help="Share of others to validate.")
@click.option("--gold", "gold_items", type=int, metavar="N", help="Gold items in each validation HIT.")
@click.option("--gold-warning", "gold_warning_percent", type=int, metavar="PERCENT", help="Warn below this accuracy.")
@click.option("--pair", "pair_percent", type=int, metavar="PERCENT", help="Most of each other's for two people.")
@by_option
@plan_option
@json_option
def policy(
    task_code: str,
    number: int,
    *,
    by: str,
    plan_only: bool,
    as_json: bool,
    **changes: int | None,
) -> None:
    """Set how the votes of round N of TASK decide; without options, show it. A round that is new is made.

    What the votes need can be set until the first one is counted, the rest at any time.
    """
    session = db.session()
    before, exists = round_policy.policy_now(session, task_code, number)
    wanted = round_policy.changed(before, **changes)
    changing = wanted != before or (not exists and any(value is not None for value in changes.values()))
    if changing and not plan_only:
        round_policy.set_policy(session, services().clock, task_code, number, wanted, by=by)
    if as_json:
        click.echo(json.dumps({**wanted.as_json(), "changed": changing and not plan_only}, indent=2))
        return
    click.echo(f"Round {number} of {task_code}: {wanted.policy}.")
    click.echo(
        f"{wanted.non_fooling_percent}% of what did not fool the model is validated as well;"
        f" {wanted.gold_items} gold items in a HIT, a warning below {wanted.gold_warning_percent}% of them;"
        f" two people who judge each other may judge {wanted.pair_percent}% of the other's."
    )
    if not changing:
        click.echo("Nothing was changed.")
    elif plan_only:
        click.echo("This is a plan. Nothing was changed; leave --plan out to set it.")
    else:
        click.echo("Set.")


@group.command("gold", short_help="Store gold items of a round.")
@click.argument("task_code", metavar="TASK")
@number_argument
@click.argument("path", metavar="[FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--from-verified", type=int, metavar="N", help="Make up to N of what all readers agreed on.")
def gold(task_code: str, number: int, path: Path | None, from_verified: int | None) -> None:
    """Store gold items of round N of TASK from FILE, JSON lines of context, answer and label; all or none."""
    if (path is None) == (from_verified is None):
        raise click.UsageError("Give a FILE or --from-verified N: one of the two.")
    session, clock = db.session(), services().clock
    if path is not None:
        added, known = round_policy.add_gold_file(session, clock, task_code, number, path)
        click.echo(f"{added} gold items stored" + (f", {known} were there already." if known else "."))
        return
    made = round_policy.add_gold_from_verified(session, clock, task_code, number, from_verified or 0)
    click.echo(f"{made} gold items made. Their writers and readers will not get them.")


@group.command("override", short_help="Decide about an example against the readers.")
@click.argument("example")
@click.option("--label", help="The label that stands above the votes.")
@click.option("--reject", is_flag=True, help="The example is out.")
@click.option("--lift", is_flag=True, help="Let the votes count again.")
@click.option("--reason", default="", help="Kept with the decision; needed with --label and --reject.")
@by_option
def override(example: str, label: str | None, reject: bool, lift: bool, reason: str, by: str) -> None:
    """Decide about EXAMPLE, an id of the export, against the readers' votes."""
    if (label is not None) + reject + lift != 1:
        raise click.UsageError("Give --label LABEL, --reject or --lift: one of the three.")
    session, clock = db.session(), services().clock
    if lift:
        verdict = examples.lift_override(session, clock, example, by=by)
    else:
        verdict = examples.override_example(session, clock, example, label=label, reason=reason, by=by)
    click.echo(f"The verdict is {verdict.value}.")


@group.command("retract")
@click.argument("example")
@click.option("--reason", required=True, help="Kept with the decision.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@by_option
def retract(example: str, reason: str, yes: bool, by: str) -> None:
    """Take EXAMPLE, an id of the export, out of the data for good. A bonus that was earned stays owed."""
    if not yes:
        click.confirm("This can't be undone. Retract it?", abort=True)
    done = examples.retract_example(db.session(), services().clock, example, reason=reason, by=by)
    click.echo("Retracted." if done else "It was retracted before. Nothing was changed.")


def show_stats(found: RoundStats, console: Console) -> None:
    """Print the figures of a round within 80 columns."""
    rates = found.rates
    console.print(Text(f"Round {found.number} of {found.task_code}: {found.policy}."))
    for name, rate, key in (
        ("vMER", rates.vmer, "vmer"),
        ("MER", rates.mer, "mer"),
        ("vMER, resolved only", rates.resolved_vmer, "resolved_vmer"),
    ):
        console.print(Text(f"{name}: {in_words(rate)}"))
        console.print(Text(f"  = {rates.denominators[key]}"))
    for name, value in (("round", found.round_agreement), ("task", found.task_agreement)):
        console.print(Text(f"Krippendorff's alpha of the {name}: {alpha_in_words(value)}"))
    table = Table("verdict", "examples")
    for verdict in Verdict:
        table.add_row(verdict.value, str(rates.verdicts.get(verdict, 0)))
    console.print(table)
    texts = found.likeness
    console.print(Text(f"Near duplicates: {in_words(texts.near)}; copies of the context: {in_words(texts.copied)}"))
    for reason, count in found.waiting.items():
        console.print(Text(f"{count}: {reason}"))
    if not found.readers:
        console.print(Text("No vote was counted yet."))
        return
    people = Table("validator", "votes", "gold", "agreed", "sec.", "drift", "warning")
    for one in found.readers:
        people.add_row(
            one.pseudonym,
            str(one.votes),
            one.gold.percent if one.gold.of else "",
            one.agreed.percent if one.agreed.of else "",
            f"{one.seconds:.0f}" if one.seconds is not None else "",
            f"{one.drift:+.0f}" if one.drift is not None else "",
            "; ".join(one.warnings),
        )
    console.print(people)


def in_words(rate: Rate) -> str:
    """Return a share with its interval."""
    return f"{rate.percent} (95% interval {rate.interval})" if rate.of else "none yet"


def alpha_in_words(found: Agreement) -> str:
    """Return an alpha with its interval and what it is about."""
    about = f"{found.votes} labels on {found.examples} examples"
    if found.alpha is None:
        return f"none yet ({about}, with one label or none)"
    bounds = f", 95% interval {found.low:.3f} to {found.high:.3f}" if found.low is not None else ""
    return f"{found.alpha:.3f}{bounds} ({about})"
