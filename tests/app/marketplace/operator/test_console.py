"""Who reaches the operator console, for how long, and what needs the password again."""

from __future__ import annotations

import pytest
from flask import Flask

from hits.marketplace.clock import TestClock
from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import PASSWORD, Account, Visitor
from tests.app.marketplace.operator.conftest import OPERATOR_PASSWORD

ROOT = Actor.command_line("root")


def test_every_address_asks_for_an_operators_sign_in(
    app: Flask, engine: Marketplace, account: Account, worker: Visitor
) -> None:
    requester = Visitor(app.test_client())
    requester.get("/requester/sign-in")
    requester.post("/requester/sign-in", {"email": "lab@example.org", "password": PASSWORD})
    tried = 0
    for rule in app.url_map.iter_rules():
        if not rule.endpoint.startswith("operator.") or rule.endpoint in {"operator.sign_in", "operator.sign_out"}:
            continue
        _host, path = rule.build(dict.fromkeys(rule.arguments, "3ABC")) or ("", "")
        for visitor in (worker, requester, Visitor(app.test_client())):
            visitor.get("/operator/sign-in")
            for method in (rule.methods or set()) & {"GET", "POST"}:
                form = {"csrf_token": visitor.token} if method == "POST" else None
                response = visitor.client.open(path, method=method, data=form)
                assert response.status_code == 303, (method, path)
                assert response.location.startswith("/operator/sign-in"), (method, path)
                tried += 1
    assert tried > 60


@pytest.mark.parametrize("end", ["password", "close", "age"])
def test_a_session_ends_with_its_password_its_account_and_its_age(
    operator: Visitor, engine: Marketplace, clock: TestClock, end: str
) -> None:
    if end == "password":
        clock.advance(seconds=1)
        engine.set_operator_password("olga", "another long password", by=ROOT)
    elif end == "close":
        engine.close_operator("olga", by=ROOT)
    else:
        clock.advance(seconds=12 * 3600)

    response = operator.get("/operator/workers")

    assert response.request.path == "/operator/sign-in"
    assert "You have been signed out" in operator.text()


def test_money_needs_the_password_of_the_last_quarter_of_an_hour(
    operator: Visitor, engine: Marketplace, account: Account, clock: TestClock
) -> None:
    address = f"/operator/requesters/{account.requester_id}/top-up"
    assert operator.get(address).status_code == 200
    clock.advance(seconds=15 * 60)

    operator.post(address, {"amount": "5.00", "token": "t" * 20, "step": "sure"})
    assert f"{engine.balance(account.requester_id).deposited}" == "100.00"
    response = operator.get(address)
    assert response.request.path == "/operator/confirm-password"
    wrong = operator.post(response.request.full_path, {"password": "wrong"})
    assert wrong.status_code == 422
    assert operator.get("/operator/workers").status_code == 200, "what moves nothing stays open"
    operator.get(address)
    after = operator.post(f"/operator/confirm-password?next={address}", {"password": OPERATOR_PASSWORD})

    assert after.request.path == address


def test_the_three_audiences_know_nothing_of_each_other(operator: Visitor) -> None:
    assert operator.get("/hits").request.path == "/sign-in"
    assert operator.get("/requester/").request.path == "/requester/sign-in"
    cookies = {cookie.key: cookie.path for cookie in operator.client._cookies.values()}
    assert cookies["marketplace_operator"] == "/operator"


def test_what_does_not_exist_is_not_found_in_the_consoles_own_frame(operator: Visitor) -> None:
    for path in ("workers/A0", "requesters/A0", "disputes/3X", "payouts/3X", "payouts/3X.csv", "hits/3X/take-down"):
        assert operator.get(f"/operator/{path}").status_code == 404, path
        assert operator.page.find("a", string="Audit log") is not None
    assert operator.get("/operator/nonsense").status_code == 404
