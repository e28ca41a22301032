"""Cookies and who is signed in."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from flask import Flask
from pydantic import SecretStr

from app.marketplace.factory import create_app
from app.marketplace.sessions import safe_next
from app.marketplace.settings import Settings
from hits.marketplace.clock import TestClock
from hits.marketplace.console_views import Actor
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


class Door(NamedTuple):
    """One audience's cookie, and the pages behind it."""

    cookie: str
    path: str
    inside: str
    sign_in: str
    sign_out: str
    form: dict[str, str]


DOORS = [
    Door("marketplace_session", "/", "/hits", "/sign-in", "/sign-out", {"user_name": "ada", "password": PASSWORD}),
    Door(
        "marketplace_requester",
        "/requester",
        "/requester/",
        "/requester/sign-in",
        "/requester/sign-out",
        {"email": "lab@example.org", "password": PASSWORD},
    ),
    Door(
        "marketplace_operator",
        "/operator",
        "/operator/",
        "/operator/sign-in",
        "/operator/sign-out",
        {"name": "olga", "password": PASSWORD},
    ),
]


@pytest.fixture
def everybody(worker: Visitor, account: Account, engine: Marketplace) -> None:
    engine.add_operator("olga", PASSWORD, by=Actor.command_line("test"))


def signed_in(app: Flask, door: Door) -> Visitor:
    visitor = Visitor(app.test_client())
    visitor.get(door.sign_in)
    visitor.post(door.sign_in, door.form)
    assert visitor.client.get(door.inside).status_code == 200
    return visitor


def copy_of(app: Flask, visitor: Visitor, door: Door) -> Visitor:
    stolen = visitor.client.get_cookie(door.cookie, path=door.path)
    assert stolen is not None
    thief = Visitor(app.test_client())
    thief.client.set_cookie(door.cookie, stolen.value, path=door.path)
    assert thief.client.get(door.inside).status_code == 200
    return thief


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.cookie)
@pytest.mark.usefixtures("everybody")
def test_a_cookie_copied_before_signing_out_opens_nothing_afterwards(app: Flask, door: Door) -> None:
    visitor, other_device = signed_in(app, door), signed_in(app, door)
    thief, late_thief = copy_of(app, visitor, door), copy_of(app, visitor, door)

    visitor.get(door.inside)
    visitor.post(door.sign_out)

    assert thief.client.get(door.inside).location.startswith(door.sign_in)
    # The answer above ended the thief's session by a cookie of its own; whoever kept the first one sends it again.
    assert late_thief.client.get(door.inside).location.startswith(door.sign_in)
    assert other_device.client.get(door.inside).status_code == 200


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.cookie)
@pytest.mark.usefixtures("everybody")
def test_a_cookie_of_before_is_worth_nothing_once_one_signs_in_again(app: Flask, door: Door) -> None:
    visitor = signed_in(app, door)
    thief = copy_of(app, visitor, door)

    visitor.get(door.sign_in)
    visitor.post(door.sign_in, door.form)

    assert visitor.client.get(door.inside).status_code == 200
    assert thief.client.get(door.inside).location.startswith(door.sign_in)


@pytest.mark.usefixtures("everybody")
def test_an_operator_who_gives_the_password_again_ends_the_copied_cookie(app: Flask) -> None:
    door = DOORS[2]
    visitor = signed_in(app, door)
    thief = copy_of(app, visitor, door)

    visitor.get("/operator/confirm-password")
    visitor.post("/operator/confirm-password", {"password": PASSWORD})

    assert visitor.client.get(door.inside).status_code == 200
    assert thief.client.get(door.inside).location.startswith(door.sign_in)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.cookie)
@pytest.mark.usefixtures("everybody")
def test_a_cookie_copied_before_a_new_password_opens_nothing(
    app: Flask, door: Door, engine: Marketplace, clock: TestClock
) -> None:
    visitor = signed_in(app, door)
    thief = copy_of(app, visitor, door)
    new = "a new password of length"
    clock.advance(seconds=1)
    change = {"/hits": "/profile/password", "/requester/": "/requester/password/change"}.get(door.inside)

    if change is None:
        engine.set_operator_password("olga", new, by=Actor.command_line("test"))
    else:
        visitor.get(change)
        assert visitor.post(change, {"old": PASSWORD, "password": new}).status_code == 200
        assert visitor.client.get(door.inside).status_code == 200

    assert thief.client.get(door.inside).location.startswith(door.sign_in)


@pytest.mark.usefixtures("everybody")
def test_a_session_without_a_key_from_before_they_had_one_has_to_begin_again(app: Flask, worker: Visitor) -> None:
    with worker.client.session_transaction() as stored:
        del stored["key"]

    assert worker.client.get("/hits").location.startswith("/sign-in")
