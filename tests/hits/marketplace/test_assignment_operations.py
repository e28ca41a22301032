"""Showing, listing, approving and rejecting assignments through boto3."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.hits.marketplace.market import Market, refused


def test_get_assignment_answers_with_assignment_and_hit(market: Market) -> None:
    hit_id, worker_id = market.create_hit(), market.worker()
    assignment_id = market.accepted(hit_id, worker_id)
    accepted_at = market.clock.now()
    market.clock.advance(minutes=5)
    market.engine.external_submit(assignment_id, {"a": ["yes"]})

    answer = market.client.get_assignment(AssignmentId=assignment_id)

    assignment = answer["Assignment"]
    assert answer["HIT"]["HITId"] == assignment["HITId"] == hit_id
    assert assignment["WorkerId"] == worker_id
    assert assignment["AssignmentStatus"] == "Submitted"
    assert assignment["AcceptTime"] == accepted_at
    assert assignment["Deadline"] == accepted_at + timedelta(minutes=10)
    assert assignment["SubmitTime"] == market.clock.now()
    assert assignment["AutoApprovalTime"] == market.clock.now() + timedelta(days=30)
    assert "<FreeText>yes</FreeText>" in assignment["Answer"]
    assert not {"ApprovalTime", "RejectionTime", "RequesterFeedback"} & set(assignment)


def test_approval_pays_from_the_hold(market: Market) -> None:
    assignment_id = market.submitted(market.create_hit())
    assert market.balance() == ("999.64", "0.36")

    market.client.approve_assignment(AssignmentId=assignment_id, RequesterFeedback="Thank you – “great”")

    assert market.balance() == ("999.64", "0.00")
    assignment = market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert assignment["AssignmentStatus"] == "Approved"
    assert assignment["ApprovalTime"] == market.clock.now()
    assert assignment["RequesterFeedback"] == "Thank you – “great”"


def test_rejection_gives_the_hold_back_and_the_place_stays_taken(market: Market) -> None:
    hit_id = market.create_hit()
    assignment_id = market.submitted(hit_id)

    market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="Not a sentence.")

    assert market.balance() == ("1000.00", "0.00")
    assert market.counters(hit_id) == ("Reviewable", 0, 0, 1)
    assignment = market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]
    assert assignment["AssignmentStatus"] == "Rejected"
    assert assignment["RejectionTime"] == market.clock.now()
    assert assignment["RequesterFeedback"] == "Not a sentence."


def test_a_rejection_can_be_overridden_for_30_days(market: Market) -> None:
    early, late = (market.submitted(market.create_hit()) for _ in range(2))
    for assignment_id in (early, late):
        market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")
    with refused("RequestError", "InvalidAssignmentState"):
        market.client.approve_assignment(AssignmentId=early)

    market.clock.advance(days=29)
    market.client.approve_assignment(AssignmentId=early, OverrideRejection=True)
    market.clock.advance(days=1)
    with refused("RequestError", "InvalidAssignmentState"):
        market.client.approve_assignment(AssignmentId=late, OverrideRejection=True)

    assert market.balance() == ("999.64", "0.00")
    assert market.client.get_assignment(AssignmentId=early)["Assignment"]["AssignmentStatus"] == "Approved"


def test_overriding_a_rejection_needs_money(market: Market) -> None:
    assignment_id = market.submitted(market.create_hit())
    market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")
    market.create_hit(Reward="833.33")
    assert market.balance() == ("0.00", "1000.00")

    with refused("RequestError", "InsufficientFunds"):
        market.client.approve_assignment(AssignmentId=assignment_id, OverrideRejection=True)

    assert market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["AssignmentStatus"] == "Rejected"


def test_calls_on_an_assignment_that_is_only_accepted(market: Market) -> None:
    assignment_id = market.accepted(market.create_hit())

    with refused("RequestError", "InvalidAssignmentState", says="can be called with a status of: null"):
        market.client.approve_assignment(AssignmentId=assignment_id)
    with refused("RequestError", "InvalidAssignmentState", says="can be called with a status of: null"):
        market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")
    with refused("RequestError", "InvalidAssignmentState", says="status of: Reviewable,Approved,Rejected"):
        market.client.get_assignment(AssignmentId=assignment_id)


@pytest.mark.parametrize("first", ["approve", "reject"])
def test_a_reviewed_assignment_is_not_reviewed_again(market: Market, first: str) -> None:
    assignment_id = market.submitted(market.create_hit())
    if first == "approve":
        market.client.approve_assignment(AssignmentId=assignment_id)
    else:
        market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")
    balance = market.balance()

    with refused("RequestError", "InvalidAssignmentState", says="can be called with a status of: Submitted"):
        market.client.approve_assignment(AssignmentId=assignment_id)
    with refused("RequestError", "InvalidAssignmentState", says="can be called with a status of: Submitted"):
        market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No.")

    assert market.balance() == balance


@pytest.mark.parametrize(
    "call",
    [
        lambda client, assignment_id: client.get_assignment(AssignmentId=assignment_id),
        lambda client, assignment_id: client.approve_assignment(AssignmentId=assignment_id),
        lambda client, assignment_id: client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="No."),
        lambda client, assignment_id: client.list_bonus_payments(AssignmentId=assignment_id),
        lambda client, assignment_id: client.send_bonus(
            AssignmentId=assignment_id, WorkerId="A1", BonusAmount="1.00", Reason="r"
        ),
    ],
)
def test_assignments_that_do_not_exist(market: Market, call: Any) -> None:
    worker_id = market.worker()
    submitted, returned = market.submitted(market.create_hit()), market.accepted(market.create_hit(), worker_id)
    market.engine.return_assignment(worker_id, returned)
    other = market.client_for(market.other_requester())

    for client, assignment_id in ((market.client, "3NOTHERE"), (other, submitted), (market.client, returned)):
        with refused("RequestError", "AssignmentDoesNotExist", says=f"Assignment {assignment_id} does not exist. ("):
            call(client, assignment_id)


def test_feedback_is_limited_and_required(market: Market) -> None:
    assignment_id = market.submitted(market.create_hit())

    with refused("RequestError", "ParameterOutOfRange"):
        market.client.approve_assignment(AssignmentId=assignment_id, RequesterFeedback="f" * 1025)
    with refused("RequestError", "InvalidParameterValue"):
        market.client.reject_assignment(AssignmentId=assignment_id, RequesterFeedback="\x08")


def test_list_assignments_pages_in_order_of_submission(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=25)
    held = [market.accepted(hit_id) for _ in range(25)]
    for position, assignment_id in enumerate(reversed(held)):
        if position % 3 == 0:
            market.clock.advance(seconds=1)
        market.engine.external_submit(assignment_id, {"a": [str(position)]})

    pages = list(market.client.get_paginator("list_assignments_for_hit").paginate(HITId=hit_id))

    listed = [assignment for page in pages for assignment in page["Assignments"]]
    assert sorted(assignment["AssignmentId"] for assignment in listed) == sorted(held)
    assert [a["SubmitTime"] for a in listed] == sorted(a["SubmitTime"] for a in listed)
    assert [page["NumResults"] for page in pages] == [10, 10, 5, 0]


def test_list_assignments_by_status(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=4)
    submitted, approved, rejected = (market.submitted(hit_id) for _ in range(3))
    market.accepted(hit_id)
    market.client.approve_assignment(AssignmentId=approved)
    market.client.reject_assignment(AssignmentId=rejected, RequesterFeedback="No.")

    def listed(**filters: Any) -> set[str]:
        answer = market.client.list_assignments_for_hit(HITId=hit_id, **filters)
        return {assignment["AssignmentId"] for assignment in answer["Assignments"]}

    assert listed() == {submitted, approved, rejected}
    assert listed(AssignmentStatuses=["Submitted"]) == {submitted}
    assert listed(AssignmentStatuses=["Approved", "Rejected"]) == {approved, rejected}
    with refused("ValidationException", says="assignmentStatuses.1.member"):
        listed(AssignmentStatuses=["Accepted"])
