"""The clock of test servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from hits.marketplace.clock import SystemClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import OperatorError
from tests.hits.marketplace.market import Market


@pytest.fixture
def servers(stored_market: Market) -> Iterator[tuple[Marketplace, Marketplace]]:
    """Two processes, as it were, of a test server on one database."""
    settings = replace(stored_market.settings, movable_clock=True)
    first, second = (Marketplace(stored_market.url, settings=settings, clock=stored_market.clock) for _ in range(2))
    yield first, second
    first.close()
    second.close()


def test_moving_the_clock_moves_it_for_every_process_and_settles(
    stored_market: Market, servers: tuple[Marketplace, Marketplace]
) -> None:
    first, second = servers
    hit_id = stored_market.create_hit()

    moved = first.advance_clock(timedelta(hours=1))
    assert moved == second.clock.now() == stored_market.clock.now() + timedelta(hours=1)
    assert stored_market.hit(hit_id)["HITStatus"] == "Reviewable", "settled when the clock was moved"
    stored_market.clock.advance(minutes=5)
    assert second.advance_clock(timedelta(days=120)) == moved + timedelta(days=120, minutes=5)
    answer = first.call(stored_market.requester_id, "GetHIT", {"HITId": hit_id})
    assert answer["HIT"]["HITStatus"] == "Disposed"


def test_a_clock_goes_forward_only_and_only_where_it_may(market: Market) -> None:
    with pytest.raises(OperatorError, match="movable_clock"):
        market.engine.advance_clock(timedelta(hours=1))
    opened = Marketplace("sqlite://", settings=replace(market.settings, movable_clock=True))
    with pytest.raises(OperatorError, match="forward only"):
        opened.advance_clock(timedelta(seconds=-1))
    assert abs(opened.clock.now() - SystemClock().now()) < timedelta(minutes=1)
    opened.close()
