"""Cookies and who is signed in."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from pydantic import SecretStr

from app.marketplace.factory import create_app
from app.marketplace.sessions import safe_next
from app.marketplace.settings import Settings
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import PASSWORD, Account, Visitor


def cookies(response: Any) -> list[str]:
    return response.headers.getlist("Set-Cookie")


def test_the_workers_cookie_is_http_only_lax_and_the_sites_own(visitor: Visitor, engine: Marketplace) -> None:
    code = engine.create_invitation("test")
    visitor.get(f"/join?code={code}")

    response = visitor.post("/join", {"code": code, "user_name": "ada", "password": PASSWORD}, follow=False)

    (cookie,) = cookies(response)
    assert cookie.startswith("marketplace_session=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie


def test_the_cookie_is_secure_on_https(engine: Marketplace) -> None:
    settings = Settings(
        database_url="sqlite://",
        secret_key=SecretStr("0123456789abcdef0123456789abcdef"),
        site_url="https://work.example.org",
    )
    client = create_app(settings, marketplace=engine).test_client()

    response = client.get("/sign-in", base_url="https://work.example.org")

    assert all("Secure" in cookie for cookie in cookies(response))
    assert cookies(response)


def test_a_requester_is_not_a_worker_and_a_worker_not_a_requester(
    visitor: Visitor, worker: Visitor, account: Account
) -> None:
    visitor.get("/requester/sign-in")
    response = visitor.post("/requester/sign-in", {"email": "lab@example.org", "password": PASSWORD}, follow=False)

    (cookie,) = cookies(response)
    assert cookie.startswith("marketplace_requester=")
    assert "Path=/requester" in cookie
    assert visitor.client.get("/requester/").status_code == 200
    assert visitor.client.get("/hits").location.startswith("/sign-in")
    assert worker.client.get("/requester/").location.startswith("/requester/sign-in")


def test_a_workers_cookie_under_the_consoles_name_is_worth_nothing(worker: Visitor, app: Flask) -> None:
    stolen = worker.client.get_cookie("marketplace_session")
    assert stolen is not None
    other = app.test_client()
    other.set_cookie("marketplace_requester", stolen.value, path="/requester")

    assert other.get("/requester/").location.startswith("/requester/sign-in")


def test_signing_in_ends_the_older_session_and_its_token(visitor: Visitor, worker: Visitor) -> None:
    visitor.get("/sign-in")
    before = visitor.token

    visitor.post("/sign-in", {"user_name": "ada", "password": PASSWORD})

    assert visitor.token != before
    assert visitor.client.post("/sign-out", data={"csrf_token": before}).status_code == 400


@pytest.mark.parametrize("wanted", ["https://evil.example", "//evil.example", "/\\evil.example", "hits", "/x\r\ny"])
def test_sign_in_leads_to_this_site_only(app: Flask, wanted: str) -> None:
    with app.test_request_context("/sign-in", query_string={"next": wanted}):
        assert safe_next("/hits") == "/hits"


def test_sign_in_leads_back_to_the_page_that_was_asked_for(visitor: Visitor, worker: Visitor) -> None:
    response = visitor.client.get("/dashboard")
    assert response.location == "/sign-in?next=/dashboard"

    visitor.get(response.location)
    response = visitor.post(response.location, {"user_name": "ada", "password": PASSWORD}, follow=False)

    assert response.location == "/dashboard"


def test_a_session_that_outlived_its_account_leads_to_sign_in(
    settings: Settings, worker: Visitor, visitor: Visitor, account: Account
) -> None:
    visitor.get("/requester/sign-in")
    visitor.post("/requester/sign-in", {"email": "lab@example.org", "password": PASSWORD})
    empty = create_app(settings)
    for signed_in, page, sign_in in [(worker, "/hits", "/sign-in"), (visitor, "/requester/", "/requester/sign-in")]:
        stranger = Visitor(empty.test_client())
        for name, path in [("marketplace_session", "/"), ("marketplace_requester", "/requester")]:
            cookie = signed_in.client.get_cookie(name, path=path)
            if cookie is not None:
                stranger.client.set_cookie(name, cookie.value, path=path)

        response = stranger.get(page)

        assert response.request.path == sign_in
        assert "does not exist (any more)" in stranger.text()
        assert stranger.client.get(page).status_code == 303
    empty.extensions["marketplace"].close()
