"""A worker objects to a rejection through the site."""

from __future__ import annotations

from typing import Any

from flask import Flask

from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, accepted, new_worker


def rejected(worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]) -> str:
    assignment_id = accepted(worker, hit["HITId"])
    worker.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, "a": "<b>mine</b>"})
    words = {"AssignmentId": assignment_id, "RequesterFeedback": "Too short."}
    engine.call(account.requester_id, "RejectAssignment", words)
    return assignment_id


def test_a_rejected_hit_is_disputed_once(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = rejected(worker, engine, account, hit)
    worker.get("/dashboard")
    link = worker.page.find("a", string="Dispute it")
    assert link is not None
    worker.get(str(link["href"]))
    assert "Too short." in worker.text()

    worker.post(f"/work/{assignment_id}/dispute", {"words": "One sentence was asked for."})

    assert "Waits for the operator" in worker.text()
    assert "One sentence was asked for." in worker.text()
    (found,) = engine.disputes().entries
    assert found.assignment_id == assignment_id
    worker.post(f"/work/{assignment_id}/dispute", {"words": "Again."})
    assert "You have disputed this rejection already" in worker.text()
    assert engine.disputes().total == 1


def test_a_dispute_needs_words_and_keeps_none_that_are_too_long(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = rejected(worker, engine, account, hit)
    worker.get(f"/work/{assignment_id}/dispute")

    response = worker.post(f"/work/{assignment_id}/dispute", {"words": " \x00 "})

    assert response.status_code == 422
    assert "in 1 to 2000 characters" in worker.text()
    assert worker.post(f"/work/{assignment_id}/dispute", {"words": "x" * 2001}).status_code == 422
    assert engine.disputes().total == 0


def test_nobody_else_sees_it_and_unrejected_work_has_none(
    app: Flask, worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = rejected(worker, engine, account, hit)
    other = new_worker(app, engine, "bob")
    waiting = accepted(other, hit["HITId"])
    other.client.post("/mturk/externalSubmit", data={"assignmentId": waiting, "a": "1"})

    assert other.get(f"/work/{assignment_id}/dispute").status_code == 404
    assert other.post(f"/work/{assignment_id}/dispute", {"words": "Mine?"}).status_code == 404
    assert other.get(f"/work/{waiting}/dispute").status_code == 409
    assert Visitor(app.test_client()).get(f"/work/{assignment_id}/dispute").request.path == "/sign-in"
