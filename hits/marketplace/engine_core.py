"""What every part of the engine stands on: the database, the clock, and transactions that settle and review."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from hits.marketplace import database, groups, reviews, timers
from hits.marketplace.clock import Clock, MovableClock, SystemClock
from hits.marketplace.errors import OperatorError
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.transactions import Transaction


class EngineCore:
    """The database, the clock and the transactions of a marketplace."""

    def __init__(
        self,
        database_url: str,
        *,
        settings: MarketplaceSettings,
        clock: Clock | None = None,
        signing_clock: Clock | None = None,
    ) -> None:
        """Open the database; `sqlite://` is a private one in memory with its tables already made.

        `clock` drives every timer. `signing_clock` is what the dates of signatures are held against: the machine's
        time, even where `clock` has been moved ahead.
        """
        self.settings = settings
        self.store = database.Store(database_url)
        self.clock: Clock = clock or SystemClock()
        if settings.movable_clock:
            self.clock = MovableClock(self.clock, self.store.clock_offset)
        self.signing_clock: Clock = signing_clock or SystemClock()
        if self.store.in_memory:
            self.create_schema()

    def create_schema(self) -> None:
        """Create the tables that are missing, without migrations: for tests and memory."""
        self.store.create_schema()

    def close(self) -> None:
        """Give the database connections back."""
        self.store.close()

    def settle(self) -> int:
        """Carry out every timer that is due and return how many there were; each call does this by itself."""
        return timers.settle(self.store, self.clock.now(), self.settings)

    def advance_clock(self, step: timedelta) -> datetime:
        """Move the clock of a test server forward, settle what becomes due, and return the new time.

        Raises OperatorError unless the settings let the clock be moved, and for a step back.
        """
        if not self.settings.movable_clock:
            raise OperatorError("This marketplace's clock cannot be moved; movable_clock is for test servers.")
        if step < timedelta(0):
            raise OperatorError(f"A clock can be moved forward only, got {step}.")
        self.store.move_clock(step)
        self.settle()
        return self.clock.now()

    @contextmanager
    def _transaction(
        self, *, writes: bool = True, settle: bool = True, look: Callable[[Session, datetime], bool] = timers.is_due
    ) -> Iterator[Transaction]:
        """Yield a transaction before which what is due is settled; `look` comes first and says if anything is."""
        now = self.clock.now()
        while True:
            with self.store.session(writes=writes) as session:
                if not look(session, now) or not settle:
                    transaction = Transaction(session, now, self.settings)
                    yield transaction
                    reviews.finish(transaction)
                    groups.finish(transaction)
                    return
            timers.settle(self.store, now, self.settings)
            settle = False
