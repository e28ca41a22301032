"""Access keys: whose they are, how they end, how their secrets are kept."""

from __future__ import annotations

import pytest

from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import MarketplaceError, OperatorError
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import AccessKeyRow
from tests.hits.marketplace.market import Market


def test_keys_belong_to_requesters_and_end_when_revoked(market: Market) -> None:
    market.clock.advance(seconds=1)
    key = market.engine.create_access_key(market.requester_id)
    assert market.engine.access_key(key.access_key_id) == (key.secret, market.requester_id)
    assert key.secret not in repr(key)

    market.engine.revoke_access_key(market.requester_id, key.access_key_id)

    with pytest.raises(MarketplaceError) as caught:
        market.engine.access_key(key.access_key_id)
    assert caught.value.type == "UnrecognizedClientException"
    with pytest.raises(MarketplaceError):
        market.engine.access_key("AKIANOBODY")
    listed = market.engine.access_keys(market.requester_id)
    assert [info.revoked_at for info in listed] == [None, market.clock.now()]
    with pytest.raises(OperatorError):
        market.engine.revoke_access_key(market.other_requester(), key.access_key_id)


def test_secrets_are_stored_encrypted_under_the_settings_key(market: Market) -> None:
    key = market.engine.create_access_key(market.requester_id)

    with market.engine.store.session(writes=False) as session:
        stored = session.get_one(AccessKeyRow, key.access_key_id).encrypted_secret

    assert key.secret.encode() not in stored
    stranger = Marketplace("sqlite://", settings=MarketplaceSettings.for_tests())
    stranger.store = market.engine.store
    with pytest.raises(OperatorError, match="another secret_key"):
        stranger.access_key(key.access_key_id)
