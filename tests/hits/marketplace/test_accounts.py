"""Requesters and their money."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from hits.marketplace.errors import MarketplaceError, NotSignedIn, OperatorError
from tests.hits.marketplace.market import Market


def test_every_change_of_an_account_is_an_entry(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=3)
    approved, rejected = market.submitted(hit_id), market.submitted(hit_id)
    market.client.approve_assignment(AssignmentId=approved)
    market.client.reject_assignment(AssignmentId=rejected, RequesterFeedback="No.")
    market.client.send_bonus(WorkerId=market.worker_of(approved), AssignmentId=approved, BonusAmount="0.10", Reason="r")
    market.clock.advance(hours=1)

    balance = market.engine.balance(market.requester_id)
    entries = market.engine.account_entries(market.requester_id)

    assert [(e.kind, e.deposited, e.on_hold, e.spent) for e in entries] == [
        ("deposit", Decimal("1000.00"), Decimal("0.00"), Decimal("0.00")),
        ("hold", Decimal("0.00"), Decimal("1.08"), Decimal("0.00")),
        ("reward", Decimal("0.00"), Decimal("-0.36"), Decimal("0.36")),
        ("release_rejected", Decimal("0.00"), Decimal("-0.36"), Decimal("0.00")),
        ("bonus", Decimal("0.00"), Decimal("0.00"), Decimal("0.12")),
        ("release_expired", Decimal("0.00"), Decimal("-0.36"), Decimal("0.00")),
    ]
    assert balance.deposited == balance.available + balance.on_hold + balance.spent
    assert (balance.on_hold, balance.spent) == (Decimal("0.00"), Decimal("0.48"))


@pytest.mark.parametrize("amount", ["0", "-1", "0.001", "NaN", "Infinity", "1e20"])
def test_top_ups_that_cannot_be(market: Market, amount: str) -> None:
    with pytest.raises(OperatorError, match=re.escape(str(Decimal(amount)))) as caught:
        market.engine.top_up(market.requester_id, Decimal(amount))

    assert "Decimal" not in str(caught.value)

    assert market.balance() == ("1000.00", "0.00")


def test_requesters_are_listed_found_and_unknown(market: Market) -> None:
    market.clock.advance(seconds=1)
    other = market.engine.create_requester("Second", email="Lab@Example.org")

    assert [requester.name for requester in market.engine.requesters()] == ["Language Lab", "Second"]
    assert market.engine.requester(other.requester_id) == other
    with pytest.raises(OperatorError, match="A1NOBODY"):
        market.engine.requester("A1NOBODY")
    with pytest.raises(OperatorError, match="e-mail address lab@"):
        market.engine.create_requester("Third", email="lab@EXAMPLE.org")
    with pytest.raises(OperatorError, match="1 to 200 characters"):
        market.engine.create_requester(" ")


def test_a_requester_signs_in_with_address_and_password(market: Market) -> None:
    made = market.engine.create_requester("Lab", email="lab@example.org", password="a good password")
    market.engine.create_requester("No password", email="none@example.org")

    assert market.engine.authenticate_requester(" LAB@example.org", "a good password") == made
    for email, password in (("lab@example.org", "wrong"), ("none@example.org", ""), ("nobody@example.org", "x")):
        with pytest.raises(NotSignedIn):
            market.engine.authenticate_requester(email, password)


def test_a_call_for_an_unknown_requester_is_refused(market: Market) -> None:
    with pytest.raises(MarketplaceError) as caught:
        market.engine.call("A1NOBODY", "ListHITs", {})

    assert caught.value.type == "UnrecognizedClientException"
