"""Who may frame what, and what a page may load."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from hits.models import Hit
from tests.app.conftest import SITE, ask, open_page


def policy(response) -> dict[str, str]:
    parts = response.headers["Content-Security-Policy"].split("; ")
    return dict(part.split(" ", 1) for part in parts)


def test_a_hit_page_may_be_framed_by_the_worker_site_only_and_posts_to_it(client: FlaskClient, hit: Hit) -> None:
    response = open_page(client, hit)

    assert policy(response)["frame-ancestors"] == SITE
    assert policy(response)["form-action"] == f"'self' {SITE}"
    assert policy(response)["default-src"] == "'none'"
    assert policy(response)["script-src"] == "'self'"
    assert policy(response)["style-src"] == "'self'"
    assert "X-Frame-Options" not in response.headers


@pytest.mark.parametrize("path", ["/work/nowhere", "/work/attempts", "/validate/nowhere", "/work/a/b/c"])
def test_an_error_inside_the_frame_may_be_framed_too(client: FlaskClient, path: str) -> None:
    response = client.get(path)

    assert response.status_code >= 400
    assert policy(response)["frame-ancestors"] == SITE


@pytest.mark.parametrize("path", ["/staff/sign-in", "/rounds", "/healthz", "/nowhere", "/worker"])
def test_every_other_page_may_be_framed_by_nobody(client: FlaskClient, path: str) -> None:
    response = client.get(path)

    assert policy(response)["frame-ancestors"] == "'none'"
    assert policy(response)["form-action"] == "'self'"
    assert response.headers["X-Frame-Options"] == "DENY"


def test_every_answer_is_sniffed_referred_and_stored_by_nobody(client: FlaskClient, hit: Hit, token: str) -> None:
    answers = [open_page(client, hit), ask(client, token, "I am sad."), client.get("/rounds"), client.get("/nowhere")]

    for answer in answers:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"


def test_files_are_asked_about_again_each_time(client: FlaskClient) -> None:
    with client.get("/static/js/hit.js") as response:
        assert response.headers["Cache-Control"] == "no-cache"
