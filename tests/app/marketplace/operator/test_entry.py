"""Signing in to the operator console, and out."""

from __future__ import annotations

from flask import Flask

from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Visitor
from tests.app.marketplace.operator.conftest import OPERATOR_PASSWORD

ROOT = Actor.command_line("root")


def test_a_wrong_password_is_refused_and_limited(app: Flask, engine: Marketplace) -> None:
    engine.add_operator("olga", OPERATOR_PASSWORD, by=ROOT)
    visitor = Visitor(app.test_client())
    visitor.get("/operator/sign-in")

    codes = [visitor.post("/operator/sign-in", {"name": "olga", "password": "wrong"}).status_code for _ in range(12)]

    assert codes[0] == 422
    assert codes[-1] == 429


def test_other_spellings_of_a_name_are_not_other_accounts_to_the_limit(app: Flask, engine: Marketplace) -> None:
    engine.add_operator("olga", OPERATOR_PASSWORD, by=ROOT)
    codes = []
    for number in range(11):
        visitor = Visitor(app.test_client())
        visitor.client.environ_base["REMOTE_ADDR"] = f"192.0.2.{number}"
        visitor.get("/operator/sign-in")
        name = "olga" if number % 2 else "ol\uff47a"
        codes.append(visitor.post("/operator/sign-in", {"name": name, "password": "wrong"}).status_code)

    assert codes == [422] * 10 + [429]


def test_signing_out_ends_it_and_a_forged_form_changes_nothing(operator: Visitor) -> None:
    assert operator.client.post("/operator/sign-out", data={"csrf_token": "forged"}).status_code == 400
    assert operator.get("/operator/").request.path == "/operator/"
    operator.post("/operator/sign-out")

    assert operator.get("/operator/").request.path == "/operator/sign-in"
