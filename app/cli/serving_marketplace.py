"""Runs the marketplace's web server, and beside it the process that delivers events and mail."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType

from app.cli.processes import ROOT, die_with_parent

THREADS = 16
STOP_SECONDS = 30.0
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
#: A deliverer that ran this long was all right, and is started again at once.
SETTLED_SECONDS = 60.0
_log = logging.getLogger(__name__)


def server_arguments(bind: str, threads: int = THREADS, *, insecure_no_auth: bool = False) -> list[str]:
    """Return the command line of the web server, listening on HOST:PORT."""
    app = "app.marketplace.factory:create_app(insecure_no_auth=True)" if insecure_no_auth else None
    return [
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
        app or "app.marketplace.factory:create_app()",
    ]


def deliver_arguments() -> list[str]:
    """Return the command line of the process that delivers events and mail."""
    return [sys.executable, "-m", "app.cli", "marketplace", "deliver"]


def run_server(bind: str, threads: int = THREADS, *, deliver: bool = True, insecure_no_auth: bool = False) -> int:
    """Run both until the web server ends or a signal asks to stop; return the web server's exit code.

    A deliverer that ends by itself is started again, with growing pauses: the site does not depend on it.
    """
    with stop_signals() as stop:
        server = _start(server_arguments(bind, threads, insecure_no_auth=insecure_no_auth))
        courier = None
        try:
            if deliver:
                courier = Courier(deliver_arguments())
            while server.poll() is None and not stop.wait(0.2):
                if courier is not None:
                    courier.look_after()
        finally:
            # Both are asked before either is waited for: a slow destination must not take the server's time.
            server.terminate()
            if courier is not None:
                courier.stop()
            code = _end(server)
    return 0 if stop.is_set() and code in {0, -signal.SIGTERM, -signal.SIGINT} else code


class Courier:
    """A process that is started again when it ends by itself."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Start it."""
        self._arguments = arguments
        self._pause = FIRST_PAUSE
        self._began = time.monotonic()
        self._again_at: float | None = None
        self.process = _start(arguments)

    def look_after(self) -> None:
        """Start it again if it has ended and its pause is over."""
        now = time.monotonic()
        if self._again_at is not None:
            if now >= self._again_at:
                self._again_at, self._began = None, now
                self.process = _start(self._arguments)
        elif self.process.poll() is not None:
            self._pause = FIRST_PAUSE if now - self._began > SETTLED_SECONDS else min(self._pause * 2, LONGEST_PAUSE)
            self._again_at = now + self._pause
            _log.warning(
                "the process that delivers events and mail ended (code %s); it is started again in %.0f seconds",
                self.process.returncode,
                self._pause,
            )

    def stop(self) -> None:
        """End it."""
        _end(self.process)


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Yield an event that is set once somebody asks this process to stop."""
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    sys.stdout.flush()
    return subprocess.Popen(
        arguments,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent if sys.platform == "linux" else None,
    )


def _end(process: subprocess.Popen[bytes]) -> int:
    process.terminate()
    try:
        return process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
