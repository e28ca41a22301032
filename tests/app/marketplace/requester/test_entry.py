"""Signing in to the requester console, and out."""

from __future__ import annotations

import pytest

from tests.app.marketplace.conftest import Account, Visitor


def test_a_wrong_password_is_refused_and_limited(visitor: Visitor, account: Account) -> None:
    visitor.get("/requester/sign-in")

    answers = [
        visitor.post("/requester/sign-in", {"email": "lab@example.org", "password": "wrong"}).status_code
        for _ in range(11)
    ]

    assert answers == [422] * 10 + [429]


@pytest.mark.parametrize("path", ["/requester/", "/requester/account"])
def test_the_console_needs_signing_in(visitor: Visitor, path: str) -> None:
    assert visitor.client.get(path).location.startswith("/requester/sign-in")


def test_signing_out_ends_it(console: Visitor) -> None:
    console.post("/requester/sign-out")

    assert console.client.get("/requester/").status_code == 303


def test_a_forged_sign_out_is_refused(console: Visitor) -> None:
    assert console.client.post("/requester/sign-out", data={"csrf_token": "forged"}).status_code == 400
    assert console.client.get("/requester/").status_code == 200
