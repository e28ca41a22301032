"""A worker's messages: pages, what is new, what was sent."""

from __future__ import annotations

from typing import Any

import pytest

from app.marketplace.messages import PAGE_SIZE
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor
from tests.app.marketplace.test_worker import worker_id


def test_empty_boxes_say_what_will_be_there(worker: Visitor) -> None:
    worker.get("/messages")
    assert "You have no messages." in worker.text()
    assert worker.page.find("button", string="Mark all as read") is None
    worker.get("/messages/sent")
    assert "You have sent no message." in worker.text()


def test_many_messages_have_pages_and_one_button_reads_them_all(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    me = worker_id(worker)
    question = engine.contact_requester(me, hit["HITId"], "Hello")
    for number in range(PAGE_SIZE + 1):
        engine.reply_to_worker(account.requester_id, question, f"Reply {number}.")

    worker.get("/messages")
    assert f"Messages {PAGE_SIZE + 1} new" in worker.text()
    assert len(worker.page.select(".hit-list > li")) == PAGE_SIZE
    following = worker.page.find("a", string="Next page")
    assert following is not None
    worker.get(str(following["href"]))

    assert len(worker.page.select(".hit-list > li")) == 1
    assert "Reply 0." in worker.text()
    worker.post("/messages/read")
    assert engine.unread_messages(me) == 0
    assert worker.page.find("button", string="Mark all as read") is None


@pytest.mark.parametrize("path", ["/messages", "/messages/sent"])
def test_messages_need_signing_in(visitor: Visitor, path: str) -> None:
    assert visitor.client.get(path).location.startswith("/sign-in?next=")


def test_a_failing_store_still_gets_an_error_page(worker: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_self: Marketplace, _worker_id: str) -> int:
        raise RuntimeError("the store is gone")

    monkeypatch.setattr(Marketplace, "unread_messages", fail)
    worker.client.application.testing = False

    response = worker.get("/work")

    assert response.status_code == 500
    assert "The site failed to answer." in worker.text()
