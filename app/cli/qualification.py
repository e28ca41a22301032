"""``dynahit qualification``: who may validate."""

from __future__ import annotations

import json

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.table import Table

from app.extensions import db
from app.services import services
from qualification.validators import MINIMUM, validator_type, validators

group = AppGroup("qualification", help="Grant, revoke and list the validators' qualification.")


@group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_validators(as_json: bool) -> None:
    """List the validators by pseudonym."""
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


@group.command("grant")
@click.argument("worker_id")
def grant(worker_id: str) -> None:
    """Make WORKER_ID a validator. The id stands on the worker's account page."""
    here = services()
    type_id = validator_type(here.mturk, here.settings.validator_qualification)
    here.mturk.grant(type_id, worker_id, MINIMUM, notify=True)
    click.echo(f"Granted {here.settings.validator_qualification!r}. Validation HITs show in the worker's list now.")


@group.command("revoke")
@click.argument("worker_id")
@click.option("--reason", default="", help="Kept with the marketplace and shown to the worker.")
@click.confirmation_option(prompt="Take the validators' qualification away?")
def revoke(worker_id: str, reason: str) -> None:
    """Let WORKER_ID validate no more. Votes that count stay counted."""
    here = services()
    type_id = validator_type(here.mturk, here.settings.validator_qualification)
    here.mturk.revoke(type_id, worker_id, reason)
    click.echo(f"Revoked {here.settings.validator_qualification!r}.")
