"""The first look of every call: the account, and what is due."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hits.marketplace import admission
from hits.marketplace.errors import MarketplaceError
from hits.marketplace.tables import RequesterRow
from tests.hits.marketplace.market import Market


@pytest.mark.parametrize("lock", [True, False])
def test_a_good_account_is_admitted_and_told_whether_something_is_due(stored_market: Market, lock: bool) -> None:
    stored_market.create_hit(LifetimeInSeconds=60)
    now = stored_market.clock.now()

    with stored_market.engine.store.session(writes=True) as session:
        assert not admission.admit(session, now, stored_market.requester_id, lock=lock)
        assert not admission.admit(session, now + timedelta(seconds=59), stored_market.requester_id, lock=lock)
        assert admission.admit(session, now + timedelta(seconds=60), stored_market.requester_id, lock=lock)


@pytest.mark.parametrize("operation", ["GetAccountBalance", "CreateHIT", "CreateHITType"])
def test_no_account_and_a_disabled_one_are_refused(market: Market, operation: str) -> None:
    params = {
        "Title": "t",
        "Description": "d",
        "Reward": "0.01",
        "AssignmentDurationInSeconds": 60,
        "LifetimeInSeconds": 60,
        "Question": "<x/>",
    }
    with pytest.raises(MarketplaceError) as unknown:
        market.engine.call("ANOTHERE", operation, params)
    with market.engine.store.session(writes=True) as session:
        session.get_one(RequesterRow, market.requester_id).disabled_at = market.clock.now()
    with pytest.raises(MarketplaceError) as disabled:
        market.engine.call(market.requester_id, operation, params)

    assert (unknown.value.type, disabled.value.type) == ("UnrecognizedClientException", "AccessDeniedException")
