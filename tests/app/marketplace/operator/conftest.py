"""An operator who is signed in, and something to operate on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, accepted

OPERATOR_PASSWORD = "a long enough password"


@pytest.fixture
def operator(app: Flask, engine: Marketplace) -> Visitor:
    engine.add_operator("olga", OPERATOR_PASSWORD, by=Actor.command_line("root"))
    visitor = Visitor(app.test_client())
    visitor.get("/operator/sign-in")
    response = visitor.post("/operator/sign-in", {"name": "Olga", "password": OPERATOR_PASSWORD})
    assert response.request.path == "/operator/", response.text
    return visitor


@pytest.fixture
def worker_id(worker: Visitor, engine: Marketplace) -> str:
    return engine.worker_account("ada").worker.worker_id


Submit = Callable[..., str]


@pytest.fixture
def handed_in(worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]) -> Submit:
    """Hand in the HIT and judge it."""

    def submit(operation: str | None = None, **words: str) -> str:
        assignment_id = accepted(worker, hit["HITId"])
        worker.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, "a": "<b>1</b>"})
        if operation is not None:
            engine.call(account.requester_id, operation, {"AssignmentId": assignment_id, **words})
        return assignment_id

    return submit


def token_of(visitor: Visitor) -> str:
    """Return the one-time token of the form on the page."""
    field = visitor.page.find("input", {"name": "token"})
    assert field is not None
    return str(field["value"])
