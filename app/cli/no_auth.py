"""`--insecure-no-auth`: a throw-away marketplace that takes every API request, on this machine only."""

from __future__ import annotations

import ipaddress
import socket

import click

from app.marketplace.no_auth import PLAY_MONEY
from app.marketplace.settings import Settings
from hits.marketplace import database
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import OperatorError

NO_AUTH_HELP = "For throw-away test servers on loopback: take every API request, with any key or none."


def open_to_all(bind: str, settings: Settings) -> str:
    """Return the loopback address to listen on, after making the requester that every request acts for.

    Raises click.UsageError for an address that is not loopback's, whatever its name says, and for a database that
    workers are paid from.
    """
    host, _, port = bind.rpartition(":")
    address = loopback_address(host.strip("[]"))
    if address is None:
        raise click.UsageError(
            f"--insecure-no-auth gives everybody who can reach the server all of its money, so it listens on loopback"
            f" only, and {host or bind!r} is not loopback. Use --bind 127.0.0.1:{port or 8000}, or leave out"
            " --insecure-no-auth."
        )
    if not settings.on_loopback or settings.proxies:
        raise click.UsageError(
            "--insecure-no-auth is for a server that nobody else reaches: MARKETPLACE_SITE_URL must be plain http on"
            f" loopback (it is {settings.site_url}) and MARKETPLACE_PROXIES 0 (it is {settings.proxies})."
        )
    database.upgrade(settings.database_url)
    engine = Marketplace(settings.database_url, settings=settings.engine_settings())
    try:
        requester = engine.default_requester(PLAY_MONEY)
    except OperatorError as error:
        raise click.UsageError(str(error)) from error
    finally:
        engine.close()
    click.secho(
        "WARNING: no authentication. Everything on this machine can act as the requester"
        f" {requester.name!r} ({requester.requester_id}) and spend its money. For tests only.",
        fg="red",
        bold=True,
        err=True,
    )
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def loopback_address(host: str) -> str | None:
    """Return the address that a host name or address stands for, None unless all that it stands for is loopback."""
    try:
        found = {str(one[4][0]) for one in socket.getaddrinfo(host or "::", None, type=socket.SOCK_STREAM)}
    except OSError:
        return None
    if not all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found):
        return None
    # The address and not the name is listened on, so that the name cannot lead elsewhere afterwards.
    return min(found, key=lambda address: (":" in address, address))
