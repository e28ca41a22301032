"""`dynahit serve`: runs the dynahit service under gunicorn."""

from __future__ import annotations

import os
import sys

import click

from app.cli.instance import port_of
from app.settings import load_settings

THREADS = 16


def server_arguments(bind: str, *, threads: int = THREADS) -> list[str]:
    """Return the command line of the service's web server.

    One process, since the model lives in it; no preload, since a model warmed before the fork hangs in the child; no
    access log, since frame addresses carry worker ids.
    """
    return [
        sys.executable,
        "-m",
        "gunicorn",
        "--worker-class=gthread",
        "--workers=1",
        f"--threads={threads}",
        "--timeout=60",
        "--graceful-timeout=10",
        "--no-control-socket",
        f"--bind={bind}",
        "app.factory:create_app()",
    ]


@click.command("serve")
@click.option("--bind", metavar="HOST:PORT", help="Where to listen. [default: loopback, DYNAHIT_SERVICE_URL's port]")
@click.option("--threads", default=THREADS, show_default=True, help="Requests answered at the same time.")
def serve(bind: str | None, threads: int) -> None:
    """Run the dynahit service (pages for workers, validators, requesters, finance) until it is stopped."""
    address = bind or f"127.0.0.1:{port_of(load_settings().service_url)}"
    click.echo(f"The dynahit service listens on {address}.")
    sys.stdout.flush()
    os.execv(sys.executable, server_arguments(address, threads=threads))  # noqa: S606  # a fixed command, no shell
