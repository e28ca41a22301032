"""The app as a whole: host names, health, failures."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask import Flask

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings, SettingsMissing
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Visitor


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:8000"])
def test_the_sites_own_hosts_are_answered(app: Flask, host: str) -> None:
    assert app.test_client().get("/healthz", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8000", ""])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_host_name_is_refused_for_pages_and_api(app: Flask, host: str, method: str) -> None:
    response = app.test_client().open(
        "/", method=method, headers={"Host": host, "X-Amz-Target": "MTurkRequesterServiceV20170117.ListHITs"}
    )

    assert response.status_code == 400
    assert "does not answer for the host name" in response.text


def test_health_asks_the_store(app: Flask, engine: Marketplace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert app.test_client().get("/healthz").text == "ok\n"

    def broken() -> int:
        raise RuntimeError("no store")

    monkeypatch.setattr(engine, "settle", broken)
    app.testing = False
    app.config["PROPAGATE_EXCEPTIONS"] = False
    assert app.test_client().get("/healthz").status_code == 500


def test_a_failure_is_a_page_in_words(worker: Visitor, app: Flask, engine: Marketplace, monkeypatch: Any) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(engine, "hit_groups", broken)
    app.testing = False
    app.config["PROPAGATE_EXCEPTIONS"] = False

    response = worker.get("/hits")

    assert response.status_code == 500
    assert "Something went wrong here" in worker.text()
    assert "secret detail" not in response.text


def test_without_settings_the_app_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARKETPLACE_SECRET_KEY", raising=False)

    with pytest.raises(SettingsMissing):
        create_app()


def test_every_page_of_a_person_is_guarded(app: Flask) -> None:
    public = {
        "worker.home",
        "worker.sign_in",
        "worker.join",
        "worker.sign_out",
        "worker.preview",
        "worker.preview_group",
        "static",
        "healthz",
        "submit.external_submit",
        # Its signed address is the key.
        "content.hit_content",
        "requester.sign_in",
        "requester.sign_out",
        "operator.sign_in",
        "operator.sign_out",
        # How people come in and get back in; the links out of mails carry their own key.
        "access.sign_up",
        "access.finish_sign_up",
        "access.forgotten",
        "access.requester_forgotten",
        "access.new_password",
        "access.requester_new_password",
        "access.confirm_address",
        "access.confirm_requester_address",
    }
    client = app.test_client()
    app.config["WTF_CSRF_ENABLED"] = False

    for rule in app.url_map.iter_rules():
        if rule.endpoint in public:
            continue
        path = re.sub("<entity:[a-z_]+>", "3A", rule.rule)
        for method in (rule.methods or set()) & {"GET", "POST"}:
            response = client.open(path, method=method)
            assert response.status_code == 303, (path, method)
            assert "sign-in" in response.location


def test_the_store_is_opened_from_the_settings(tmp_path: Any, settings: Settings) -> None:
    opened = create_app(settings.model_copy(update={"database_url": "sqlite://"}))

    assert opened.test_client().get("/healthz").status_code == 200
    opened.extensions["marketplace"].close()
