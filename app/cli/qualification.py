"""``dynahit qualification``: who may write and judge, and the quizzes that decide it."""

from __future__ import annotations

import json

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.table import Table

from app.cli import admission
from app.cli.quizzes import group as quizzes
from app.extensions import db
from app.operations import grant as operations
from app.operations.qualification_history import history as history_of
from app.operations.set_level import level_now, set_level
from app.services import services
from hits.errors import Refused
from qualification import grants
from qualification.grants import VALIDATOR
from qualification.models import Level, QualificationGrant
from qualification.validators import validators

group = AppGroup("qualification", help="Grant, revoke and list qualifications; launch the quizzes that earn them.")
group.add_command(quizzes)
for _command in admission.COMMANDS:
    group.add_command(_command)

kind_option = click.option(
    "--kind", default=VALIDATOR, show_default=True, help="Which one: validator, or a quiz's, such as writer:nli."
)
by_option = click.option("--by", default="command line", help="Who decides, for the audit trail.")
plan_option = click.option("--plan", "plan_only", is_flag=True, help="Show what would be done, and change nothing.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@group.command("list", short_help="List validators, or holders of another grant.")
@click.option("--kind", help="Those who hold this one, such as writer:nli, by our own database.")
@click.option("--all", "every", is_flag=True, help="Every qualification of everybody, by our own database.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_holders(kind: str | None, every: bool, as_json: bool) -> None:
    """List the validators as the marketplace has them, or holders of quizzes' qualifications, by pseudonym."""
    if kind is not None and every:
        raise click.UsageError("Say either --kind or --all.")
    if kind is not None or every:
        _list_grants(None if kind is None else operations.checked_kind(kind), as_json)
        return
    here = services()
    key = here.settings.pseudonym_key.get_secret_value()
    name = here.settings.validator_qualification
    found = list(validators(db.session(), here.mturk, name, pseudonym_key=key, now=here.clock.now()))
    db.session.commit()
    if as_json:
        rows = [{"validator": v.pseudonym, "value": v.value, "granted_at": v.granted_at.isoformat()} for v in found]
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table("validator", "value", "granted", title=name, caption=None if found else "Nobody yet.")
    for validator in found:
        table.add_row(validator.pseudonym, str(validator.value), f"{validator.granted_at:%Y-%m-%d %H:%M} UTC")
    Console().print(table)


def _list_grants(kind: str | None, as_json: bool) -> None:
    found = operations.live_grants(db.session(), services().mturk.endpoint, kind)
    if as_json:
        click.echo(json.dumps([_grant_json(grant) for grant in found], indent=2))
        return
    columns = ("worker", "qualification", "version", "value", "state", "since", "until")
    table = Table(*columns, caption=None if found else "Nobody yet.")
    for grant in found:
        table.add_row(
            grant.worker.pseudonym,
            grant.kind,
            str(grant.version or "by hand"),
            str(grant.value),
            grant.state.value,
            f"{grant.granted_at:%Y-%m-%d}" if grant.granted_at else "not yet",
            f"{grant.expires_at:%Y-%m-%d}" if grant.expires_at else "for ever",
        )
    Console().print(table)


def _grant_json(grant: QualificationGrant) -> dict[str, object]:
    return {
        "worker": grant.worker.pseudonym,
        "kind": grant.kind,
        "version": grant.version,
        "value": grant.value,
        "state": grant.state.value,
        "granted_at": grant.granted_at.isoformat() if grant.granted_at else None,
        "expires_at": grant.expires_at.isoformat() if grant.expires_at else None,
        "reason": grant.reason,
        "by": grant.by,
    }


@group.command("grant", short_help="Grant a qualification to a worker.")
@click.argument("worker_id", metavar="WORKER")
@kind_option
@click.option(
    "--value", type=click.IntRange(1, 1_000_000), help="Of validators their rank; of a quiz the version. [default: 1]"
)
@click.option("--months", type=click.IntRange(0, 120), default=0, help="Take it away again after so many months.")
@click.option("--reason", default="", help="Kept with the grant.")
@plan_option
@json_option
@by_option
def grant(
    worker_id: str, kind: str, value: int | None, months: int, reason: str, plan_only: bool, as_json: bool, by: str
) -> None:
    """Grant a qualification to WORKER, a pseudonym or the id on the worker's account page, without a quiz."""
    here, session = services(), db.session()
    name = operations.name_of(here.settings, operations.checked_kind(kind))
    worker = operations.worker_named(session, here.settings, here.clock, worker_id)
    pseudonym = worker.pseudonym
    if plan_only:
        held = grants.latest_grant(session, worker.id, kind, here.mturk.endpoint)
        stands = held is not None and grants.is_held(held, here.clock.now())
        session.rollback()
        _say(
            as_json,
            f"Would grant {name!r} to {pseudonym}{', who holds it already' if stands else ''}. Nothing was changed.",
            {"worker": pseudonym, "kind": kind, "qualification": name, "held_already": stands, "granted": 0},
        )
        return
    done = operations.grant_by_hand(
        session, here.mturk, here.settings, here.clock, worker, kind, value=value, months=months, reason=reason, by=by
    )
    _raise_findings(done)
    shown = "Validation HITs show" if kind == VALIDATOR else "HITs that ask for it show"
    said = f"Granted {name!r}. {shown} in the worker's list now." if done.granted else f"{name!r} is held already."
    _say(as_json, said, {"worker": pseudonym, "kind": kind, "qualification": name, "granted": done.granted})


@group.command("revoke")
@click.argument("worker_id", metavar="WORKER")
@kind_option
@click.option("--reason", default="", help="Kept with the marketplace and shown to the worker.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@plan_option
@json_option
@by_option
def revoke(worker_id: str, kind: str, reason: str, yes: bool, plan_only: bool, as_json: bool, by: str) -> None:
    """Take a qualification from WORKER. Work that counts stays counted; only `reset` lets it be earned again."""
    if as_json and not (plan_only or yes):
        raise click.UsageError("--json asks nothing, so it needs --plan or --yes.")
    here, session = services(), db.session()
    name = operations.name_of(here.settings, operations.checked_kind(kind))
    worker = operations.worker_named(session, here.settings, here.clock, worker_id)
    pseudonym = worker.pseudonym
    if plan_only:
        session.rollback()
        said = f"Would take {name!r} from {pseudonym}. Nothing was changed."
        _say(as_json, said, {"worker": pseudonym, "kind": kind, "qualification": name, "revoked": 0})
        return
    if not yes:
        click.confirm(f"Take {name!r} away from {pseudonym}?", abort=True)
    done = operations.revoke(session, here.mturk, here.settings, here.clock, worker, kind, reason=reason, by=by)
    _raise_findings(done)
    _say(
        as_json,
        f"Revoked {name!r}.",
        {"worker": pseudonym, "kind": kind, "qualification": name, "revoked": done.ended},
    )


@group.command("reset")
@click.argument("worker_id", metavar="WORKER")
@click.option("--kind", required=True, help="Which quiz, such as writer:nli.")
@json_option
@by_option
def reset(worker_id: str, kind: str, as_json: bool, by: str) -> None:
    """Give WORKER all tries at a quiz again, after a revocation too. What is held stays held."""
    here, session = services(), db.session()
    worker = operations.worker_named(session, here.settings, here.clock, worker_id)
    pseudonym = worker.pseudonym
    tries = operations.reset(session, here.clock, worker, operations.checked_kind(kind), by=by)
    said = f"{pseudonym} can take the quiz {kind!r} again; {tries} {'try' if tries == 1 else 'tries'} set aside."
    _say(as_json, said, {"worker": pseudonym, "kind": kind, "set_aside": tries})


@group.command("history")
@click.argument("worker_id", metavar="WORKER")
@json_option
def history(worker_id: str, as_json: bool) -> None:
    """Show what WORKER took, held and lost, oldest first."""
    here, session = services(), db.session()
    worker = operations.worker_named(session, here.settings, here.clock, worker_id)
    events, pseudonym = history_of(session, worker), worker.pseudonym
    session.rollback()
    if as_json:
        click.echo(json.dumps({"worker": pseudonym, "events": [event.as_json() for event in events]}, indent=2))
        return
    caption = None if events else "Nothing yet."
    table = Table("when", "qualification", "what", "detail", "by", title=pseudonym, caption=caption)
    for event in events:
        table.add_row(f"{event.at:%Y-%m-%d %H:%M} UTC", event.kind, event.what, event.detail, event.by)
    Console().print(table)


@group.command("level", short_help="Show or set how far somebody has come in a task.")
@click.argument("worker_id", metavar="WORKER")
@click.argument("task_code", metavar="TASK")
@click.option("--to", "wanted", type=click.Choice([level.value for level in Level]), help="The level to set.")
@click.option("--reason", default="", help="Needed with --to; stays among staff.")
@plan_option
@json_option
@by_option
def level(
    worker_id: str, task_code: str, wanted: str | None, reason: str, plan_only: bool, as_json: bool, by: str
) -> None:
    """Show the level of WORKER in TASK, or raise or lower it with --to. Experts break the ties of validators."""
    here, session = services(), db.session()
    worker = operations.worker_named(session, here.settings, here.clock, worker_id)
    pseudonym, before = worker.pseudonym, level_now(session, worker, task_code)
    after = before if wanted is None else Level(wanted)
    fields: dict[str, object] = {"worker": pseudonym, "task": task_code, "level": before.value, "to": after.value}
    if wanted is None or plan_only:
        session.rollback()
        would = f"; would be set to {after.value}. Nothing was changed." if plan_only and after is not before else "."
        _say(as_json, f"{pseudonym} in {task_code}: {before.value}{would}", {**fields, "changed": False})
        return
    done = set_level(session, here.mturk, here.settings, here.clock, worker, task_code, after, reason=reason, by=by)
    _raise_findings(done)
    _say(as_json, f"{pseudonym} in {task_code}: {before.value}, now {after.value}.", {**fields, "changed": True})


def _say(as_json: bool, words: str, fields: dict[str, object]) -> None:
    click.echo(json.dumps(fields, indent=2) if as_json else words)


def _raise_findings(done: operations.Settled) -> None:
    if done.findings:
        raise Refused(" ".join(done.findings))
