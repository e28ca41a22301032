"""Qualifications in the console: made, changed, asked for, given, taken back, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor
from tests.app.marketplace.test_qualifications import WITH_TEST

FILLED = {"name": "Fluent", "description": "You read Norwegian.", "keywords": "norwegian", "status": "Active"}


def made(console: Visitor, **more: str) -> str:
    console.get("/requester/qualifications/new")
    response = console.post("/requester/qualifications/new", {**FILLED, **more})
    assert response.status_code == 200, console.text()
    return response.request.path.rsplit("/", 1)[-1]


@pytest.fixture
def worker_id(worker: Visitor, engine: Marketplace) -> str:
    return engine.worker_account("ada").worker.worker_id


def test_one_is_made_and_changed(console: Visitor, engine: Marketplace, account: Account) -> None:
    type_id = made(console, retry="0.5", auto="1", auto_value="7")
    console.get("/requester/qualifications")
    assert "Fluent" in console.text()

    console.get(f"/requester/qualifications/{type_id}/edit")
    form = {**FILLED, "description": "Changed.", "status": "Inactive", "retry": "2"}
    console.post(f"/requester/qualifications/{type_id}/edit", form)

    get = {"QualificationTypeId": type_id}
    found = engine.call(account.requester_id, "GetQualificationType", get)["QualificationType"]
    assert (found["Description"], found["QualificationTypeStatus"], found["RetryDelayInSeconds"]) == (
        "Changed.",
        "Inactive",
        7200,
    )
    assert not found["AutoGranted"]


def test_a_test_with_its_key_is_kept(console: Visitor, engine: Marketplace, account: Account) -> None:
    type_id = made(console, test=WITH_TEST["Test"], key=WITH_TEST["AnswerKey"], minutes="10")

    console.get(f"/requester/qualifications/{type_id}")

    assert "10 minutes, scores itself" in console.text()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"name": ""}, ""),
        ({"retry": "soon"}, "The time before another try is a number"),
        ({"test": "<QuestionForm", "minutes": "1"}, ""),
        ({"auto": "1", "auto_value": "x"}, "The value is a whole number"),
        ({"description": "x" * 2001}, ""),
    ],
)
def test_what_does_not_fit_is_said_and_kept(console: Visitor, more: dict[str, str], says: str) -> None:
    console.get("/requester/qualifications/new")

    response = console.post("/requester/qualifications/new", {**FILLED, **more})

    assert response.status_code == 422
    assert says in console.text()
    assert "You read Norwegian." in console.text() or "description" in more


def test_requests_are_granted_and_declined(
    console: Visitor, engine: Marketplace, account: Account, worker_id: str
) -> None:
    first, second = made(console), made(console, name="Another")
    for type_id in (first, second):
        engine.request_qualification(worker_id, type_id)
    console.get("/requester/qualifications")
    assert worker_id in console.text()
    granted, declined = (
        engine.call(account.requester_id, "ListQualificationRequests", {"QualificationTypeId": one})[
            "QualificationRequests"
        ][0]["QualificationRequestId"]
        for one in (first, second)
    )

    console.post(f"/requester/qualification-requests/{granted}", {"action": "grant", "value": "88"})
    console.post(f"/requester/qualification-requests/{declined}", {"action": "decline", "words": "Not yet."})

    assert [(one.value, one.status) for one in engine.qualification_holders(account.requester_id, first).entries] == [
        (88, "Granted")
    ]
    assert engine.qualification_holders(account.requester_id, second).total == 0
    assert "Not yet." in repr(engine.messages(worker_id))
    again = console.post(f"/requester/qualification-requests/{declined}", {"action": "grant", "value": "1"})
    assert again.status_code == 409
    assert "decided already" in console.text()


def test_given_and_taken_back(console: Visitor, engine: Marketplace, account: Account, worker_id: str) -> None:
    type_id = made(console)
    address = f"/requester/qualifications/{type_id}"
    console.get(address)
    for worker, value, says in (
        ("nobody", "1", "Give a worker id"),
        ("ANOBODY000000", "1", "not valid"),
        (worker_id, "x", "whole number"),
    ):
        console.post(f"{address}/assign", {"worker_id": worker, "value": value})
        assert says in console.text()

    console.post(f"{address}/assign", {"worker_id": worker_id, "value": "42", "tell": "1"})
    assert engine.qualification_holders(account.requester_id, type_id).entries[0].value == 42
    console.get(f"{address}/revoke/{worker_id}")
    console.post(f"{address}/revoke/{worker_id}", {"words": "Expired."})

    assert engine.qualification_holders(account.requester_id, type_id).entries[0].status == "Revoked"
    assert console.post(f"{address}/revoke/{worker_id}").status_code in {404, 409}


def test_deleted_after_a_question(console: Visitor, engine: Marketplace) -> None:
    type_id = made(console)
    console.get(f"/requester/qualifications/{type_id}/delete")
    assert "HIT types that require it are deleted with it" in console.text()

    console.post(f"/requester/qualifications/{type_id}/delete")

    assert "You have no qualifications yet." in console.text()
    assert console.get(f"/requester/qualifications/{type_id}").status_code == 404


def test_lists_go_on_by_token(console: Visitor, engine: Marketplace, account: Account) -> None:
    for number in range(26):
        kind = {"Name": f"Kind {number}", "Description": "d", "QualificationTypeStatus": "Active"}
        engine.call(account.requester_id, "CreateQualificationType", kind)
    console.get("/requester/qualifications")
    names = {link.get_text() for link in console.page.select("tbody th a")}
    following: Any = console.page.find("a", string="Next page")

    console.get(str(following["href"]))

    names |= {link.get_text() for link in console.page.select("tbody th a")}
    assert names == {f"Kind {number}" for number in range(26)}
    assert console.get("/requester/qualifications?after=made-up").status_code == 409
