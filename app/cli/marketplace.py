"""`dynahit marketplace ...`: sets up and runs the marketplace; reads MARKETPLACE_* from the environment."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal, InvalidOperation

import click

from app.cli import operators
from app.cli.marketplace_deliver import deliver
from app.cli.marketplace_output import (
    as_json,
    find_requester,
    opened,
    print_json,
    print_table,
    read_settings,
    say,
    shell_user,
)
from app.cli.marketplace_up import up
from app.cli.no_auth import NO_AUTH_HELP, open_to_all
from app.cli.serving_marketplace import THREADS, run_server
from app.marketplace.settings import Settings
from hits.marketplace import database
from hits.marketplace.views import Requester

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
LONGEST_NUMBER = 5


def dollars(text: str) -> Decimal:
    """Return the Decimal of an amount such as 25.00; the engine refuses fractions of a cent.

    Raises click.BadParameter.
    """
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite():
        raise click.BadParameter(f"{text!r} is not an amount of dollars such as 25.00")
    return amount


def grant(text: str) -> tuple[str, int]:
    """Return (id, value) of QUALIFICATION_TYPE_ID=VALUE.

    Raises click.BadParameter.
    """
    type_id, equals, number = text.partition("=")
    if not type_id or not equals or not number.lstrip("-").isdigit():
        raise click.BadParameter(f"{text!r} is not of the form QUALIFICATION_TYPE_ID=VALUE, such as 3X7837UUADRX=1")
    return type_id, int(number)


def duration(text: str) -> timedelta:
    """Return the timedelta of a number with one of the units s, m, h, d.

    Raises click.BadParameter.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in UNITS or not number.isascii() or not number.isdigit() or len(number) > LONGEST_NUMBER:
        raise click.BadParameter(f"{text!r} is not a time such as 90s, 45m, 6h or 3d")
    return timedelta(**{UNITS[unit]: int(number)})


@click.group("marketplace")
def marketplace() -> None:
    """The MTurk-compatible marketplace: worker site and Requester API."""


marketplace.add_command(up)
marketplace.add_command(deliver)
for command in operators.COMMANDS:
    marketplace.add_command(command)


@marketplace.command()
def init() -> None:
    """Bring the marketplace's database to the newest schema. Running it again changes nothing."""
    settings = read_settings()
    database.upgrade(settings.database_url)
    with opened(settings) as engine:
        engine.settle()
    click.echo("The marketplace's database is ready.")


@marketplace.command(short_help="Run the web server and the deliveries until stopped.")
@click.option("--bind", default="127.0.0.1:8000", show_default=True, help="HOST:PORT to listen on.")
@click.option("--threads", default=THREADS, show_default=True, help="Requests answered at the same time.")
@click.option("--deliver/--no-deliver", default=True, help="Deliver events and mail as well. [default: yes]")
@click.option("--insecure-no-auth", is_flag=True, help=NO_AUTH_HELP)
def serve(bind: str, threads: int, deliver: bool, insecure_no_auth: bool) -> None:
    """Run the marketplace's web server, and the deliveries, until stopped."""
    settings = read_settings()
    check_bind(bind, settings)
    if insecure_no_auth:
        bind = open_to_all(bind, settings)
    sys.exit(run_server(bind, threads, deliver=deliver, insecure_no_auth=insecure_no_auth))


def check_bind(bind: str, settings: Settings) -> None:
    """Refuse to listen beyond loopback while frames may be plain http.

    Raises click.UsageError.
    """
    host = bind.rpartition(":")[0].strip("[]")
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback and settings.http_loopback_allowed:
        raise click.UsageError(
            f"--bind {bind} is reachable from other machines, and this marketplace takes plain http pages from "
            "loopback. Give it an https address (MARKETPLACE_SITE_URL) and leave "
            "MARKETPLACE_ALLOW_HTTP_LOOPBACK unset or 0."
        )


