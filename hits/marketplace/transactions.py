"""What every function of the engine gets: one open transaction, the time it stands for, and the settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy.orm import Session

from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import NotificationRow


@dataclass(frozen=True)
class Transaction:
    """One unit of work. `now` is read once, so that every check and every stored time in it agree.

    Rows are locked in this order, which rules out deadlocks: account, HIT, assignment, HIT group. `submitted`
    assignments and HITs that became `reviewable` wait for `reviews.finish`. By HIT type, how many more HITs are
    `opened` (plain, HTML), and the types to be `measured`, wait for `groups.finish`. Both come before the commit.
    `notifications` are those of the HIT types that events have been asked about.
    """

    session: Session
    now: datetime
    settings: MarketplaceSettings
    submitted: list[str] = field(default_factory=list)
    reviewable: list[str] = field(default_factory=list)
    opened: dict[str, tuple[int, int]] = field(default_factory=dict)
    measured: set[str] = field(default_factory=set)
    notifications: dict[str, NotificationRow | None] = field(default_factory=dict)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Take everything back that was done inside, and nothing else, if it ends with an exception."""
        submitted, reviewable = list(self.submitted), list(self.reviewable)
        opened, measured = dict(self.opened), set(self.measured)
        try:
            with self.session.begin_nested():
                yield
        except BaseException:
            self.submitted[:], self.reviewable[:] = submitted, reviewable
            self.opened.clear()
            self.opened.update(opened)
            self.measured.clear()
            self.measured.update(measured)
            raise
