"""What every page of the requester console does: sign-in first, nothing of others, refusals in words."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from app.marketplace.requester.console import in_words, is_absent
from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import INSUFFICIENT_FUNDS, MarketplaceError, request_error
from tests.app.marketplace.conftest import Account, Visitor, new_worker
from tests.app.marketplace.requester.conftest import handed_in

LAYOUT = "<!doctype html><title>t</title><form action='https://www.mturk.com/mturk/externalSubmit'>${a}</form>"


def things(app: Flask, engine: Marketplace, account: Account, hit: dict[str, Any]) -> dict[str, str]:
    """One of everything that an address of the console can name."""
    worker = new_worker(app, engine, "zoe")
    assignment_id = handed_in(worker, hit)
    reject = {"AssignmentId": assignment_id, "RequesterFeedback": "No."}
    engine.call(account.requester_id, "RejectAssignment", reject)
    worker_id = engine.worker_account("zoe").worker.worker_id
    kind = {"Name": "n", "Description": "d", "QualificationTypeStatus": "Active"}
    made = engine.call(account.requester_id, "CreateQualificationType", kind)["QualificationType"]
    return {
        "hit_id": hit["HITId"],
        "assignment_id": assignment_id,
        "type_id": hit["HITTypeId"],
        "key_id": account.access_key_id,
        "layout_id": engine.create_layout(account.requester_id, "l", LAYOUT).layout_id,
        "dispute_id": engine.open_dispute(worker_id, assignment_id, "Unfair.").dispute_id,
        "message_id": engine.contact_requester(worker_id, hit["HITId"], "Hello?"),
        "request_id": engine.request_qualification(worker_id, made["QualificationTypeId"]).request_id,
        "worker_id": worker_id,
        "qualification": made["QualificationTypeId"],
    }


def addresses(app: Flask, found: dict[str, str]) -> list[tuple[str, str]]:
    """Every address of the console that names something, with the methods it takes."""
    known = []
    for rule in app.url_map.iter_rules():
        if not rule.endpoint.startswith("requester.") or not rule.arguments or rule.endpoint == "requester.unblock":
            continue
        values = dict(found)
        if "qualification" in rule.endpoint:
            values["type_id"] = found["qualification"]
        _host, path = rule.build({name: values[name] for name in rule.arguments}) or ("", "")
        known += [(method, path) for method in sorted((rule.methods or set()) & {"GET", "POST"})]
    return known


def test_another_requesters_things_are_not_found_at_any_address(
    app: Flask, engine: Marketplace, account: Account, hit: dict[str, Any], other_console: Visitor
) -> None:
    found = things(app, engine, account, hit)
    other_console.get("/requester/hits")
    tried = addresses(app, found)
    assert len(tried) > 25

    for method, path in tried:
        if method == "GET":
            response = other_console.client.get(path)
        else:
            form = {"csrf_token": other_console.token, "words": "x", "number": "1", "token": "t" * 20, "value": "1"}
            form |= {"action": "grant", "worker_id": found["worker_id"], "destination": "a@example.org"}
            response = other_console.client.post(path, data=form)
        if response.status_code == 303:
            # Where an answer is one line on the list's page, it says that there is no such thing.
            page = other_console.get(response.location)
            assert page.status_code == 404 or "does not exist" in page.text, (method, path)
        else:
            assert response.status_code == 404, (method, path, response.status_code)
    listed = "".join(
        other_console.get(f"/requester/{name}").text
        for name in ("", "hits", "types", "review", "account", "keys", "layouts", "disputes", "messages", "blocks")
    )
    listed += other_console.get("/requester/qualifications").text
    for name, value in found.items():
        assert value not in listed, name


def test_every_page_asks_for_a_sign_in_first(app: Flask, visitor: Visitor) -> None:
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("requester.") and not rule.arguments and "GET" in (rule.methods or set()):
            response = visitor.get(rule.rule)
            assert response.request.path.endswith(("/sign-in", "/forgotten", "/new-password")) or (
                "password" in response.request.path
            ), rule.rule


def test_a_disabled_requester_is_signed_out(console: Visitor, engine: Marketplace, account: Account) -> None:
    engine.set_requester_disabled(account.requester_id, True, by=Actor.operator("olga"))

    response = console.get("/requester/account")

    assert response.request.path == "/requester/sign-in"
    console.post("/requester/sign-in", {"email": "lab@example.org", "password": "correct horse battery staple"})
    assert "has been disabled by the operator" in console.text()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (request_error(INSUFFICIENT_FUNDS), "Ask the operator for a top-up"),
        (
            MarketplaceError("RequestError", "Unheard of. (1700000000000)", "AWS.MechanicalTurk.New"),
            "Unheard of.",
        ),
    ],
)
def test_errors_of_the_api_are_said_in_words(error: MarketplaceError, words: str) -> None:
    assert words in in_words(error)
    assert "(17" not in in_words(error)
    assert not is_absent(error)
