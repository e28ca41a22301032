"""Getting events out: in order, again after failures, by several processes."""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta

import pytest
from sqlalchemy import select

from hits.marketplace.deliveries import GIVE_UP_AFTER, DeliveryReport, Outgoing
from hits.marketplace.outbox import KEPT_FOR, LEASE
from hits.marketplace.tables import EventRow
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question
from tests.hits.marketplace.test_notifications import QUEUE, Postman, notification, subscribed
from tests.hits.marketplace.test_work import all_at_once


class Failing(Postman):
    """Fails as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = True

    def send(self, outgoing: Outgoing) -> None:
        if self.is_down:
            raise OSError("no route")
        super().send(outgoing)


def test_a_failure_holds_back_its_hit_and_no_other(market: Market) -> None:
    subscribed(market)
    first, second = market.create_hit(), market.create_hit()

    class Picky(Postman):
        def send(self, outgoing: Outgoing) -> None:
            if first in outgoing.document:
                raise OSError("not this one")
            super().send(outgoing)

    market.submitted(first)
    market.submitted(second)
    postman = Picky()

    report = market.engine.deliver_due({"SQS": postman})

    assert postman.names(second) == ["HITCreated", "AssignmentAccepted", "AssignmentSubmitted", "HITReviewable"]
    assert report == DeliveryReport(delivered=4, failed=1, given_up=0, waiting=4)


def test_delays_grow_and_the_order_stays(market: Market) -> None:
    subscribed(market)
    hit_id = market.create_hit()
    market.submitted(hit_id)
    postman = Failing()
    tried = []
    for second in range(0, 400, 10):
        if market.engine.deliver_due({"SQS": postman}).failed:
            tried.append(second)
        market.clock.advance(seconds=10)
    assert tried == [0, 10, 50, 210]
    postman.is_down = False
    market.clock.advance(hours=1)

    market.engine.deliver_due({"SQS": postman})

    assert postman.names(hit_id) == ["HITCreated", "AssignmentAccepted", "AssignmentSubmitted", "HITReviewable"]


def test_after_three_days_an_event_is_given_up_and_the_next_one_goes(market: Market) -> None:
    subscribed(market)
    hit_id = market.create_hit(LifetimeInSeconds=30 * 86400)
    postman = Failing()
    market.engine.deliver_due({"SQS": postman})
    market.clock.advance(GIVE_UP_AFTER)
    market.accepted(hit_id)

    report = market.engine.deliver_due({"SQS": postman})
    assert (report.given_up, report.waiting) == (1, 1)
    postman.is_down = False
    market.clock.advance(minutes=1)
    market.engine.deliver_due({"SQS": postman})

    assert postman.names(hit_id) == ["AssignmentAccepted"]


def test_a_transport_that_is_not_there_is_a_failed_attempt(market: Market) -> None:
    subscribed(market)
    market.create_hit()

    assert market.engine.deliver_due({}) == DeliveryReport(delivered=0, failed=1, given_up=0, waiting=1)


def test_an_event_that_a_dead_process_took_is_taken_again(market: Market) -> None:
    subscribed(market)
    hit_id = market.create_hit()

    class Dying(Postman):
        def send(self, outgoing: Outgoing) -> None:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        market.engine.deliver_due({"SQS": Dying()})
    postman = Postman()
    assert market.engine.deliver_due({"SQS": postman}).waiting == 1
    assert postman.got == [], "the other process might still be at it"
    market.clock.advance(LEASE + timedelta(seconds=1))

    market.engine.deliver_due({"SQS": postman})

    assert postman.names(hit_id) == ["HITCreated"]


def test_no_more_than_the_limit_are_tried(market: Market) -> None:
    subscribed(market)
    for _ in range(5):
        market.create_hit()

    assert market.engine.deliver_due({"SQS": Postman()}, limit=3).waiting == 2


def test_four_deliverers_send_each_event_once_and_in_order(stored_market: Market) -> None:
    subscribed(stored_market)
    hits = [stored_market.create_hit() for _ in range(5)]
    for hit_id in hits:
        stored_market.submitted(hit_id)
    postman = Postman()

    for result in all_at_once([lambda: stored_market.engine.deliver_due({"SQS": postman})] * 4):
        assert isinstance(result, DeliveryReport)
    stored_market.engine.deliver_due({"SQS": postman})

    assert len(postman.got) == 20
    for hit_id in hits:
        assert postman.names(hit_id) == ["HITCreated", "AssignmentAccepted", "AssignmentSubmitted", "HITReviewable"]


def test_what_was_done_a_month_ago_is_forgotten_and_what_waits_is_not(stored_market: Market) -> None:
    subscribed(stored_market, EventTypes=["HITCreated"])
    stored_market.create_hit()
    assert stored_market.engine.deliver_due({"SQS": Postman()}).delivered == 1
    stored_market.create_hit()
    stored_market.clock.advance(KEPT_FOR)

    assert stored_market.engine.deliver_due({}, limit=0).waiting == 1

    with stored_market.engine.store.session(writes=False) as session:
        assert [row.state for row in session.scalars(select(EventRow))] == ["Waiting"]


def test_a_slow_destination_holds_back_only_itself(market: Market) -> None:
    subscribed(market, EventTypes=["HITCreated"])
    slow, quick = market.create_hit(), market.create_hit()
    others_went = threading.Event()

    class Slow(Postman):
        def send(self, outgoing: Outgoing) -> None:
            if slow in outgoing.document:
                assert others_went.wait(20), "the quick one waits for the slow one"
            super().send(outgoing)
            others_went.set()

    postman = Slow()
    assert market.engine.deliver_due({"SQS": postman}).delivered == 2
    assert postman.names(quick) == postman.names(slow) == ["HITCreated"]


def test_a_requester_whose_destinations_are_all_slow_holds_back_nobody_else(market: Market) -> None:
    subscribed(market, EventTypes=["HITCreated"])
    for _ in range(20):
        market.create_hit()
    other = market.client_for(market.other_requester())
    hit_type = other.create_hit_type(**HIT_PROPERTIES)["HITTypeId"]
    other.update_notification_settings(
        HITTypeId=hit_type, Notification=notification(EventTypes=["HITCreated"], Destination=f"{QUEUE}-of-another")
    )
    for _ in range(3):
        other.create_hit_with_hit_type(HITTypeId=hit_type, LifetimeInSeconds=3600, Question=external_question())
    others_went = threading.Event()

    class Slow(Postman):
        def send(self, outgoing: Outgoing) -> None:
            if outgoing.destination == QUEUE:
                assert others_went.wait(20), "another requester's events wait for the slow ones"
            super().send(outgoing)
            if sum(one.destination != QUEUE for one in self.got) == 3:
                others_went.set()

    postman = Slow()

    report = market.engine.deliver_due({"SQS": postman})

    assert report == DeliveryReport(delivered=23, failed=0, given_up=0, waiting=0)
    assert sum(one.destination != QUEUE for one in postman.got) == 3


def test_once_asked_to_stop_no_more_is_begun_and_the_rest_stays_due(market: Market) -> None:
    subscribed(market, EventTypes=["HITCreated"])
    for _ in range(20):
        market.create_hit()
    postman = Postman()

    report = market.engine.deliver_due({"SQS": postman}, stop=lambda: bool(postman.got))
    assert 0 < report.delivered < 20
    assert report.waiting == 20 - report.delivered

    assert market.engine.deliver_due({"SQS": postman}).delivered == 20 - report.delivered


def test_what_a_timer_makes_happen_is_delivered_without_anybody_looking(market: Market) -> None:
    subscribed(market, EventTypes=["HITExpired"])
    hit_id = market.create_hit(LifetimeInSeconds=60)
    market.clock.advance(minutes=2)
    postman = Postman()

    market.engine.deliver_due({"SQS": postman})

    assert postman.names(hit_id) == ["HITExpired"]


def test_a_failure_leaves_one_line_without_the_destination(market: Market, caplog: pytest.LogCaptureFixture) -> None:
    subscribed(market, EventTypes=["HITCreated"], Transport="Email", Destination="ada@example.org")
    market.create_hit()
    market.create_hit()

    market.engine.deliver_due({"Email": Failing()})

    assert len(caplog.records) == 2
    assert all("attempt 1 by Email failed: OSError" in record.getMessage() for record in caplog.records)
    assert "ada@" not in caplog.text