@marketplace.command()
@click.option("--grant", "grants", multiple=True, type=grant, metavar="QUALIFICATION_TYPE_ID=VALUE")
@click.option("--note", default="", help="For whom it is; only the operator sees it.")
@click.option("--count", default=1, show_default=True, type=click.IntRange(1, 1000))
@as_json
def invite(grants: Sequence[tuple[str, int]], note: str, count: int, as_json: bool) -> None:
    """Make invitations. Each lets one new worker join; their addresses are printed."""
    settings = read_settings()
    with opened(settings) as engine:
        codes = [engine.create_invitation(note, grants=dict(grants)) for _ in range(count)]
        engine.record_act(
            "invitations made",
            "invitation",
            codes[0],
            by=shell_user(),
            count=count,
            note=note,
            grants=dict(grants),
        )
    found = [{"code": code, "url": join_url(settings, code)} for code in codes]
    if as_json:
        print_json(found)
        return
    for one in found:
        click.echo(one["url"])


def join_url(settings: Settings, code: str) -> str:
    """Return the address at which an invitation is used."""
    return f"{settings.site_url}/join?code={code}"


@marketplace.command()
@as_json
def invitations(as_json: bool) -> None:
    """List the invitations."""
    settings = read_settings()
    with opened(settings) as engine:
        found = engine.invitations()
    if as_json:
        print_json(
            [
                {
                    "code": one.code,
                    "url": join_url(settings, one.code),
                    "note": one.note,
                    "grants": dict(one.grants),
                    "created_at": one.created_at.isoformat(),
                    "used_at": one.used_at.isoformat() if one.used_at else None,
                }
                for one in found
            ]
        )
        return
    print_table(
        ("invitation", "note", "grants", "created", "used"),
        [
            (
                join_url(settings, one.code) if one.used_at is None else one.code,
                one.note,
                ", ".join(f"{type_id}={value}" for type_id, value in one.grants.items()),
                f"{one.created_at:%Y-%m-%d %H:%M} UTC",
                f"{one.used_at:%Y-%m-%d %H:%M} UTC" if one.used_at else "open",
            )
            for one in found
        ],
        "No invitations yet. `dynahit marketplace invite` makes one.",
    )


@marketplace.command("top-up")
@click.argument("requester")
@click.argument("amount", type=dollars)
@click.option("--note", default="top-up by the operator", show_default=True)
def top_up(requester: str, amount: Decimal, note: str) -> None:
    """Add AMOUNT dollars to a REQUESTER's account. Name it by id, name or e-mail address."""
    with opened(read_settings()) as engine:
        account = find_requester(engine, requester)
        balance = engine.operator_top_up(account.requester_id, amount, note, by=shell_user())
    say(f"{account.name} has ${balance.available:,.2f} available and ${balance.on_hold:,.2f} on hold.")


@marketplace.command()
@click.option("--forward", type=duration, metavar="STEP", help="Move it ahead, by 90s, 45m, 6h or 3d.")
def clock(forward: timedelta | None) -> None:
    """Show a test server's clock, or move it ahead.

    What becomes due by then happens, in its order. Every process on the same database sees the new time at once.
    It never goes back.
    """
    settings = read_settings()
    if not settings.movable_clock:
        raise click.UsageError(
            "This marketplace's clock is the machine's. For a test server on loopback set MARKETPLACE_MOVABLE_CLOCK=1,"
            " for this command and for its server; a clock that went ahead never goes back."
        )
    with opened(settings) as engine:
        now = engine.clock.now() if forward is None else engine.advance_clock(forward)
    click.echo(f"{now:%Y-%m-%d %H:%M:%S} UTC")


@marketplace.group()
def requester() -> None:
    """Accounts that create HITs and pay."""


