"""What every part of the engine stands on: the database, the clock, and transactions that settle and review."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar, cast

from sqlalchemy.orm import Session

from hits.marketplace import commits, database, groups, reviews, timers
from hits.marketplace.clock import Clock, MovableClock, SystemClock
from hits.marketplace.errors import OperatorError
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.transactions import Transaction
from hits.marketplace.words import words

Look = Callable[[Session, datetime], bool]
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Done(Generic[Result]):
    transaction: Transaction
    result: Result


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
        self._commits = commits.Commits(self.store, _finish)
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
            raise OperatorError(words("This marketplace's clock cannot be moved; movable_clock is for test servers."))
        if step < timedelta(0):
            raise OperatorError(words("A clock can be moved forward only, got %(step)s.", step=step))
        self.store.move_clock(step)
        self.settle()
        return self.clock.now()

    @contextmanager
    def _transaction(
        self, *, writes: bool = True, settle: bool = True, look: Look = timers.is_due
    ) -> Iterator[Transaction]:
        """Yield a transaction before which what is due is settled; `look` comes first and says if anything is."""
        now = self.clock.now()
        while True:
            with self.store.session(writes=writes) as session:
                if not look(session, now) or not settle:
                    transaction = Transaction(session, now, self.settings)
                    yield transaction
                    reviews.finish(transaction)
                    groups.finish(session, [transaction])
                    return
            timers.settle(self.store, now, self.settings)
            settle = False

    def _write(self, requester_id: str, look: Look, function: Callable[[Transaction], Result]) -> Result:
        """Carry out a write of one requester as `_transaction` would, perhaps in one commit with others.

        On SQLite, where only one can write at a time, with anybody's; else with the same requester's, since those
        would wait for each other's lock of the account.
        """
        now = self.clock.now()
        queue = "" if self.store.writes_one_at_a_time else requester_id

        def attempt(session: Session, *, settle: bool) -> _Done[Result] | None:
            if look(session, now) and settle:
                return None
            transaction = Transaction(session, now, self.settings)
            result = function(transaction)
            reviews.finish(transaction)
            session.flush()
            return _Done(transaction, result)

        done = self._commits.run(queue, partial(attempt, settle=True))
        if done is None:
            timers.settle(self.store, now, self.settings)
            done = self._commits.run(queue, partial(attempt, settle=False))
        return cast("_Done[Result]", done).result


def _finish(session: Session, done: Iterable[_Done[Any] | None]) -> None:
    groups.finish(session, [one.transaction for one in done if one is not None])
