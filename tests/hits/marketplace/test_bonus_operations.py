"""Bonuses and the balance through boto3."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.hits.marketplace.market import Market, refused


def test_a_bonus_costs_amount_and_fee_at_once(market: Market) -> None:
    assignment_id = market.submitted(market.create_hit())
    market.client.approve_assignment(AssignmentId=assignment_id)
    worker_id = market.worker_of(assignment_id)

    market.client.send_bonus(
        WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount="0.3", Reason="Fooled it [ref 7]"
    )

    assert market.balance() == ("999.28", "0.00")
    [payment] = market.client.list_bonus_payments(AssignmentId=assignment_id)["BonusPayments"]
    assert payment == {
        "WorkerId": worker_id,
        "BonusAmount": "0.30",
        "AssignmentId": assignment_id,
        "Reason": "Fooled it [ref 7]",
        "GrantTime": market.clock.now(),
    }
    assert market.engine.earnings(worker_id).bonuses == Decimal("0.30")


def test_a_replayed_bonus_is_paid_once(market: Market) -> None:
    assignment_id = market.submitted(market.create_hit())
    bonus = {"WorkerId": market.worker_of(assignment_id), "AssignmentId": assignment_id, "BonusAmount": "1.00"}
    market.client.send_bonus(**bonus, Reason="r", UniqueRequestToken="payout-1")
    balance = market.balance()

    market.clock.advance(hours=23)
    with refused("RequestError", "DuplicateRequest", says='token "payout-1" has already been processed. ('):
        market.client.send_bonus(**bonus, Reason="r", UniqueRequestToken="payout-1")

    assert market.balance() == balance
    assert market.client.list_bonus_payments(AssignmentId=assignment_id)["NumResults"] == 1
    market.clock.advance(hours=1)
    market.client.send_bonus(**bonus, Reason="r", UniqueRequestToken="payout-1")
    assert market.client.list_bonus_payments(AssignmentId=assignment_id)["NumResults"] == 2


def test_a_bonus_goes_to_the_assignments_worker_only(market: Market) -> None:
    assignment_id, stranger = market.submitted(market.create_hit()), market.worker()

    for worker_id in (stranger, "A143XRCI1YXAFE"):
        with refused(
            "ParameterValidationError", says=f'The value "{worker_id}" is not valid for the parameter WorkerId. ('
        ):
            market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount="1", Reason="r")
    with refused("ValidationException", says="at 'workerId'"):
        market.client.send_bonus(WorkerId="nobody", AssignmentId=assignment_id, BonusAmount="1", Reason="r")

    assert market.client.list_bonus_payments(AssignmentId=assignment_id)["NumResults"] == 0


def test_no_bonus_before_submission(market: Market) -> None:
    worker_id = market.worker()
    assignment_id = market.accepted(market.create_hit(), worker_id)

    with refused("RequestError", "AssignmentDoesNotExist", says=f"Assignment {assignment_id} does not exist."):
        market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount="1", Reason="r")


@pytest.mark.parametrize(
    ("amount", "type", "code"),
    [
        ("0", "RequestError", "ParameterOutOfRange"),
        ("0.00", "RequestError", "ParameterOutOfRange"),
        ("0.005", "ValidationException", None),
        ("-1", "ValidationException", None),
        ("1e2", "ValidationException", None),
        ("900.00", "RequestError", "InsufficientFunds"),
        ("100000.01", "RequestError", "ParameterOutOfRange"),
    ],
)
def test_amounts_that_cannot_be_paid(market: Market, amount: str, type: str, code: str | None) -> None:
    assignment_id = market.submitted(market.create_hit())
    balance = market.balance()

    with refused(type, code):
        market.client.send_bonus(
            WorkerId=market.worker_of(assignment_id),
            AssignmentId=assignment_id,
            BonusAmount=amount,
            Reason="r",
            UniqueRequestToken="t",
        )

    assert market.balance() == balance


def test_bonuses_are_listed_by_hit_over_pages(market: Market) -> None:
    hit_id = market.create_hit(MaxAssignments=2)
    first, second = market.submitted(hit_id), market.submitted(hit_id)
    for number in range(25):
        assignment_id = (first, second)[number % 2]
        market.client.send_bonus(
            WorkerId=market.worker_of(assignment_id), AssignmentId=assignment_id, BonusAmount="0.01", Reason=f"{number}"
        )

    pages = list(market.client.get_paginator("list_bonus_payments").paginate(HITId=hit_id))

    assert [bonus["Reason"] for page in pages for bonus in page["BonusPayments"]] == [str(n) for n in range(25)]
    assert [page["NumResults"] for page in pages] == [10, 10, 5, 0]
    assert market.client.list_bonus_payments(AssignmentId=second, MaxResults=100)["NumResults"] == 12
    with refused("RequestError", "MissingParameters"):
        market.client.list_bonus_payments()


def test_a_disposed_hits_worker_can_still_get_a_bonus(market: Market) -> None:
    hit_id = market.create_hit()
    assignment_id = market.submitted(hit_id)
    worker_id = market.worker_of(assignment_id)
    market.client.approve_assignment(AssignmentId=assignment_id)
    market.client.delete_hit(HITId=hit_id)

    market.client.send_bonus(WorkerId=worker_id, AssignmentId=assignment_id, BonusAmount="1", Reason="late")

    assert market.client.list_bonus_payments(HITId=hit_id)["NumResults"] == 1


def test_the_balance_of_a_new_requester_is_nothing(market: Market) -> None:
    client = market.client_for(market.engine.create_requester("New").requester_id)

    answer = client.get_account_balance()

    assert (answer["AvailableBalance"], answer["OnHoldBalance"]) == ("0.00", "0.00")
