"""Writing to a requester and reporting a HIT, as a worker meets them."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, accepted, new_worker
from tests.app.marketplace.test_worker import submit, worker_id


def links(worker: Visitor, hit_id: str) -> set[str]:
    return {str(link["href"]) for link in worker.page.find_all("a") if str(link["href"]).startswith(f"/hits/{hit_id}/")}


def test_preview_work_and_receipt_lead_to_the_requester_and_the_operator(
    worker: Visitor, visitor: Visitor, hit: dict[str, Any]
) -> None:
    hit_id = hit["HITId"]
    both = {f"/hits/{hit_id}/contact", f"/hits/{hit_id}/report"}
    worker.get(f"/hits/{hit_id}")
    assert links(worker, hit_id) == both
    assignment_id = accepted(worker, hit_id)
    assert links(worker, hit_id) == {f"/hits/{hit_id}/contact"}
    worker.get("/work")
    assert links(worker, hit_id) == {f"/hits/{hit_id}/contact"}
    submit(worker, assignment_id, text="x")
    worker.get(f"/work/{assignment_id}/submitted")
    assert links(worker, hit_id) == both
    worker.get(f"/hits/{hit_id}/contact")
    assert f"/hits/{hit_id}/report" in links(worker, hit_id)
    visitor.get(f"/hits/{hit_id}")
    assert links(visitor, hit_id) == set()


def test_a_message_is_sent_and_its_reply_is_counted_and_read(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    worker.get(f"/hits/{hit['HITId']}/contact")
    assert "Sentiment Lab" in worker.text()
    assert "Write a statement that fools a model" in worker.text()

    response = worker.post(f"/hits/{hit['HITId']}/contact", {"text": "Two lines:\r\n<b>no</b> button."})

    assert response.request.path == "/messages/sent"
    assert "Your message was sent to Sentiment Lab." in worker.text()
    assert "Not answered yet" in worker.text()
    (message,) = engine.requester_messages(account.requester_id).messages
    assert (message.text, message.assignment_id) == ("Two lines:\n<b>no</b> button.", assignment_id)
    assert message.worker_id == worker_id(worker)
    worker.get("/hits")
    assert "new" not in worker.page.select_one("header nav").get_text()  # type: ignore[union-attr]
    engine.reply_to_worker(account.requester_id, message.message_id, "Reload <i>it</i>.")
    worker.get("/hits")
    assert "Messages 1 new" in worker.text()
    worker.get("/messages")
    assert "You wrote: Two lines: <b>no</b> button. Reload <i>it</i>." in worker.text()
    assert "From Sentiment Lab" in worker.text()
    worker.post("/messages/read")
    assert "1 new" not in worker.text()
    worker.get("/messages/sent")
    assert "Answered" in worker.text()
    assert "Reload <i>it</i>." in worker.text()


@pytest.mark.parametrize(
    ("text", "says"), [("", "Write what you want to say"), ("x" * 4001, "at most 4000 characters")]
)
def test_a_message_that_cannot_be_sent_stays_on_the_page(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], text: str, says: str
) -> None:
    worker.get(f"/hits/{hit['HITId']}/contact")

    response = worker.post(f"/hits/{hit['HITId']}/contact", {"text": text})

    assert response.status_code == 422
    error, box = worker.page.find(id="text-error"), worker.page.find("textarea")
    assert error is not None
    assert says in error.get_text()
    assert box is not None
    assert box.get_text().strip() == text
    assert engine.requester_messages(account.requester_id).total == 0


def test_too_many_messages_are_refused_with_the_time_of_the_next(worker: Visitor, hit: dict[str, Any]) -> None:
    worker.get(f"/hits/{hit['HITId']}/contact")
    for _ in range(5):
        worker.post(f"/hits/{hit['HITId']}/contact", {"text": "Hello?"})

    response = worker.post(f"/hits/{hit['HITId']}/contact", {"text": "Hello??"})

    assert response.status_code == 422
    assert "You have sent 5 messages to this requester." in worker.text()
    assert "Hello??" in worker.text()


def test_a_report_is_sent_and_its_end_comes_as_a_message(
    worker: Visitor, engine: Marketplace, hit: dict[str, Any]
) -> None:
    address = f"/hits/{hit['HITId']}/report"
    worker.get(address)
    response = worker.post(address, {"text": "It wants my name."})
    assert response.status_code == 422
    assert "Choose a reason." in worker.text()
    assert "It wants my name." in worker.text()

    response = worker.post(address, {"reason": "personal-data", "text": "It wants my name."})

    assert response.request.path == "/hits"
    assert "Your report was sent to the operator" in worker.text()
    (report,) = engine.reports().reports
    assert (report.reason, report.text, report.worker_id) == ("personal-data", "It wants my name.", worker_id(worker))
    worker.get(address)
    worker.post(address, {"reason": "broken"})
    assert "You have reported this HIT already." in worker.text()
    engine.close_report(report.report_id, "We took it down.")
    worker.get("/messages")
    assert "From the operator of this site" in worker.text()
    assert "We took it down." in worker.text()


@pytest.mark.parametrize("what", ["contact", "report"])
def test_only_who_may_see_the_hit_writes_about_it(
    app: Flask, visitor: Visitor, worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], what: str
) -> None:
    assert visitor.client.get(f"/hits/{hit['HITId']}/{what}").location.startswith("/sign-in?next=")
    assert worker.get(f"/hits/3NOSUCH/{what}").status_code == 404
    other = new_worker(app, engine, "berta")
    block = {"WorkerId": worker_id(other), "Reason": "spam"}
    engine.call(account.requester_id, "CreateWorkerBlock", block)
    assert other.get(f"/hits/{hit['HITId']}/{what}").status_code == 403
    assert worker.client.post(f"/hits/{hit['HITId']}/{what}", data={"text": "forged"}).status_code == 400
