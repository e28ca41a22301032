"""What people and programs send that nobody meant: each door answers with a page, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from flask import Flask

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from tests.app.marketplace.conftest import PASSWORD, Account, Visitor, accepted, hit_params, new_worker

BAD = [
    "\x00",
    "a\x00b",
    "🙂" * 300,
    "مرحبا",
    "<script>alert(1)</script>",
    "'; DROP TABLE mp_hit; --",
    "x" * 100_000,
    "%s{}",
]


@pytest.fixture
def stored_engine(database_url: str, clock: TestClock) -> Iterator[Marketplace]:
    opened = Marketplace(database_url, settings=MarketplaceSettings.for_tests(), clock=clock)
    opened.create_schema()
    yield opened
    opened.close()


def test_bad_text_in_every_field_never_fails_a_page(stored_engine: Marketplace, settings: Settings) -> None:
    engine = stored_engine
    app = create_app(settings, marketplace=engine)
    app.testing = True  # a failure is raised here instead of becoming a page
    requester = engine.create_requester("Lab", email="lab@example.org", password=PASSWORD)
    engine.top_up(requester.requester_id, Decimal(100), "seed")
    worker = new_worker(app, engine, "ada")
    hit_ids = [engine.call(requester.requester_id, "CreateHIT", hit_params())["HIT"]["HITId"] for _ in BAD]

    for bad, hit_id in zip(BAD, hit_ids, strict=True):
        stranger = Visitor(app.test_client())
        stranger.get("/join")
        for path, fields in [
            ("/join", {"code": bad, "user_name": bad, "password": bad}),
            ("/sign-in", {"user_name": bad, "password": bad}),
            ("/requester/sign-in", {"email": bad, "password": bad}),
        ]:
            stranger.get(path)
            assert stranger.post(path, fields).status_code in {413, 422, 429}, (path, bad[:20])
        assert worker.client.get("/hits", query_string={"q": bad, "sort": bad, "qualified": bad}).status_code == 200
        for path in ("/hits/x", "/work/x", "/work/x/return", "/work/x/submitted"):
            assert worker.client.get(path.replace("x", bad[:500])).status_code in {400, 404}, (path, bad[:20])
        assert worker.client.get("/mturk/preview", query_string={"groupId": bad}).status_code == 404
        returned = accepted(worker, hit_id)
        assert worker.post(f"/work/{returned}/return", {"reason": bad}).status_code == 200
        fields = {"assignmentId": bad, bad: bad}
        assert worker.client.post("/mturk/externalSubmit", data=fields).status_code in {400, 404}
        sent = {"assignmentId": accepted(worker, hit_id), bad: bad, "text": f"kept {bad}"}
        assert worker.client.post("/mturk/externalSubmit", data=sent).status_code == 200, bad[:20]
        (assignment,) = engine.call(requester.requester_id, "ListAssignmentsForHIT", {"HITId": hit_id})["Assignments"]
        assert "<FreeText>kept " in assignment["Answer"]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"assignmentId": "3ABC"}'),
        ("text/plain", b"assignmentId=3ABC"),
        ("multipart/form-data", b"no boundary"),
        ("multipart/form-data; boundary=x", b"--x\r\nbroken"),
        ("application/x-www-form-urlencoded", b"%ff%fe=%00&assignmentId=%zz"),
        ("", b"\xff\xfe"),
    ],
)
def test_a_submission_of_another_kind_is_refused_in_words(app: Flask, content_type: str, body: bytes) -> None:
    response = app.test_client().post("/mturk/externalSubmit", data=body, content_type=content_type)

    assert response.status_code in {400, 404}
    assert "Nothing was stored" in response.text or "not be understood" in response.text


def test_ten_thousand_fields_are_refused(
    app: Flask, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    worker = new_worker(app, engine, "ada")
    fields = {"assignmentId": accepted(worker, hit["HITId"]), **{f"f{n}": "x" for n in range(10_000)}}

    response = app.test_client().post("/mturk/externalSubmit", data=fields)

    assert response.status_code == 413
