"""``dynahit staff``: accounts for the requester's and the finance pages."""

from __future__ import annotations

import json

import click
from flask.cli import AppGroup
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sqlalchemy import select

from app.extensions import db
from app.models import ROLES, StaffUser
from app.operations.staff_accounts import add_staff, close_staff, set_staff_password
from app.services import services

group = AppGroup("staff", help="Accounts for requesters and finance.")

_password = click.option(
    "--password", envvar="DYNAHIT_STAFF_PASSWORD", prompt=True, hide_input=True, confirmation_prompt=True,
    help="Asked for when it is left out, or read from DYNAHIT_STAFF_PASSWORD.",
)  # fmt: skip


@group.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_staff(as_json: bool) -> None:
    """List the accounts."""
    users = db.session.scalars(select(StaffUser).order_by(StaffUser.name)).all()
    if as_json:
        rows = [{"name": user.name, "roles": user.roles, "active": user.active} for user in users]
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table("name", "roles", "state", title="Staff", caption=None if users else "Nobody yet.")
    for user in users:
        table.add_row(escape(user.name), ", ".join(user.roles), "active" if user.active else "closed")
    Console().print(table)


@group.command("add")
@click.argument("name")
@click.option("--role", "roles", multiple=True, required=True, type=click.Choice(ROLES), help="May be given twice.")
@_password
def add(name: str, roles: tuple[str, ...], password: str) -> None:
    """Make an account."""
    user = add_staff(db.session(), services().clock, name, password, roles)
    click.echo(f"{user.name} can sign in at {services().settings.service_url}/staff/sign-in.")


@group.command("password")
@click.argument("name")
@_password
def password(name: str, password: str) -> None:
    """Give an account a new password."""
    set_staff_password(db.session(), services().clock, name, password)
    click.echo(f"{name} has a new password.")


@group.command("close")
@click.argument("name")
def close(name: str) -> None:
    """Close an account; what it did stays in the books."""
    close_staff(db.session(), services().clock, name)
    click.echo(f"The account {name} is closed.")
