"""Where events go, and which there are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from hits.marketplace.deliveries import Outgoing
from hits.marketplace.notifications import MOST_TESTS
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, refused

QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/events"
ALL = [f"Assignment{what}" for what in ("Accepted", "Abandoned", "Returned", "Submitted", "Rejected", "Approved")] + [
    f"HIT{what}" for what in ("Created", "Expired", "Reviewable", "Extended", "Disposed")
]


class Postman:
    """A transport that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[Outgoing] = []

    def send(self, outgoing: Outgoing) -> None:
        self.got.append(outgoing)

    def events(self) -> list[dict[str, Any]]:
        return [event for outgoing in self.got for event in json.loads(outgoing.document)["Events"]]

    def names(self, hit_id: str) -> list[str]:
        return [event["EventType"] for event in self.events() if event["HITId"] == hit_id]


def notification(**changes: Any) -> Any:
    return {"Destination": QUEUE, "Transport": "SQS", "Version": "2006-05-05", "EventTypes": ALL, **changes}


def subscribed(market: Market, **changes: Any) -> str:
    hit_type = market.client.create_hit_type(**HIT_PROPERTIES)["HITTypeId"]
    market.client.update_notification_settings(HITTypeId=hit_type, Notification=notification(**changes))
    return hit_type


def delivered(market: Market, **transports: Postman) -> Postman:
    postman = Postman()
    given: Mapping[str, Postman] = {"SQS": postman, **transports}
    market.engine.deliver_due(given)
    return postman


def test_every_event_of_a_hits_life_is_told_in_order(stored_market: Market) -> None:
    market = stored_market
    hit_type = subscribed(market)
    hit_id = market.create_hit(MaxAssignments=4)
    returning = market.worker()
    market.engine.return_assignment(returning, market.accepted(hit_id, returning))
    first, second, third = (market.submitted(hit_id) for _ in range(3))
    market.client.approve_assignment(AssignmentId=first)
    market.client.reject_assignment(AssignmentId=second, RequesterFeedback="no")
    market.client.create_additional_assignments_for_hit(HITId=hit_id, NumberOfAdditionalAssignments=1)
    market.accepted(hit_id)
    market.clock.advance(hours=2)
    market.client.approve_assignment(AssignmentId=third)
    market.client.delete_hit(HITId=hit_id)

    postman = delivered(market)

    assert postman.names(hit_id) == [
        "HITCreated",
        "AssignmentAccepted",
        "AssignmentReturned",
        *["AssignmentAccepted", "AssignmentSubmitted"] * 3,
        "AssignmentApproved",
        "AssignmentRejected",
        "HITExtended",
        "AssignmentAccepted",
        "AssignmentAbandoned",
        "HITExpired",
        "HITReviewable",
        "AssignmentApproved",
        "HITDisposed",
    ]
    document = json.loads(postman.got[4].document)
    assert document == {
        "EventDocVersion": "2014-08-15",
        "EventDocId": postman.got[4].document_id,
        "CustomerId": market.requester_id,
        "Events": [
            {
                "EventType": "AssignmentSubmitted",
                "EventTimestamp": "2026-11-30T12:00:00Z",
                "HITTypeId": hit_type,
                "HITId": hit_id,
                "AssignmentId": first,
            }
        ],
    }
    times = {event["EventType"]: event["EventTimestamp"] for event in postman.events()}
    assert times["AssignmentAbandoned"] == "2026-11-30T12:10:00Z", "the moment it was due"
    assert times["HITExpired"] == "2026-11-30T13:00:00Z"
    assert len({outgoing.document_id for outgoing in postman.got}) == len(postman.got)


def test_a_hit_that_was_filled_does_not_expire_and_becomes_reviewable(market: Market) -> None:
    subscribed(market)
    hit_id = market.create_hit()
    market.submitted(hit_id)
    market.clock.advance(days=1)

    assert delivered(market).names(hit_id) == [
        "HITCreated",
        "AssignmentAccepted",
        "AssignmentSubmitted",
        "HITReviewable",
    ]


def test_only_what_was_asked_for_is_told_and_only_while_active(market: Market) -> None:
    hit_type = subscribed(market, EventTypes=["AssignmentSubmitted"])
    hit_id = market.create_hit(MaxAssignments=4)
    market.submitted(hit_id)
    market.client.update_notification_settings(HITTypeId=hit_type, Active=False)
    market.submitted(hit_id)
    market.client.update_notification_settings(HITTypeId=hit_type, Active=True)
    market.submitted(hit_id)
    market.client.update_notification_settings(
        HITTypeId=hit_type, Notification=notification(EventTypes=["AssignmentAccepted"]), Active=False
    )
    market.submitted(hit_id)

    assert delivered(market).names(hit_id) == ["AssignmentSubmitted"] * 2


