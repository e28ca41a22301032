"""How long request tokens are remembered."""

from __future__ import annotations

from sqlalchemy import select

from hits.marketplace import tokens
from hits.marketplace.tables import RequestTokenRow
from hits.marketplace.tokens import first_result, remember
from hits.marketplace.transactions import Transaction
from tests.hits.marketplace.market import Market


def recall(market: Market, operation: str, token: str | None, *, requester_id: str | None = None) -> str | None:
    with market.engine.store.session(writes=False) as session:
        transaction = Transaction(session, market.clock.now(), market.settings)
        return first_result(transaction, requester_id or market.requester_id, operation, token)


def store(market: Market, operation: str, token: str | None, result: str, *, requester_id: str | None = None) -> None:
    with market.engine.store.session(writes=True) as session:
        transaction = Transaction(session, market.clock.now(), market.settings)
        remember(transaction, requester_id or market.requester_id, operation, token, result)


def test_a_token_is_remembered_for_24_hours_and_can_then_be_used_anew(market: Market) -> None:
    store(market, "CreateHIT", "t", "3FIRST")
    market.clock.advance(hours=23, minutes=59, seconds=59)
    assert recall(market, "CreateHIT", "t") == "3FIRST"

    market.clock.advance(seconds=1)
    assert recall(market, "CreateHIT", "t") is None
    store(market, "CreateHIT", "t", "3SECOND")

    market.clock.advance(hours=1)
    assert recall(market, "CreateHIT", "t") == "3SECOND"


def test_a_token_belongs_to_its_requester_and_operation(market: Market) -> None:
    store(market, "CreateHIT", "t", "3FIRST")

    assert recall(market, "SendBonus", "t") is None
    assert recall(market, "CreateHIT", "T") is None
    assert recall(market, "CreateHIT", "t", requester_id=market.other_requester()) is None


def kept(market: Market) -> set[tuple[str, str, str]]:
    with market.engine.store.session(writes=False) as session:
        return {(row.requester_id, row.operation, row.token) for row in session.scalars(select(RequestTokenRow))}


def test_tokens_that_are_over_are_deleted_by_and_by(stored_market: Market) -> None:
    market = stored_market
    for number in range(tokens._FORGOTTEN_AT_ONCE + 5):
        store(market, "CreateHIT", f"old {number}", "3OLD")
    other_id = market.other_requester()
    store(market, "CreateHIT", "other's", "3OTHER", requester_id=other_id)
    market.clock.advance(hours=23)
    store(market, "CreateHIT", "young", "3YOUNG")
    assert len(kept(market)) == tokens._FORGOTTEN_AT_ONCE + 7
    market.clock.advance(hours=1)

    store(market, "SendBonus", "first", "3A")
    assert len(kept(market)) == 5 + 3
    store(market, "SendBonus", "second", "3B")

    mine = market.requester_id
    assert kept(market) == {
        (mine, "CreateHIT", "young"),
        (mine, "SendBonus", "first"),
        (mine, "SendBonus", "second"),
        (other_id, "CreateHIT", "other's"),
    }


def test_without_a_token_nothing_is_remembered(market: Market) -> None:
    store(market, "CreateHIT", None, "3FIRST")

    assert recall(market, "CreateHIT", None) is None
