"""Qualifications on the site: found from a HIT, asked for, and earned by a test against the clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from flask import Flask

from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, hit_params, new_worker
from tests.hits.marketplace.forms_for_tests import KEY, TEST

NASTY = '"><script>alert(1)</script>'
WITH_TEST = {"Test": TEST, "AnswerKey": KEY, "TestDurationInSeconds": 600}
RIGHT = {"question-1": "blue", "question-2": ["2", "3"]}


def create(engine: Marketplace, account: Account, **changes: Any) -> str:
    params = {
        "Name": "Fluent in Norwegian",
        "Description": "You read it without effort.",
        "QualificationTypeStatus": "Active",
        **changes,
    }
    made = engine.call(account.requester_id, "CreateQualificationType", params)
    return str(made["QualificationType"]["QualificationTypeId"])


def begun(worker: Visitor, type_id: str) -> str:
    """Begin a test through the site and return its address."""
    worker.get(f"/qualifications/{type_id}")
    response = worker.post(f"/qualifications/{type_id}/request")
    assert response.status_code == 200
    assert response.request.path.startswith("/qualification-requests/")
    return response.request.path


@pytest.mark.parametrize("guarded", ["Accept", "PreviewAndAccept"])
def test_a_hit_leads_to_the_qualification_it_asks_for_and_that_to_the_hit(
    engine: Marketplace, account: Account, worker: Visitor, guarded: str
) -> None:
    type_id = create(engine, account, AutoGranted=True, AutoGrantedValue=3)
    needed = {"QualificationTypeId": type_id, "Comparator": "GreaterThan", "IntegerValues": [2]}
    system = {"QualificationTypeId": "000000000000000000L0", "Comparator": "Exists"}
    params = hit_params(QualificationRequirements=[{**needed, "ActionsGuarded": guarded}, system])
    hit = engine.call(account.requester_id, "CreateHIT", params)["HIT"]

    for path, status in [("/hits", 200), (f"/hits/{hit['HITId']}", 403 if guarded == "PreviewAndAccept" else 200)]:
        assert worker.get(path).status_code == status
        (link,) = worker.page.find_all("a", href=f"/qualifications/{type_id}")
        assert "Fluent in Norwegian" in link.text
    worker.get(f"/qualifications/{type_id}")
    assert "You do not have it" in worker.text()
    worker.post(f"/qualifications/{type_id}/request")

    assert "You now have the qualification “Fluent in Norwegian”. Your value is 3." in worker.text()
    assert "There is nothing more to do" in worker.text()
    worker.get(f"/hits/{hit['HITId']}")
    assert worker.page.find("form", action=f"/hits/{hit['HITId']}/accept") is not None


def test_a_request_waits_for_its_requester_whose_words_are_shown(
    engine: Marketplace, account: Account, worker: Visitor
) -> None:
    type_id = create(engine, account)
    worker.get("/qualifications")
    assert worker.page.find("a", href=f"/qualifications/{type_id}") is not None
    worker.get(f"/qualifications/{type_id}")
    worker.post(f"/qualifications/{type_id}/request")
    assert "Waiting for the requester" in worker.text()
    assert worker.page.find("form", action=f"/qualifications/{type_id}/request") is None

    (waiting,) = engine.call(account.requester_id, "ListQualificationRequests", {})["QualificationRequests"]
    refusal = {"QualificationRequestId": waiting["QualificationRequestId"], "Reason": "Not yet " + NASTY}
    engine.call(account.requester_id, "RejectQualificationRequest", refusal)

    worker.get(f"/qualifications/{type_id}")
    assert "Declined" in worker.text()
    assert "Not yet" in worker.text()
    assert "can be asked for only once" in worker.text()
    worker.get("/messages")
    assert "Your request was declined" in worker.text()
    assert worker.page.find("script", src=False) is None
    assert "New" in worker.text()
    worker.post("/messages/read")
    assert worker.page.find("form", action="/messages/read") is None
    assert "Your request was declined" in worker.text()


def test_a_test_is_taken_scored_and_can_be_retaken_after_a_while(
    engine: Marketplace, account: Account, worker: Visitor, clock: TestClock
) -> None:
    type_id = create(engine, account, RetryDelayInSeconds=86400, **WITH_TEST)
    worker.get("/qualifications")
    assert "with a test of 10 minutes" in worker.text()
    path = begun(worker, type_id)
    assert "Time left: 10:00" in worker.text()
    clock.advance(timedelta(minutes=4))
    worker.get(path)
    assert "Time left: 6:00" in worker.text()
    worker.get(f"/qualifications/{type_id}")
    assert "Continue the test" in worker.text()
    assert begun(worker, type_id) == path

    response = worker.post(path, {"question-2": ["2"]})
    assert response.status_code == 422
    assert "Answer this question." in worker.text()
    assert worker.page.select_one("[name=question-2][value='2']").has_attr("checked")  # type: ignore[union-attr]
    response = worker.post(path, RIGHT)

    assert response.request.path == f"/qualifications/{type_id}"
    assert "Your score 100" in worker.text()
    assert "You can try again from" in worker.text()
    assert worker.get(path).request.path == f"/qualifications/{type_id}"
    worker.post(path, {"question-1": "red"})
    assert "Your first answers are stored" in worker.text()
    worker.post(f"/qualifications/{type_id}/request")
    assert "You can request this qualification again from" in worker.text()
    clock.advance(timedelta(days=1))
    worker.get(f"/qualifications/{type_id}")
    assert "Take the test again" in worker.text()


def test_a_test_after_its_time_is_not_taken(
    engine: Marketplace, account: Account, worker: Visitor, clock: TestClock
) -> None:
    type_id = create(engine, account, **WITH_TEST)
    path = begun(worker, type_id)
    clock.advance(timedelta(minutes=10))

    worker.post(path, RIGHT)

    assert "The time for this test is over" in worker.text()
    assert "Time ran out" in worker.text()
    assert (
        engine.call(account.requester_id, "ListWorkersWithQualificationType", {"QualificationTypeId": type_id})[
            "NumResults"
        ]
        == 0
    )


def test_forged_forms_and_other_peoples_tests_are_refused(
    app: Flask, engine: Marketplace, account: Account, worker: Visitor
) -> None:
    type_id = create(engine, account, **WITH_TEST)
    path = begun(worker, type_id)
    other = new_worker(app, engine, "eve")
    other.get("/profile")

    for forged in (path, f"/qualifications/{type_id}/request", "/messages/read"):
        assert worker.client.post(forged, data=RIGHT).status_code == 400
    assert other.get(path).status_code == 404
    assert other.post(path, RIGHT).status_code == 404
    assert other.get("/qualifications/3NOTHING").status_code == 404
    assert other.post("/qualifications/3NOTHING/request").status_code == 404
    assert other.get("/qualifications/00000000000000000071").status_code == 404


def test_no_text_of_a_qualification_or_message_becomes_markup(
    engine: Marketplace, account: Account, worker: Visitor
) -> None:
    nasty = {"Name": NASTY, "Description": NASTY}
    type_id = create(engine, account, **nasty, **WITH_TEST)
    needed = [{"QualificationTypeId": type_id, "Comparator": "Exists"}]
    hit = engine.call(account.requester_id, "CreateHIT", hit_params(QualificationRequirements=needed))["HIT"]

    paths = ["/qualifications", f"/qualifications/{type_id}", "/hits", f"/hits/{hit['HITId']}", begun(worker, type_id)]
    for path in paths:
        worker.get(path)
        assert NASTY in worker.page.get_text()
        assert [script for script in worker.page.find_all("script") if not script.get("src")] == []


def test_what_the_site_computes_is_shown(worker: Visitor) -> None:
    worker.get("/qualifications")

    assert "Worker_PercentAssignmentsApproved" in worker.text()
    assert "No qualification can be asked for" in worker.text()
    worker.get("/messages")
    assert "You have no messages." in worker.text()
