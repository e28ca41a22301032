"""Reports and disputes in the operator console."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, hit_params
from tests.app.marketplace.operator.conftest import Submit, token_of

REJECT = {"operation": "RejectAssignment", "RequesterFeedback": "Too <short>."}


def disputed(engine: Marketplace, worker_id: str, handed_in: Submit) -> str:
    return engine.open_dispute(worker_id, handed_in(**REJECT), "It was <fine>.").dispute_id


def test_a_report_is_closed_with_words(
    operator: Visitor, worker_id: str, engine: Marketplace, hit: dict[str, Any]
) -> None:
    report_id = engine.report_hit(worker_id, hit["HITId"], "personal-data", "Asks for my <password>.")
    operator.get("/operator/reports")
    assert "Asks for my <password>." in operator.text()
    operator.post(f"/operator/reports/{report_id}/close", {"words": " "})
    assert engine.reports().total == 1

    operator.post(f"/operator/reports/{report_id}/close", {"words": "It is gone, thank you."})

    assert engine.reports().total == 0
    assert "It is gone, thank you." in repr(engine.messages(worker_id))
    assert engine.audit_log(action="report closed").entries[0].actor == "olga"
    operator.get("/operator/reports?all=1")
    assert "It is gone, thank you." in operator.text()


def test_reasons_for_returned_hits_are_read(
    operator: Visitor, worker_id: str, engine: Marketplace, hit: dict[str, Any]
) -> None:
    operator.get("/operator/returns")
    assert "No reasons yet." in operator.text()
    for reason in ("", "The <button> is gone."):
        engine.return_assignment(worker_id, engine.accept(worker_id, hit["HITId"]).assignment_id, reason)

    operator.get("/operator/reports")
    link = operator.page.find("a", string="Why HITs were given back")
    assert link is not None
    operator.get(str(link["href"]))

    assert "The <button> is gone." in operator.text()
    assert worker_id in operator.text()
    assert len(operator.page.select("tbody tr")) == 1


def test_a_hit_is_taken_down_with_its_type(
    operator: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    engine.call(account.requester_id, "CreateHIT", hit_params())
    address = f"/operator/hits/{hit['HITId']}/take-down"
    operator.get(address)
    assert operator.post(address, {"words": ""}).status_code == 422

    operator.post(address, {"words": "It asks for passwords.", "whole_type": "1"})

    assert "2 HITs are taken down." in operator.text()
    assert engine.balance(account.requester_id).on_hold == 0
    operator.get(address)
    assert "taken down already" in operator.text()


def test_a_rejection_is_overturned_after_a_second_look(
    operator: Visitor, worker_id: str, engine: Marketplace, account: Account, handed_in: Submit
) -> None:
    dispute_id = disputed(engine, worker_id, handed_in)
    operator.get("/operator/disputes")
    address = f"/operator/disputes/{dispute_id}"
    operator.get(address)
    for words in ("It was <fine>.", "Too <short>.", "<b>1</b>"):
        assert words in operator.text()
    form = {"token": token_of(operator), "action": "overturn", "words": "One was asked for."}
    assert operator.post(address, {**form, "words": ""}).status_code == 422
    operator.post(address, form)
    assert "$0.36 (the reward of $0.30 and the fee) is taken from the requester" in operator.text()
    assert engine.dispute(dispute_id).state == "Open"

    for _ in range(2):
        operator.post(address, {**form, "step": "sure"})

    assert "overturned; the worker is paid" in operator.text()
    assert f"{engine.balance(account.requester_id).spent}" == "0.36"
    assert f"{engine.earnings(worker_id).approved}" == "0.30"
    assert operator.post(address, {**form, "token": "another" * 4, "step": "sure"}).status_code == 409
    assert "was overturned by olga" in operator.text()
    operator.get("/operator/disputes?state=Overturned")
    assert "1" in operator.text()


def test_a_rejection_is_upheld(operator: Visitor, worker_id: str, engine: Marketplace, handed_in: Submit) -> None:
    address = f"/operator/disputes/{disputed(engine, worker_id, handed_in)}"
    operator.get(address)
    form = {"token": token_of(operator), "action": "uphold", "words": "It was empty."}
    operator.post(address, form)
    assert "No money moves" in operator.text()

    operator.post(address, {**form, "step": "sure"})

    assert "It was empty." in operator.text()
    assert engine.earnings(worker_id).approved == 0


def test_a_balance_that_is_too_low_leaves_the_dispute_open(
    operator: Visitor, worker_id: str, engine: Marketplace, account: Account, handed_in: Submit, hit: dict[str, Any]
) -> None:
    dispute_id = disputed(engine, worker_id, handed_in)
    engine.call(account.requester_id, "CreateHIT", hit_params(MaxAssignments=1, Reward="82.80"))
    assert engine.balance(account.requester_id).available < Decimal("0.36")
    address = f"/operator/disputes/{dispute_id}"
    operator.get(address)
    assert "Top up the account first" in operator.text()

    form = {"token": token_of(operator), "action": "overturn", "words": "Yes.", "step": "sure"}
    response = operator.post(address, form)

    assert response.status_code == 409
    assert "the dispute stays open" in operator.text()
    assert engine.dispute(dispute_id).state == "Open"
