"""Where a HIT type's events go, chosen in the console."""

from __future__ import annotations

from typing import Any

from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor

WEBHOOK = {"transport": "SNS", "destination": "https://lab.example.org/hook", "event": ["HITReviewable", "Nonsense"]}


def test_events_are_switched_on_tried_and_switched_off(
    console: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    address = f"/requester/types/{hit['HITTypeId']}/notifications"
    console.get(address)

    console.post(address, {**WEBHOOK, "action": "test"})
    assert "A made-up event is on its way" in console.text()
    assert not engine.hit_type(account.requester_id, hit["HITTypeId"]).notifies
    console.post(address, {**WEBHOOK, "action": "save"})

    found = engine.hit_type(account.requester_id, hit["HITTypeId"])
    assert (found.transport, found.destination, found.event_types) == (
        "Webhook",
        "https://lab.example.org/hook",
        ("HITReviewable",),
    )
    chosen = console.page.select_one("option[selected]")
    assert chosen is not None
    assert chosen["value"] == "SNS"
    console.post(address, {"action": "off"})
    assert not engine.hit_type(account.requester_id, hit["HITTypeId"]).notifies


def test_an_unfit_destination_is_said(console: Visitor, engine: Marketplace, hit: dict[str, Any]) -> None:
    address = f"/requester/types/{hit['HITTypeId']}/notifications"
    console.get(address)

    for form, says in (
        ({**WEBHOOK, "destination": "http://lab.example.org"}, "ARN of a topic"),
        ({**WEBHOOK, "event": []}, "at least one of EventTypes"),
        ({**WEBHOOK, "transport": "Pigeon"}, "Pigeon"),
    ):
        response = console.post(address, {**form, "action": "save"})
        assert response.status_code == 422
        assert says in console.text()


def test_the_webhook_secret_is_shown_when_asked_for(console: Visitor, engine: Marketplace, account: Account) -> None:
    secret = engine.webhook_secret(account.requester_id)
    assert secret not in console.get("/requester/webhook-secret").text

    console.post("/requester/webhook-secret")

    assert secret in console.text()
