"""Runs a command while holding a lock, so that two `make` at once do not install into one folder; run by path."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def hold(path: Path) -> int:
    """Return a descriptor that holds the file's lock for this process and what it becomes, waiting for it if need be.

    The system gives the lock back however the process ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print(f"Another make is installing into {path.parent}. Waiting until it is done.", file=sys.stderr, flush=True)  # noqa: T201  # the command's answer
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.set_inheritable(descriptor, True)
    return descriptor


def main(arguments: Sequence[str]) -> None:
    """Become the command after the lock's path."""
    hold(Path(arguments[0]))
    os.execvp(arguments[1], list(arguments[1:]))  # noqa: S606  # the command is make's


if __name__ == "__main__":
    main(sys.argv[1:])
