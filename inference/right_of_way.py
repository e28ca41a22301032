"""Lets predictions go first: long computations stop at checkpoints while somebody waits for a verdict, or for good."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from inference.errors import CallerGone

Checkpoint = Callable[[], None]

_here = threading.local()


@contextmanager
def stopping_at(checkpoint: Checkpoint) -> Iterator[None]:
    """Call ``checkpoint`` at every checkpoint that this thread passes inside; what it raises ends the computation."""
    before = getattr(_here, "checkpoint", None)
    _here.checkpoint = checkpoint
    try:
        yield
    finally:
        _here.checkpoint = before


def pass_checkpoint() -> None:
    """Stop here if this thread was told to; costs next to nothing otherwise."""
    checkpoint: Checkpoint | None = getattr(_here, "checkpoint", None)
    if checkpoint is not None:
        checkpoint()


class RightOfWay:
    """Counts predictions under way, and makes others wait for their end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._predicting = 0

    @contextmanager
    def predicting(self) -> Iterator[None]:
        """Hold up everything that gives way, for the time of one batch of predictions."""
        with self._changed:
            self._predicting += 1
        try:
            yield
        finally:
            with self._changed:
                self._predicting -= 1
                if not self._predicting:
                    self._changed.notify_all()

    def give_way(self, seconds: float) -> float:
        """Wait until no prediction runs, at most so long, and return the seconds waited."""
        # Read without the lock: to see a change one checkpoint later does no harm.
        if not self._predicting:
            return 0.0
        started = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: not self._predicting, timeout=max(0.0, seconds))
        return time.monotonic() - started


IN_THIS_PROCESS = RightOfWay()
"""Of every engine of the process: they share its processors, whichever model an explanation is of."""


class Patience:
    """The checkpoint of one computation: ends it when nobody waits any more, and gives way up to ``seconds`` in all."""

    def __init__(self, right_of_way: RightOfWay, seconds: float) -> None:
        self._right_of_way = right_of_way
        self._left = seconds
        self._gone = threading.Event()

    def give_up(self) -> None:
        """Say that nobody waits for the result; the computation ends at its next checkpoint."""
        self._gone.set()

    def __call__(self) -> None:
        """Stop at a checkpoint. Raises CallerGone."""
        if self._gone.is_set():
            raise CallerGone
        if self._left > 0:
            self._left -= self._right_of_way.give_way(self._left)
