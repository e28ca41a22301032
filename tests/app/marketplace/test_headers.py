"""Each answer carries a strict policy; frames are allowed by name and on their pages only."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Visitor, accepted


def policy(response: Any) -> dict[str, str]:
    parts = (part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
    return dict(parts)


@pytest.mark.parametrize(
    "path", ["/hits", "/work", "/dashboard", "/profile", "/nowhere", "/requester/sign-in", "/healthz"]
)
def test_a_page_may_not_be_framed_nor_frame_anything(worker: Visitor, path: str) -> None:
    response = worker.client.get(path)

    assert policy(response)["frame-ancestors"] == "'none'"
    assert policy(response)["frame-src"] == "'none'"
    assert policy(response)["script-src"] == "'self'"
    assert policy(response)["style-src"] == "'self'"
    assert policy(response)["default-src"] == "'none'"
    assert response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"


def test_work_and_preview_allow_the_hits_origin_alone(worker: Visitor, hit: dict[str, Any]) -> None:
    preview = worker.client.get(f"/hits/{hit['HITId']}")
    work = worker.client.get(f"/work/{accepted(worker, hit['HITId'])}")

    for response in (preview, work):
        assert policy(response)["frame-src"] == "'self' http://localhost:8001"
        assert policy(response)["frame-ancestors"] == "'none'"


def test_no_page_has_inline_script_or_style(worker: Visitor, hit: dict[str, Any]) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    paths = ["/sign-in", "/join", "/hits", f"/hits/{hit['HITId']}", "/work", f"/work/{assignment_id}", "/dashboard"]

    for path in paths:
        worker.get(path)
        assert worker.page.find_all("style") == []
        assert worker.page.find_all(style=True) == []
        assert [script for script in worker.page.find_all("script") if not script.get("src")] == []
        assert not any(name.startswith("on") for tag in worker.page.find_all(True) for name in tag.attrs)


@pytest.mark.parametrize("path", ["/sign-in", "/nowhere", "/requester/sign-in", "/healthz", "/static/base.css"])
def test_a_site_with_an_https_address_is_asked_for_by_https_only(engine: Marketplace, path: str) -> None:
    settings = Settings(
        database_url="sqlite://",
        secret_key=SecretStr("0123456789abcdef0123456789abcdef"),
        site_url="https://work.example.org",
        content_url="https://hits.example.net",
    )
    client = create_app(settings, marketplace=engine).test_client()

    response = client.get(path, base_url="https://work.example.org")
    content = client.get("/hit-content/3X", base_url="https://hits.example.net")
    signed = client.post("/", headers={"x-amz-target": "MTurkRequesterServiceV20170117.GetAccountBalance"})

    for answer in (response, content, signed):
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_a_site_without_https_does_not_ask_for_it(worker: Visitor) -> None:
    for path in ("/hits", "/nowhere", "/healthz"):
        assert "Strict-Transport-Security" not in worker.client.get(path).headers
