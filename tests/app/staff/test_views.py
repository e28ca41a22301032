"""Signing in and out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from app.models import StaffUser
from tests.app.conftest import STAFF_PASSWORD, csrf_in, sign_in

Staff = Callable[..., StaffUser]


def test_signing_in_sets_a_cookie_of_its_own_and_leads_on(client: FlaskClient, staff: Staff) -> None:
    staff()

    response = sign_in(client, next="/rounds/sentiment/1")

    assert response.status_code == 302
    assert response.location == "/rounds/sentiment/1"
    cookie = response.headers["Set-Cookie"]
    assert cookie.startswith("dynahit_staff=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert client.get("/rounds").status_code == 200


def test_signing_in_never_leads_to_another_site(client: FlaskClient, staff: Staff) -> None:
    staff()

    assert sign_in(client, next="//evil.example").location == "/"


@pytest.mark.parametrize(
    ("roles", "home"),
    [(("requester",), "/rounds"), (("finance",), "/finance"), (("finance", "requester"), "/rounds")],
)
def test_the_front_door_leads_to_the_pages_of_ones_role(
    client: FlaskClient, staff: Staff, roles: tuple[str, ...], home: str
) -> None:
    staff(roles=roles)
    sign_in(client)

    assert client.get("/").location == home
    assert client.get(home).status_code == 200


@pytest.mark.parametrize(
    ("name", "password"), [("robin", "wrong"), ("nobody", STAFF_PASSWORD), ("ro\0bin", STAFF_PASSWORD), ("", "")]
)
def test_a_wrong_name_and_a_wrong_password_look_the_same(
    client: FlaskClient, staff: Staff, name: str, password: str
) -> None:
    staff()

    response = sign_in(client, name=name, password=password)

    assert response.status_code == 403
    assert "do not fit together" in response.text
    assert client.get("/rounds").status_code == 302


def test_guessing_is_slowed_down(client: FlaskClient, staff: Staff) -> None:
    staff()
    token = csrf_in(client.get("/staff/sign-in"))
    answers = [
        client.post("/staff/sign-in", data={"csrf_token": token, "name": "robin", "password": "x"}).status_code
        for _ in range(11)
    ]

    assert answers == [403] * 10 + [429]


def test_a_forged_sign_in_form_is_refused(client: FlaskClient, staff: Staff) -> None:
    staff()

    response = client.post("/staff/sign-in", data={"name": "robin", "password": STAFF_PASSWORD})

    assert response.status_code == 400
    assert "This form is too old" in response.text


def test_signing_out_ends_the_session_and_needs_its_form(client: FlaskClient, staff: Staff) -> None:
    staff()
    sign_in(client)

    forged = client.post("/staff/sign-out")
    assert forged.status_code == 400
    assert client.get("/rounds").status_code == 200

    response = client.post("/staff/sign-out", data={"csrf_token": csrf_in(client.get("/rounds"))})
    assert response.status_code == 302
    assert client.get("/rounds").status_code == 302
