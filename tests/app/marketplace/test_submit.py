"""externalSubmit: what a frame on another site may send, and what it hears."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask import Flask
from lxml import etree

from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, accepted

PATH = "/mturk/externalSubmit"


def answers(engine: Marketplace, account: Account, hit: dict[str, Any]) -> list[dict[str, str]]:
    found = engine.call(account.requester_id, "ListAssignmentsForHIT", {"HITId": hit["HITId"]})["Assignments"]
    parsed = []
    for assignment in found:
        root = etree.fromstring(assignment["Answer"].encode())
        parsed.append(
            {
                str(answer.findtext("{*}QuestionIdentifier")): str(answer.findtext("{*}FreeText"))
                for answer in root.iter("{*}Answer")
            }
        )
    return parsed


def words(response: Any) -> str:
    return " ".join(BeautifulSoup(response.text, "html.parser").get_text(" ").split())


def test_a_post_without_any_cookie_is_stored_and_answered_with_a_receipt(
    app: Flask, worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = accepted(worker, hit["HITId"])

    response = app.test_client().post(PATH, data={"assignmentId": assignment_id, "statement": "Grüße 🙂 مرحبا"})

    assert response.status_code == 200
    assert "Your work is submitted" in words(response)
    assert f'data-assignment="{assignment_id}"' in response.text
    assert "frame-ancestors 'self'" in response.headers["Content-Security-Policy"]
    assert response.headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "Set-Cookie" not in response.headers
    assert answers(engine, account, hit) == [{"statement": "Grüße 🙂 مرحبا"}]


def test_a_get_and_fields_in_the_address_are_taken_too(
    app: Flask, worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = accepted(worker, hit["HITId"])

    response = app.test_client().get(PATH, query_string={"assignmentId": assignment_id, "a": "1", "b": ["2", "3"]})

    assert response.status_code == 200
    (stored,) = answers(engine, account, hit)
    assert stored == {"a": "1", "b": "2"}


def test_a_post_may_name_the_assignment_in_the_address(
    app: Flask, worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = accepted(worker, hit["HITId"])

    app.test_client().post(f"{PATH}?assignmentId={assignment_id}", data={"a": "1"})

    assert answers(engine, account, hit) == [{"a": "1"}]


def test_a_second_submission_changes_nothing_and_says_so(
    app: Flask, worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    client = app.test_client()
    client.post(PATH, data={"assignmentId": assignment_id, "a": "first"})

    response = client.post(PATH, data={"assignmentId": assignment_id, "a": "second"})

    assert response.status_code == 409
    assert "Your first submission is stored" in words(response)
    assert f'data-assignment="{assignment_id}"' in response.text
    assert answers(engine, account, hit) == [{"a": "first"}]


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({}, 404, "does not exist"),
        ({"assignmentId": "3MADEUP", "a": "1"}, 404, "does not exist"),
        ({"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "a": "1"}, 400, "This was a preview"),
        ({"assignmentId": "'; DROP TABLE x; --\x00", "a": "1"}, 404, "does not exist"),
    ],
)
def test_what_names_no_held_assignment_is_refused_in_words(
    app: Flask, fields: dict[str, str], status: int, said: str
) -> None:
    response = app.test_client().post(PATH, data=fields)

    assert response.status_code == status
    assert said in words(response)
    assert "data-assignment" not in response.text
    assert "frame-ancestors 'self'" in response.headers["Content-Security-Policy"]


def test_a_late_submission_is_refused(app: Flask, worker: Visitor, hit: dict[str, Any], clock: TestClock) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    clock.advance(hours=1, seconds=1)

    response = app.test_client().post(PATH, data={"assignmentId": assignment_id, "a": "1"})

    assert response.status_code == 410
    assert "time for this assignment is over" in words(response)


def test_a_returned_assignment_is_refused(app: Flask, worker: Visitor, hit: dict[str, Any]) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    worker.post(f"/work/{assignment_id}/return")

    response = app.test_client().post(PATH, data={"assignmentId": assignment_id, "a": "1"})

    assert response.status_code == 410


def test_an_assignment_id_alone_is_no_answer(app: Flask, worker: Visitor, hit: dict[str, Any]) -> None:
    assignment_id = accepted(worker, hit["HITId"])

    response = app.test_client().post(PATH, data={"assignmentId": assignment_id})

    assert response.status_code == 400
    assert "no answer" in words(response)
    assert worker.get(f"/work/{assignment_id}").status_code == 200


def test_a_huge_answer_is_refused_with_its_limit(app: Flask, worker: Visitor, hit: dict[str, Any]) -> None:
    assignment_id = accepted(worker, hit["HITId"])

    response = app.test_client().post(PATH, data={"assignmentId": assignment_id, "a": "x" * 3_000_000})

    assert response.status_code == 413
    assert "Nothing was stored" in words(response)