@requester.command("create")
@click.argument("name")
@click.option("--email", help="With it and a password the requester can sign in to the console.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@as_json
def create_requester(name: str, email: str | None, password_stdin: bool, as_json: bool) -> None:
    """Create a requester called NAME."""
    password = sys.stdin.readline().rstrip("\n") if password_stdin else None
    if email and password is None:
        password = click.prompt("Password for the console", hide_input=True, confirmation_prompt=True)
    with opened(read_settings()) as engine:
        account = engine.create_requester(name, email=email, password=password)
        engine.record_act("requester created", "requester", account.requester_id, by=shell_user(), name=account.name)
    if as_json:
        print_json(_requester_json(account))
        return
    say(f"Created requester {account.name} ({account.requester_id}).")


@requester.command("list")
@as_json
def list_requesters(as_json: bool) -> None:
    """List the requesters with their money."""
    with opened(read_settings()) as engine:
        found = [(account, engine.balance(account.requester_id)) for account in engine.requesters()]
    if as_json:
        print_json(
            [
                {**_requester_json(account), "available": f"{money.available:.2f}", "on_hold": f"{money.on_hold:.2f}"}
                for account, money in found
            ]
        )
        return
    print_table(
        ("requester", "name", "e-mail", "available", "on hold"),
        [
            (one.requester_id, one.name, one.email or "", f"${money.available:,.2f}", f"${money.on_hold:,.2f}")
            for one, money in found
        ],
        "No requesters yet. `dynahit marketplace requester create NAME` makes one.",
    )


@requester.command("webhook-secret", short_help="Show what signs the webhooks.")
@click.argument("requester")
def webhook_secret(requester: str) -> None:
    """Show the secret that webhooks to a REQUESTER are signed with."""
    with opened(read_settings()) as engine:
        owner = find_requester(engine, requester).requester_id
        secret = engine.webhook_secret(owner)
        engine.record_act("webhook secret shown", "requester", owner, by=shell_user())
    click.echo(secret)


@marketplace.command("reset-link")
@click.argument("account")
@click.option(
    "--requester", "is_requester", is_flag=True, help="ACCOUNT is a requester: an id, name or e-mail address."
)
@click.option("--for", "life", type=duration, default="1d", show_default=True, help="How long the link works.")
def reset_link(account: str, is_requester: bool, life: timedelta) -> None:
    """Make a link with which a worker sets a new password, once.

    ACCOUNT is a user name or a worker id. Hand the link to that person only: whoever has it has the account.
    """
    with opened(read_settings()) as engine:
        if is_requester:
            owner = find_requester(engine, account).requester_id
            link = engine.reset_link(owner, requester=True, life=life)
        else:
            owner = engine.worker_called(account).worker_id
            link = engine.reset_link(owner, life=life)
        kind = "requester" if is_requester else "worker"
        engine.record_act("reset link made", kind, owner, by=shell_user(), life=str(life))
    click.echo(link)


for command in operators.REQUESTER_COMMANDS:
    requester.add_command(command)


@marketplace.group()
def key() -> None:
    """Access keys for the Requester API."""


@key.command("create")
@click.argument("requester")
@as_json
def create_key(requester: str, as_json: bool) -> None:
    """Create a key for a REQUESTER. Its secret is shown now and never again."""
    with opened(read_settings()) as engine:
        made = engine.create_access_key(find_requester(engine, requester).requester_id, by=shell_user())
    if as_json:
        print_json({"access_key_id": made.access_key_id, "secret_access_key": made.secret})
        return
    click.echo(f"AWS_ACCESS_KEY_ID={made.access_key_id}\nAWS_SECRET_ACCESS_KEY={made.secret}")
    click.echo("Keep the secret now: it is not shown again.", err=True)


@key.command("list")
@click.argument("requester")
@as_json
def list_keys(requester: str, as_json: bool) -> None:
    """List a REQUESTER's keys, without secrets."""
    with opened(read_settings()) as engine:
        found = engine.access_keys(find_requester(engine, requester).requester_id)
    if as_json:
        print_json(
            [
                {
                    "access_key_id": one.access_key_id,
                    "created_at": one.created_at.isoformat(),
                    "revoked_at": one.revoked_at.isoformat() if one.revoked_at else None,
                }
                for one in found
            ]
        )
        return
    print_table(
        ("key", "created", "state"),
        [
            (
                one.access_key_id,
                f"{one.created_at:%Y-%m-%d %H:%M} UTC",
                f"revoked {one.revoked_at:%Y-%m-%d %H:%M} UTC" if one.revoked_at else "in force",
            )
            for one in found
        ],
        "No keys yet. `dynahit marketplace key create REQUESTER` makes one.",
    )


@key.command("revoke")
@click.argument("requester")
@click.argument("access_key_id")
def revoke_key(requester: str, access_key_id: str) -> None:
    """End a key of a REQUESTER at once."""
    with opened(read_settings()) as engine:
        engine.revoke_access_key(find_requester(engine, requester).requester_id, access_key_id, by=shell_user())
    click.echo(f"{access_key_id} is revoked; requests signed with it are refused from now on.")


def _requester_json(account: Requester) -> dict[str, str | None]:
    return {"requester_id": account.requester_id, "name": account.name, "email": account.email}
