"""The requester's side of the engine: what the console reads of assignments and layouts."""

from __future__ import annotations

import pytest

from hits.marketplace.errors import HitUnknown, MarketplaceError, NothingThere
from tests.hits.marketplace.market import Market

LAYOUT = "<!doctype html><title>t</title><form action='https://www.mturk.com/mturk/externalSubmit'>${a}</form>"


def test_what_was_handed_in_for_a_hit_by_state(market: Market) -> None:
    engine, me = market.engine, market.requester_id
    hit_id = market.create_hit(MaxAssignments=4)
    first = market.submitted(hit_id)
    market.clock.advance(seconds=1)
    second = market.submitted(hit_id)
    market.accepted(hit_id)
    market.client.approve_assignment(AssignmentId=first)

    found = engine.hit_assignments(me, hit_id)

    assert [(one.assignment_id, one.state) for one in found.entries] == [(second, "Submitted"), (first, "Approved")]
    assert [one.assignment_id for one in engine.hit_assignments(me, hit_id, state="Approved").entries] == [first]
    with pytest.raises(MarketplaceError):
        engine.hit_assignments(market.other_requester(), hit_id)


def test_any_hit_is_an_operators_to_see(market: Market) -> None:
    hit_id = market.create_hit()

    assert market.engine.any_hit(hit_id).title == "Fool the model"
    with pytest.raises(NothingThere):
        market.engine.any_hit("3NONE")


def test_a_layout_is_previewed_at_a_signed_address(market: Market) -> None:
    engine, me = market.engine, market.requester_id
    made = engine.create_layout(me, "One", LAYOUT)
    url = engine.layout_preview_url(me, made.layout_id)
    assert url is not None
    expires, signature = (part.split("=")[1] for part in url.split("?")[1].split("&"))

    assert engine.question_html(made.layout_id, expires, signature) == LAYOUT
    for bad in ((made.layout_id, expires, "0" * 64), ("3NONE", expires, signature)):
        with pytest.raises(HitUnknown):
            engine.question_html(*bad)
    market.clock.advance(seconds=86_401)
    with pytest.raises(HitUnknown):
        engine.question_html(made.layout_id, expires, signature)
    with pytest.raises(NothingThere):
        engine.layout_preview_url(market.other_requester(), made.layout_id)
