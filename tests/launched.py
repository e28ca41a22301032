"""Starts and stops `dynahit up` in a process of its own, as a person at a terminal does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def start(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start `dynahit up` and return it with what it said until it was ready."""
    launcher = subprocess.Popen(
        [sys.executable, "-u", "-m", "app.cli", "up", *arguments],
        cwd=ROOT,
        env={**os.environ, "DYNAHIT_HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert launcher.stdout is not None
    said = ""
    for line in launcher.stdout:
        said += line
        if "Ctrl-C stops everything" in line:
            return launcher, said
    launcher.wait()
    launcher.stdout.close()
    raise AssertionError(f"dynahit up ended with {launcher.returncode}:\n{said}")


def stop(launcher: subprocess.Popen[str]) -> str:
    """Press Ctrl-C and return what was still said."""
    launcher.send_signal(signal.SIGINT)
    rest, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, rest
    return rest


@contextmanager
def launched(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Like start, and leaves nothing running whatever happens."""
    launcher, said = start(folder, *arguments)
    try:
        yield launcher, said
    finally:
        if launcher.poll() is None:
            launcher.terminate()
            launcher.communicate(timeout=60)
        if launcher.stdout is not None:
            launcher.stdout.close()
