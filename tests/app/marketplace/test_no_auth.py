"""A marketplace without authentication is open on loopback, and on nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from app.marketplace.factory import create_app
from app.marketplace.no_auth import PLAY_MONEY, NoAuthRefused
from app.marketplace.settings import Settings
from hits.marketplace.clock import TestClock
from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, accepted

TARGET = {"X-Amz-Target": "MTurkRequesterServiceV20170117.GetAccountBalance", "Content-Type": "application/json"}
LOCAL = {"REMOTE_ADDR": "127.0.0.1", "SERVER_NAME": "127.0.0.1"}


@pytest.fixture
def opened(settings: Settings, engine: Marketplace) -> Flask:
    return create_app(settings, marketplace=engine, insecure_no_auth=True)


def ask(app: Flask, headers: dict[str, str] | None = None, **ends: str) -> Any:
    return app.test_client().post("/", json={}, headers={**TARGET, **(headers or {})}, environ_overrides=LOCAL | ends)


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "AWS4-HMAC-SHA256 Credential=none"}, {"Authorization": "garbage"}, {"X-Amz-Date": "never"}],
)
def test_any_key_or_none_acts_for_the_one_requester(opened: Flask, headers: dict[str, str]) -> None:
    answer = ask(opened, headers)

    assert answer.status_code == 200, answer.text
    assert answer.get_json(force=True) == {"AvailableBalance": f"{PLAY_MONEY:.2f}", "OnHoldBalance": "0.00"}


def test_by_default_a_signature_is_needed(app: Flask) -> None:
    assert ask(app).get_json(force=True)["__type"] == "MissingAuthenticationTokenException"


@pytest.mark.parametrize(
    "ends", [{"SERVER_NAME": "0.0.0.0"}, {"SERVER_NAME": "::"}, {"SERVER_NAME": "work"}, {"REMOTE_ADDR": "192.0.2.7"}]
)
def test_a_server_or_a_caller_beyond_loopback_needs_a_signature_all_the_same(
    opened: Flask, ends: dict[str, str]
) -> None:
    assert ask(opened, **ends).status_code == 400


def test_a_web_page_on_this_machine_cannot_spend_the_money(opened: Flask) -> None:
    assert ask(opened, {"Origin": "http://127.0.0.1:8000"}).status_code == 400


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via"])
def test_what_came_through_a_proxy_needs_a_signature_all_the_same(opened: Flask, header: str) -> None:
    assert ask(opened, {header: "192.0.2.7"}).status_code == 400


@pytest.mark.parametrize("changes", [{"site_url": "https://work.example.org"}, {"proxies": 1}])
def test_a_site_that_others_reach_does_not_start(
    settings: Settings, engine: Marketplace, changes: dict[str, Any]
) -> None:
    with pytest.raises(NoAuthRefused, match="nobody else reaches"):
        create_app(settings.model_copy(update=changes), marketplace=engine, insecure_no_auth=True)


def test_the_environment_alone_opens_nothing(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, engine: Marketplace
) -> None:
    for name in ("INSECURE_NO_AUTH", "NO_AUTH"):
        monkeypatch.setenv(f"MARKETPLACE_{name}", "1")

    assert ask(create_app(settings, marketplace=engine)).status_code == 400


def test_a_database_that_workers_are_paid_from_is_not_opened(
    settings: Settings, engine: Marketplace, clock: TestClock, account: Account, worker: Visitor, hit: dict[str, Any]
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    engine.external_submit(assignment_id, {"a": ["1"]})
    engine.call(account.requester_id, "ApproveAssignment", {"AssignmentId": assignment_id})
    create_app(settings, marketplace=engine, insecure_no_auth=True)
    clock.advance(seconds=1)
    engine.draft_payout_run(by=Actor.operator("olga"))

    with pytest.raises(NoAuthRefused, match="Workers are paid from this database"):
        create_app(settings, marketplace=engine, insecure_no_auth=True)
