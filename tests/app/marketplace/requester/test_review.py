"""Reviewing through the console: one and many, with a reason that is confirmed, and bonuses once."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from app.marketplace.requester import review
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, hit_params, new_worker
from tests.app.marketplace.requester.conftest import handed_in, state


@pytest.fixture
def assignment_id(worker: Visitor, hit: dict[str, Any]) -> str:
    return handed_in(worker, hit, "<b>fine</b> & good")


def test_answers_are_shown_as_they_were_written(console: Visitor, assignment_id: str) -> None:
    for path in ("/requester/review", f"/requester/assignments/{assignment_id}"):
        page = console.get(path)

        assert "<b>fine</b> & good" in console.text()
        assert "&lt;b&gt;fine" in page.text


def test_one_is_approved_with_words(
    console: Visitor, assignment_id: str, engine: Marketplace, account: Account
) -> None:
    console.get(f"/requester/assignments/{assignment_id}")
    console.post("/requester/review/decide", {"assignment": assignment_id, "action": "approve"})
    assert state(engine, account, assignment_id)["AssignmentStatus"] == "Submitted"
    assert "Each worker is paid the reward" in console.text()

    console.post(
        "/requester/review/decide",
        {"assignment": assignment_id, "action": "approve", "step": "words", "words": "Thanks."},
    )

    found = state(engine, account, assignment_id)
    assert (found["AssignmentStatus"], found["RequesterFeedback"]) == ("Approved", "Thanks.")
    assert "1 assignment is approved." in console.text()


def test_a_rejection_needs_a_reason_and_a_second_confirmation(
    console: Visitor, assignment_id: str, engine: Marketplace, account: Account
) -> None:
    form = {"assignment": assignment_id, "action": "reject"}
    console.get("/requester/review")
    for more, says in (
        ({}, "their approval rate falls"),
        ({"step": "words", "words": " "}, "Write the reason"),
        ({"step": "sure", "words": ""}, "Write the reason"),
        ({"step": "words", "words": "x" * 1025}, "At most 1024 characters"),
        ({"step": "words", "words": "Empty."}, "Reject 1 assignment for this reason?"),
    ):
        console.post("/requester/review/decide", {**form, **more})
        assert says in console.text(), more
        assert state(engine, account, assignment_id)["AssignmentStatus"] == "Submitted"

    console.post("/requester/review/decide", {**form, "step": "sure", "words": "Empty."})

    found = state(engine, account, assignment_id)
    assert (found["AssignmentStatus"], found["RequesterFeedback"]) == ("Rejected", "Empty.")
    assert "1 assignment is rejected." in console.text()


def test_many_at_once_and_what_was_decided_meanwhile_is_named(
    app: Flask, console: Visitor, engine: Marketplace, account: Account
) -> None:
    hit = engine.call(account.requester_id, "CreateHIT", hit_params(MaxAssignments=3))["HIT"]
    ids = [handed_in(new_worker(app, engine, f"worker-{number}"), hit) for number in range(3)]
    console.get("/requester/review")
    console.post("/requester/review/decide", {"assignment": ids, "action": "approve"})
    engine.call(account.requester_id, "ApproveAssignment", {"AssignmentId": ids[0]})

    console.post("/requester/review/decide", {"assignment": ids, "action": "approve", "step": "words"})

    assert "2 assignments are approved." in console.text()
    assert f"{ids[0]} was not approved: It is reviewed already" in console.text()
    assert {state(engine, account, one)["AssignmentStatus"] for one in ids} == {"Approved"}


def test_rejections_go_in_small_steps(console: Visitor) -> None:
    console.get("/requester/review")

    console.post("/requester/review/decide", {"assignment": [f"3A{n}" for n in range(11)], "action": "reject"})

    assert f"Choose at most {review.MOST_REJECTED} at a time to reject. Nothing was changed." in console.text()
    console.post("/requester/review/decide", {"action": "approve"})
    assert "Choose at least one assignment." in console.text()
    for bad in ({"action": "pay", "assignment": "3A"}, {"action": "approve", "assignment": "../3A"}):
        assert console.post("/requester/review/decide", bad).status_code == 400


def test_a_rejection_is_taken_back(console: Visitor, assignment_id: str, engine: Marketplace, account: Account) -> None:
    reject = {"AssignmentId": assignment_id, "RequesterFeedback": "No."}
    engine.call(account.requester_id, "RejectAssignment", reject)
    console.get(f"/requester/assignments/{assignment_id}/override")
    assert "reward of $0.30" in console.text()

    console.post(f"/requester/assignments/{assignment_id}/override")

    assert state(engine, account, assignment_id)["AssignmentStatus"] == "Approved"
    again = console.post(f"/requester/assignments/{assignment_id}/override")
    assert again.status_code == 409
    assert "reviewed already" in console.text()


def test_a_bonus_is_paid_once_for_each_form(
    console: Visitor, assignment_id: str, engine: Marketplace, account: Account
) -> None:
    address = f"/requester/assignments/{assignment_id}/bonus"
    console.get(address)
    token = str(console.page.find("input", {"name": "token"})["value"])  # type: ignore[index]
    form = {"token": token, "amount": "$1.50", "words": "Very good."}
    spent = engine.balance(account.requester_id).spent

    console.post(address, form)
    assert "$1.80 is taken from your available balance" in console.text()
    assert engine.balance(account.requester_id).spent == spent
    for _ in range(2):
        console.post(address, {**form, "step": "sure"})

    assert "It was not paid again." in console.text()
    assert f"{engine.balance(account.requester_id).spent - spent}" == "1.80"
    paid = engine.call(account.requester_id, "ListBonusPayments", {"AssignmentId": assignment_id})["BonusPayments"]
    assert [(one["BonusAmount"], one["Reason"]) for one in paid] == [("1.50", "Very good.")]


@pytest.mark.parametrize("amount", ["", "0", "-1", "0.001", "1e3x", "NaN", "Infinity", "10000000", "1" * 60])
def test_an_amount_that_is_none_is_said_at_its_field(console: Visitor, assignment_id: str, amount: str) -> None:
    address = f"/requester/assignments/{assignment_id}/bonus"
    console.get(address)

    response = console.post(address, {"amount": amount, "words": "x", "token": "t" * 20, "step": "sure"})

    assert response.status_code == 422
    assert "An amount in dollars and cents" in console.text()


def test_a_balance_that_is_too_low_says_what_to_do(
    console: Visitor, assignment_id: str, engine: Marketplace, account: Account
) -> None:
    address = f"/requester/assignments/{assignment_id}/bonus"
    console.get(address)

    response = console.post(address, {"amount": "5000", "words": "x", "token": "t" * 20, "step": "sure"})

    assert response.status_code == 409
    assert "Ask the operator for a top-up, then repeat. Nothing was changed." in console.text()
    assert engine.balance(account.requester_id).spent == 0
