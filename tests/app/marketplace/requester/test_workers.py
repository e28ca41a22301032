"""Messages, blocks and disputes in the console."""

from __future__ import annotations

from typing import Any

from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import BlockedByRequester
from tests.app.marketplace.conftest import Account, Visitor
from tests.app.marketplace.requester.conftest import handed_in, state


def worker_id_of(engine: Marketplace) -> str:
    return engine.worker_account("ada").worker.worker_id


def test_a_worker_is_answered(console: Visitor, worker: Visitor, engine: Marketplace, hit: dict[str, Any]) -> None:
    engine.contact_requester(worker_id_of(engine), hit["HITId"], "Is <this> right?")
    console.get("/requester/messages?unanswered=1")
    assert "Is <this> right?" in console.text()
    form = console.page.select_one("form[action*='/reply']")
    assert form is not None

    console.post(str(form["action"]), {"words": "Yes, it is."})

    assert "Yes, it is." in console.text()
    assert "Yes, it is." in repr(engine.messages(worker_id_of(engine)))
    console.get("/requester/messages?unanswered=1")
    assert "Nothing to answer." in console.text()
    console.post(str(form["action"]), {"words": " "})
    assert "Write what you want to say. Nothing was sent." in console.text()


def test_a_worker_is_blocked_and_unblocked(
    console: Visitor, worker: Visitor, engine: Marketplace, hit: dict[str, Any]
) -> None:
    worker_id = worker_id_of(engine)
    console.get("/requester/blocks")
    for form in ({"worker_id": "x", "words": "r"}, {"worker_id": worker_id, "words": ""}):
        console.post("/requester/blocks", form)
        assert "Give a worker id" in console.text()
    console.post("/requester/blocks", {"worker_id": "ANOBODY000000", "words": "r"})
    assert "not valid" in console.text()

    console.post("/requester/blocks", {"worker_id": worker_id, "words": "Copies answers."})

    assert "Copies answers." in console.text()
    try:
        engine.accept(worker_id, hit["HITId"])
    except BlockedByRequester:
        pass
    else:
        raise AssertionError("A blocked worker got a place.")
    console.post(f"/requester/blocks/{worker_id}/end")
    assert "You block nobody." in console.text()
    assert engine.accept(worker_id, hit["HITId"]).state == "Accepted"


def test_a_dispute_is_answered_or_settled(
    console: Visitor, worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = handed_in(worker, hit)
    reject = {"AssignmentId": assignment_id, "RequesterFeedback": "No."}
    engine.call(account.requester_id, "RejectAssignment", reject)
    dispute_id = engine.open_dispute(worker_id_of(engine), assignment_id, "It was <fine>.").dispute_id
    console.get("/requester/disputes")
    assert assignment_id in console.text()
    console.get(f"/requester/disputes/{dispute_id}")
    assert "It was <fine>." in console.text()
    assert console.post(f"/requester/disputes/{dispute_id}", {"words": ""}).status_code == 422

    console.post(f"/requester/disputes/{dispute_id}", {"words": "It was copied."})
    assert engine.dispute(dispute_id).reply == "It was copied."
    console.post(f"/requester/assignments/{assignment_id}/override")

    assert state(engine, account, assignment_id)["AssignmentStatus"] == "Approved"
    console.get(f"/requester/disputes/{dispute_id}")
    assert "Approved by the requester" in console.text()
    assert console.post(f"/requester/disputes/{dispute_id}", {"words": "Late."}).status_code == 422
