"""`dynahit marketplace up`: makes a marketplace of one's own on this machine if there is none, and runs it."""

from __future__ import annotations

import os
import secrets
import sys
from decimal import Decimal
from pathlib import Path

import click

from app.cli.environment import read_settings
from app.cli.instance import port_of, quoted, write_private
from app.cli.no_auth import NO_AUTH_HELP, open_to_all
from app.cli.serving_marketplace import run_server
from app.marketplace.settings import Settings, SettingsMissing, settings_from_environment
from app.settings import instance_folder
from hits.marketplace import database
from hits.marketplace.engine import Marketplace

REQUESTER = "My requester account"
PLAY_MONEY = Decimal("1000.00")
INVITATIONS = ("first worker", "second worker")


@click.command("up")
@click.option("--port", type=click.IntRange(1, 65535), envvar="MARKETPLACE_PORT", help="Port. [default: 8000]")
@click.option("--insecure-no-auth", is_flag=True, help=NO_AUTH_HELP)
def up(port: int | None, insecure_no_auth: bool) -> None:
    """Run a marketplace alone on this machine.

    A new one is made first, with money, a key and invitations. Ctrl-C stops it.
    """
    folder = instance_folder()
    make_settings(folder, port or 8000)
    try:
        settings = settings_from_environment()
    except SettingsMissing as error:
        raise click.ClickException(str(error)) from error
    if port not in (None, port_of(settings.site_url)):
        raise click.UsageError(
            f"The marketplace in {folder} was made for {settings.site_url}, and its workers know that address. Leave"
            f" out --port, or make a second one: DYNAHIT_HOME={folder}-{port}."
        )
    database.upgrade(settings.database_url)
    for line in furnish(settings):
        click.echo(line)
    click.echo(f"Worker site and Requester API: {settings.site_url}; everything is kept in {folder}. Ctrl-C stops it.")
    bind = f"127.0.0.1:{port_of(settings.site_url) if settings.on_loopback else 8000}"
    if insecure_no_auth:
        bind = open_to_all(bind, settings)
    sys.exit(run_server(bind, insecure_no_auth=insecure_no_auth))


def make_settings(folder: Path, port: int) -> None:
    """Write fresh secrets into the folder's settings.env, once, and make them this process's environment."""
    if "MARKETPLACE_DATABASE_URL" in os.environ:
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = {
        "MARKETPLACE_DATABASE_URL": f"sqlite:///{folder / 'marketplace.db'}",
        "MARKETPLACE_SECRET_KEY": secrets.token_hex(32),
        "MARKETPLACE_SITE_URL": f"http://127.0.0.1:{port}",
    }
    stored = {**fresh, **read_settings(folder)}
    lines = [f"{name}={quoted(value)}" for name, value in sorted(stored.items())]
    write_private(
        folder / "settings.env", "# Settings of this marketplace. Keep them private.\n" + "\n".join(lines) + "\n"
    )
    for name, value in stored.items():
        os.environ.setdefault(name, value)


def furnish(settings: Settings) -> list[str]:
    """Make a requester with play money, an access key and invitations, each if there is none; say what was made.

    A key's secret is among the lines once, when the key is made.
    """
    marketplace = Marketplace(settings.database_url, settings=settings.engine_settings())
    said = []
    try:
        requester_id = next((one.requester_id for one in marketplace.requesters()), None)
        if requester_id is None:
            requester_id = marketplace.create_requester(REQUESTER).requester_id
        if not marketplace.account_entries(requester_id):
            marketplace.top_up(requester_id, PLAY_MONEY, "play money")
            said.append(f"{REQUESTER!r} ({requester_id}) has ${PLAY_MONEY} of play money.")
        if not marketplace.access_keys(requester_id):
            key = marketplace.create_access_key(requester_id)
            said += [
                "Its access key, shown this once:",
                f"  export AWS_ENDPOINT_URL_MTURK={settings.site_url} AWS_DEFAULT_REGION=us-east-1",
                f"  export AWS_ACCESS_KEY_ID={key.access_key_id} AWS_SECRET_ACCESS_KEY={key.secret}",
            ]
        if not marketplace.invitations():
            codes = [marketplace.create_invitation(note) for note in INVITATIONS]
            said += ["Invitations, one person each:", *(f"  {settings.site_url}/join?code={code}" for code in codes)]
    finally:
        marketplace.close()
    return said
