"""What the operator tells requesters and workers."""

from __future__ import annotations

from hits.marketplace.console_views import Actor
from tests.hits.marketplace.market import Market


def test_notices_are_counted_until_they_are_read(market: Market) -> None:
    engine, other = market.engine, market.other_requester()
    for number in range(30):
        market.create_hit(Title=f"Title {number}")
        hit_id = market.client.list_hits()["HITs"][0]["HITId"]
        engine.take_down(hit_id, "Spam.", by=Actor.operator("olga"))

    assert engine.unread_notices(market.requester_id) == 30
    assert engine.unread_notices(other) == 0
    first = engine.notices(market.requester_id)
    assert (first.total, first.pages, len(first.entries)) == (30, 2, 25)
    assert not first.entries[0].is_read

    engine.mark_notices_read(market.requester_id)

    assert engine.unread_notices(market.requester_id) == 0
    assert all(one.is_read for one in engine.notices(market.requester_id, page=2).entries)


def test_a_worker_reads_the_operators_words_in_the_inbox(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    assignment_id = market.submitted(market.create_hit(), worker_id)
    market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")
    dispute = engine.open_dispute(worker_id, assignment_id, "Unfair.")

    engine.uphold_dispute(dispute.dispute_id, "It was empty.", by=Actor.operator("olga"))

    assert "It was empty." in repr(engine.messages(worker_id))
