"""The requester console: what it shows, and to whom."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from flask import Flask

from hits.marketplace import pages, requester_site
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import PASSWORD, Account, Visitor, accepted, hit_params, new_worker
from tests.app.marketplace.requester.conftest import handed_in


def test_the_overview_shows_money_hits_and_what_waits(
    console: Visitor, worker: Visitor, hit: dict[str, Any], engine: Marketplace, account: Account
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    worker.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, "a": "1"})

    console.get("/requester/")

    text, money = console.text(), engine.balance(account.requester_id)
    assert f"${money.available:.2f}" in text
    assert f"${money.on_hold:.2f}" in text
    assert assignment_id in text
    assert "3 Dec 2026, 12:00 UTC" in text
    assert hit["HITId"] in text


def test_an_approved_assignment_waits_no_longer(
    console: Visitor, worker: Visitor, hit: dict[str, Any], engine: Marketplace, account: Account
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    worker.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, "a": "1"})
    engine.call(account.requester_id, "ApproveAssignment", {"AssignmentId": assignment_id})

    console.get("/requester/")

    assert "Nothing waits for your review." in console.text()


def test_the_account_lists_every_line_and_key(console: Visitor, hit: dict[str, Any], account: Account) -> None:
    console.get("/requester/account")
    assert "seed" in console.text()
    assert hit["HITId"] in console.text()

    response = console.get("/requester/keys")

    assert account.access_key_id in console.text()
    assert account.secret not in response.text


def test_another_requesters_hits_are_not_shown(visitor: Visitor, engine: Marketplace, hit: dict[str, Any]) -> None:
    engine.create_requester("Other", email="other@example.org", password=PASSWORD)
    visitor.get("/requester/sign-in")
    visitor.post("/requester/sign-in", {"email": "other@example.org", "password": PASSWORD})

    visitor.get("/requester/")

    assert "You have no HITs yet." in visitor.text()
    assert hit["HITId"] not in visitor.text()


def test_lines_are_chosen_by_kind(console: Visitor, hit: dict[str, Any]) -> None:
    console.get("/requester/account?kind=deposit")

    assert "Top-up: seed" in console.text()
    assert hit["HITId"] not in console.text()
    console.get("/requester/account?kind=nonsense&page=-1")
    assert hit["HITId"] in console.text()


def test_a_secret_is_shown_once(console: Visitor, engine: Marketplace, account: Account) -> None:
    console.get("/requester/keys")

    response = console.post("/requester/keys")

    assert response.status_code == 201
    key_id = console.text().split("AWS_ACCESS_KEY_ID=")[1].split()[0]
    secret = console.text().split("AWS_SECRET_ACCESS_KEY=")[1].split()[0]
    assert engine.access_key(key_id) == (secret, account.requester_id)
    assert secret not in console.get("/requester/keys").text
    assert [one.action for one in engine.audit_log(about=account.requester_id).entries][:1] == ["access key created"]


def test_a_key_is_revoked_after_a_question(console: Visitor, engine: Marketplace, account: Account) -> None:
    console.get(f"/requester/keys/{account.access_key_id}/revoke")
    assert "refused from this moment on" in console.text()
    assert engine.access_keys(account.requester_id)[0].revoked_at is None

    console.post(f"/requester/keys/{account.access_key_id}/revoke")

    assert engine.access_keys(account.requester_id)[0].revoked_at is not None
    assert "Revoked" in console.text()


def test_another_requesters_key_does_not_exist(other_console: Visitor, engine: Marketplace, account: Account) -> None:
    address = f"/requester/keys/{account.access_key_id}/revoke"
    other_console.get("/requester/keys")

    assert other_console.get(address).status_code == 404
    assert other_console.post(address).status_code == 404
    assert engine.access_keys(account.requester_id)[0].revoked_at is None
    assert account.access_key_id not in other_console.get("/requester/keys").text


def test_lists_that_were_counted_to_a_limit_say_so(
    console: Visitor, engine: Marketplace, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "COUNTED", 50)
    for number in range(151):
        engine.top_up(account.requester_id, Decimal("1.00"), f"top-up {number}")

    console.get("/requester/account")
    assert "Page 1 of more than 2" in console.text()
    console.get("/requester/account?page=3")
    assert "Page 3 of 4" in console.text()
    assert "Next page" in console.text()
    console.get("/requester/account?page=4")
    assert "Page 4 of 4" in console.text()


def test_the_overview_says_that_more_waits_than_was_counted(
    console: Visitor, engine: Marketplace, app: Flask, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "COUNTED", 1)
    monkeypatch.setattr(requester_site, "PAGE_SIZE", 1)
    hit = engine.call(account.requester_id, "CreateHIT", hit_params(MaxAssignments=3))["HIT"]
    for name in ("ada", "ben", "eve"):
        handed_in(new_worker(app, engine, name), hit)

    console.get("/requester/")
    assert "assignments to review more than 2" in console.text()
    assert "Review them" in console.text()
    console.get("/requester/review")

    assert "More than 2 assignments wait" in console.text()
    assert "Page 1 of more than 2" in console.text()