def test_other_types_and_requests_that_fail_tell_nothing(market: Market) -> None:
    subscribed(market)
    market.create_hit(Title="Another")
    with refused("RequestError", "InsufficientFunds"):
        market.create_hit(MaxAssignments=9000)

    assert delivered(market).got == []


@pytest.mark.parametrize(
    ("changes", "transport"),
    [
        ({}, "SQS"),
        ({"Version": "2014-08-15"}, "SQS"),
        ({"Transport": "SNS", "Destination": "arn:aws:sns:us-east-1:123456789012:events"}, "SNS"),
        ({"Transport": "SNS", "Destination": "https://example.org/hook?x=1"}, "Webhook"),
        ({"Transport": "SNS", "Destination": "http://127.0.0.1:9000/hook"}, "Webhook"),
        ({"Transport": "Email", "Destination": "lab@example.org"}, "Email"),
    ],
)
def test_a_test_event_goes_out_by_its_transport(market: Market, changes: dict[str, Any], transport: str) -> None:
    market.client.send_test_event_notification(
        Notification=notification(EventTypes=["HITExpired"], **changes), TestEventType="Ping"
    )
    postman = Postman()

    report = market.engine.deliver_due({transport: postman})

    assert (report.delivered, report.waiting) == (1, 0)
    (event,) = postman.events()
    assert event["EventType"] == "Ping"
    assert postman.got[0].destination == changes.get("Destination", QUEUE)


@pytest.mark.parametrize(
    ("changes", "type", "code"),
    [
        ({"Version": "2099-01-01"}, "ParameterValidationError", None),
        ({"EventTypes": []}, "ParameterValidationError", None),
        ({"EventTypes": ["HITLost"]}, "ValidationException", None),
        ({"Transport": "Pigeon"}, "ValidationException", None),
        ({"Destination": "events"}, "RequestError", "InvalidTransportEndpoint"),
        ({"Destination": "http://example.org/q"}, "RequestError", "InvalidTransportEndpoint"),
        ({"Destination": "https://user:pw@example.org/q"}, "RequestError", "InvalidTransportEndpoint"),
        ({"Destination": "https://example.org/a b"}, "RequestError", "InvalidTransportEndpoint"),
        ({"Destination": "https://example.org:99999/"}, "RequestError", "InvalidTransportEndpoint"),
        ({"Transport": "SNS", "Destination": "arn:aws:sqs:us-east-1:123456789012:q"}, "RequestError", None),
        ({"Transport": "SNS", "Destination": "http://10.0.0.1/hook"}, "RequestError", "InvalidTransportEndpoint"),
        ({"Transport": "Email", "Destination": "nobody"}, "RequestError", "InvalidTransportEndpoint"),
        (
            {"Transport": "Email", "Destination": "a@example.org\nBcc: b@example.org"},
            "RequestError",
            "InvalidTransportEndpoint",
        ),
    ],
)
def test_notifications_that_are_refused(market: Market, changes: dict[str, Any], type: str, code: str | None) -> None:
    hit_type = market.client.create_hit_type(**HIT_PROPERTIES)["HITTypeId"]
    with refused(type, code):
        market.client.update_notification_settings(HITTypeId=hit_type, Notification=notification(**changes))
    with refused(type, code):
        market.client.send_test_event_notification(Notification=notification(**changes), TestEventType="Ping")


def test_settings_need_an_own_type_and_something_to_set(market: Market) -> None:
    hit_type = market.client.create_hit_type(**HIT_PROPERTIES)["HITTypeId"]
    other = market.client_for(market.other_requester())

    with refused("RequestError", "MissingParameters"):
        market.client.update_notification_settings(HITTypeId=hit_type)
    with refused("ParameterValidationError", says="no Notification yet"):
        market.client.update_notification_settings(HITTypeId=hit_type, Active=True)
    with refused("RequestError", "HITTypeDoesNotExist"):
        other.update_notification_settings(HITTypeId=hit_type, Notification=notification())


def test_a_requester_has_so_many_test_events_sent_a_day(stored_market: Market) -> None:
    market = stored_market
    wanted: Any = {"Notification": notification(), "TestEventType": "Ping"}
    for _ in range(MOST_TESTS):
        market.client.send_test_event_notification(**wanted)

    with refused("ThrottlingException", says=f"{MOST_TESTS} test events"):
        market.client.send_test_event_notification(**wanted)
    other = market.client_for(market.other_requester())
    other.send_test_event_notification(**wanted)
    with refused("RequestError", "InvalidTransportEndpoint"):
        market.client.send_test_event_notification(
            Notification=notification(Destination="nowhere"), TestEventType="Ping"
        )
    market.clock.advance(days=1)

    market.client.send_test_event_notification(**wanted)
