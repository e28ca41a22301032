"""Leases of what is on its way out, and attempts that come too late to say anything."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from hits.marketplace import outbox
from hits.marketplace.deliveries import Outgoing
from hits.marketplace.tables import EventRow
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.test_notifications import Postman, subscribed


def states(market: Market) -> list[tuple[str, int, str | None]]:
    with market.engine.store.session(writes=False) as session:
        return [(row.state, row.attempts, row.last_error) for row in session.scalars(select(EventRow))]


def test_an_attempt_that_outlived_its_lease_takes_nothing_back(stored_market: Market) -> None:
    market = stored_market
    subscribed(market, EventTypes=["HITCreated"])
    market.create_hit()
    quick = Postman()

    class Stalled(Postman):
        def send(self, outgoing: Outgoing) -> None:
            market.clock.advance(outbox.LEASE + timedelta(seconds=1))
            assert market.engine.deliver_due({"SQS": quick}).delivered == 1
            raise OSError("the answer came too late")

    market.engine.deliver_due({"SQS": Stalled()})

    assert states(market) == [("Delivered", 2, None)]
    market.clock.advance(days=1)
    market.engine.deliver_due({"SQS": quick})
    assert len(quick.got) == 1


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 10), (2, 40), (5, 2560), (6, 3600), (1000, 3600)])
def test_attempts_grow_apart_up_to_an_hour(market: Market, attempt: int, seconds: int) -> None:
    subscribed(market, EventTypes=["HITCreated"])
    market.create_hit()
    now = market.clock.now()
    with market.engine.store.session(writes=True) as session:
        row = session.scalars(select(EventRow)).one()
        row.attempts = attempt

    ended = outbox.note(
        market.engine.store, EventRow, row.seq, attempt, "down", now=now, give_up_at=now + timedelta(days=1)
    )

    assert not ended
    with market.engine.store.session(writes=False) as session:
        assert session.scalars(select(EventRow)).one().next_attempt_at == now + timedelta(seconds=seconds)
