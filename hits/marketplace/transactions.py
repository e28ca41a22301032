"""What every function of the engine gets: one open transaction, the time it stands for, and the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy.orm import Session

from hits.marketplace.settings import MarketplaceSettings


@dataclass(frozen=True)
class Transaction:
    """One unit of work. `now` is read once, so that every check and every stored time in it agree.

    Rows are locked in this order, which rules out deadlocks: account, HIT, assignment. `submitted` assignments and
    HITs that became `reviewable` wait for `reviews.finish`, which comes before the commit.
    """

    session: Session
    now: datetime
    settings: MarketplaceSettings
    submitted: list[str] = field(default_factory=list)
    reviewable: list[str] = field(default_factory=list)
