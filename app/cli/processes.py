"""Runs an instance's processes side by side and stops all of them together, whatever ends the run."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import requests

ROOT = Path(__file__).resolve().parents[2]
TERM_SECONDS = 15.0
LARGEST_LOG = 5_000_000
#: Of Linux' prctl: a process gets this signal when the one that started it dies.
PR_SET_PDEATHSIG = 1


class ProcessError(Exception):
    """A process did not start or did not stay; the message names it and what to do."""


@dataclass(frozen=True)
class Program:
    """A process to run, and the address that answers 200 once it is ready (None: ready when it runs)."""

    name: str
    arguments: Sequence[str]
    health_url: str | None = None


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the instance's lock, which the system gives back however the process ends.

    Raises ProcessError when another process holds it.
    """
    with (folder / "up.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ProcessError(
                f"This instance ({folder}) is already running, in another terminal or in the background."
                " Stop that one first, or make a second instance with DYNAHIT_HOME and other ports."
            ) from error
        yield


def is_running(folder: Path) -> bool:
    """Tell whether some process holds the instance's lock."""
    if not folder.exists():
        return False
    try:
        with only_one(folder):
            return False
    except ProcessError:
        return True


def check_port(name: str, variable: str, port: int) -> None:
    """Raise ProcessError, with the way out, when something else listens on the port of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ProcessError(
                f"Port {port} for the {name} can't be used ({error.strerror}): another program listens there."
                f" Stop it, or choose another port for a new instance: {variable}={port + 100} make up"
                " (add DYNAHIT_HOME=another/folder when this instance already has HITs)."
            ) from error


def die_with_parent() -> None:
    """Ask Linux to end this process when the launcher dies, also by kill -9. Runs in the child, before its program."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def last_lines(path: Path, count: int = 15) -> str:
    """Return the end of a log file, empty when there is none."""
    if not path.exists():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return "".join(deque(file, count)).rstrip()


def stop_leftovers(folder: Path) -> list[str]:
    """End the processes that a killed launcher of this instance left behind, and return their names."""
    record = folder / "run.json"
    if not record.exists():
        return []
    try:
        left: dict[str, int] = json.loads(record.read_text(encoding="utf-8"))
    except ValueError:
        # The launcher died while writing; it had started nothing by then, or pdeathsig ended it.
        left = {}
    ended = []
    for name, pid in left.items():
        if not _is_ours(pid, folder):
            continue
        _end_group(pid, partial(_is_ours, pid, folder))
        ended.append(name)
    record.unlink(missing_ok=True)
    return ended


def _is_ours(pid: int, folder: Path) -> bool:
    """Tell whether a process is alive and one of this instance's, not a stranger that got the same number."""
    environment = Path(f"/proc/{pid}/environ")
    if environment.exists():
        try:
            return f"DYNAHIT_HOME={folder}".encode() in environment.read_bytes().split(b"\0")
        except OSError:
            return False
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return any(word in shown.stdout for word in ("app.factory", "app.marketplace.factory", "app.cli jobs run"))


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() is None


def _end_group(pid: int, alive: Callable[[], bool]) -> None:
    for signal_number, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal_number)
        until = time.monotonic() + seconds
        while alive() and time.monotonic() < until:
            time.sleep(0.05)
        if not alive():
            break
    # The group may outlive its leader; nobody of it may.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class Supervisor:
    """Starts programs, each in a process group and with a log of its own, watches them, and stops them all.

    Use it as a context manager: leaving it, by whatever way, leaves no process behind.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._handlers: dict[signal.Signals, object] = {}
        self.stop_asked = False

    def __enter__(self) -> Supervisor:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._handlers[number] = signal.signal(number, self._ask_to_stop)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as signal.signal returned it

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_asked = True

    def log_of(self, name: str) -> Path:
        """Return the log file of a program."""
        return self._folder / "logs" / f"{name}.log"

    def start(self, program: Program) -> None:
        """Start a program; its output goes to the end of its log."""
        log = self.log_of(program.name)
        if log.exists() and log.stat().st_size > LARGEST_LOG:
            log.replace(log.with_suffix(".log.1"))
        with log.open("ab") as output:
            self._running[program.name] = subprocess.Popen(
                program.arguments,
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C in the terminal must reach the launcher only, which then stops them in order.
                start_new_session=True,
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
            )
        pids = {name: process.pid for name, process in self._running.items()}
        (self._folder / "run.json").write_text(json.dumps(pids), encoding="utf-8")

    def wait_until_ready(self, program: Program, *, seconds: float = 90.0) -> bool:
        """Wait until the program answers; False when the run was asked to stop meanwhile.

        Raises ProcessError when it dies, or does not answer in time.
        """
        until = time.monotonic() + seconds
        while not self.stop_asked:
            self.check()
            if program.health_url is None or answers(program.health_url):
                return True
            if time.monotonic() > until:
                raise ProcessError(
                    f"The {program.name} did not answer at {program.health_url} within {seconds:.0f} seconds."
                    f" The end of {self.log_of(program.name)}:\n{last_lines(self.log_of(program.name))}"
                )
            time.sleep(0.1)
        return False

    def check(self) -> None:
        """Raise ProcessError, with the end of its log, when a program has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                how = f"exit code {process.returncode}" if process.returncode >= 0 else f"signal {-process.returncode}"
                raise ProcessError(
                    f"The {name} has ended ({how}); the others are stopped now. Nothing stored is lost: start again"
                    f" with `make up`. The end of {self.log_of(name)}:\n{last_lines(self.log_of(name))}"
                )

    def watch(self) -> None:
        """Return when the run is asked to stop. Raises ProcessError when a program ends by itself."""
        while not self.stop_asked:
            self.check()
            time.sleep(0.3)

    def stop(self) -> None:
        """Stop every program, last started first; whoever does not go in time is killed."""
        for _name, process in reversed(self._running.items()):
            _end_group(process.pid, partial(_is_running, process))
            process.wait()
        self._running.clear()
        (self._folder / "run.json").unlink(missing_ok=True)


def answers(url: str) -> bool:
    """Tell whether an address answers 200 within two seconds."""
    with requests.Session() as session:
        # Loopback is asked directly, whatever proxy the machine has.
        session.trust_env = False
        try:
            return session.get(url, timeout=2).status_code == 200
        except requests.RequestException:
            return False
