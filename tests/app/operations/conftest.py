"""A marketplace, settings and a launch that every operation's tests start from."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy.orm import Session

from app.operations.launch import LaunchTerms, launch_batch
from app.settings import Settings
from hits.clock import FixedClock
from tests import market as markets
from tests.app.operations.people import Crowd
from tests.market import Market

TERMS = LaunchTerms(
    task_code="sentiment",
    round_number=1,
    hits=3,
    reward=Decimal("0.30"),
    bonus=Decimal("0.30"),
    tries=5,
)
CONTEXTS = [{"prompt": f"A train was late, story {number}."} for number in range(1, 4)]


def terms(**changes: Any) -> LaunchTerms:
    """Return the usual terms with some changed."""
    return replace(TERMS, **changes)


@pytest.fixture
def market(clock: FixedClock) -> Market:
    """A marketplace with a requester that has money."""
    return Market(clock)


@pytest.fixture
def settings() -> Settings:
    """The settings of a service beside it."""
    return markets.settings()


@pytest.fixture
def crowd(session: Session, market: Market, settings: Settings, clock: FixedClock) -> Crowd:
    """People who can work on the market's HITs."""
    return Crowd(session, market, settings, clock)


@pytest.fixture
def hits(session: Session, market: Market, settings: Settings, clock: FixedClock) -> list[str]:
    """The marketplace ids of three creation HITs that were launched."""
    launch_batch(session, market.mturk, settings, clock, TERMS, CONTEXTS)
    return sorted(hit["HITId"] for hit in market.hits())
