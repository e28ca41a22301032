"""Where the marketplace reads the time, so that a test or an operator can move it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Anything that can say what time it is."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        return datetime.now(UTC)


class TestClock:
    """A clock that stands still until it is moved."""

    __test__ = False

    def __init__(self, start: datetime | None = None) -> None:
        """Start at `start`, or at noon on 30 November 2026."""
        self._now = (start or datetime(2026, 11, 30, 12, tzinfo=UTC)).astimezone(UTC)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """Return the time this clock stands at."""
        return self._now

    def advance(self, step: timedelta | None = None, **parts: float) -> datetime:
        """Move forward by `step` (or by timedelta's own keywords) and return the new time."""
        with self._lock:
            self._now += step if step is not None else timedelta(**parts)
            return self._now


class MovableClock:
    """Another clock plus an offset that is read anew each time, so that every process of a test server agrees."""

    def __init__(self, base: Clock, offset: Callable[[], timedelta]) -> None:
        """Take the clock that goes on by itself, and where the offset is kept."""
        self._base = base
        self._offset = offset

    def now(self) -> datetime:
        """Return the moved time."""
        return self._base.now() + self._offset()
