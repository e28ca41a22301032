"""Turns this process into the marketplace's web server."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

THREADS = 16


def run_server(bind: str, threads: int = THREADS) -> NoReturn:
    """Become gunicorn with the marketplace's app, listening on HOST:PORT."""
    arguments = [
        sys.executable,
        "-m",
        "gunicorn",
        "--worker-class=gthread",
        # The rate limits are counted in the process's memory, so there is one process.
        "--workers=1",
        f"--threads={threads}",
        # No access log either: frame addresses carry worker ids.
        "--no-control-socket",
        f"--bind={bind}",
        "app.marketplace.factory:create_app()",
    ]
    sys.stdout.flush()
    os.execv(sys.executable, arguments)  # noqa: S606  # no shell: a fixed command line
