"""A requester who is signed in to the console, and another one who is too."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from flask import Flask

from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import PASSWORD, Account, Visitor, accepted


def signed_in(app: Flask, email: str) -> Visitor:
    visitor = Visitor(app.test_client())
    visitor.get("/requester/sign-in")
    response = visitor.post("/requester/sign-in", {"email": email, "password": PASSWORD})
    assert response.request.path == "/requester/", response.text
    return visitor


@pytest.fixture
def console(app: Flask, account: Account) -> Visitor:
    return signed_in(app, "lab@example.org")


@pytest.fixture
def other_console(app: Flask, engine: Marketplace) -> Visitor:
    other = engine.create_requester("Other", email="other@example.org", password=PASSWORD)
    engine.top_up(other.requester_id, Decimal("100.00"), "seed")
    return signed_in(app, "other@example.org")


def handed_in(worker: Visitor, hit: dict[str, Any], answer: str = "It was fine.") -> str:
    """Accept and submit through the site, and return the assignment's id."""
    assignment_id = accepted(worker, hit["HITId"])
    worker.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, "sentence": answer})
    return assignment_id


def state(engine: Marketplace, account: Account, assignment_id: str) -> dict[str, Any]:
    found = engine.call(account.requester_id, "GetAssignment", {"AssignmentId": assignment_id})["Assignment"]
    return dict(found)
