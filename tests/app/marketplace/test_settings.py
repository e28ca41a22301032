"""The environment is read once, completely, and never guessed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from app.marketplace.settings import Settings, SettingsMissing, origin, origin_text, settings_from_environment
from hits.marketplace.transports import transports

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "DATABASE_URL",
        "SECRET_KEY",
        "FRAME_SECRET",
        "SITE_URL",
        "CONTENT_URL",
        "ALLOWED_HOSTS",
        "ALLOW_HTTP_LOOPBACK",
    ):
        monkeypatch.delenv(f"MARKETPLACE_{name}", raising=False)


def test_a_missing_secret_stops_the_start_and_every_missing_variable_is_named() -> None:
    with pytest.raises(SettingsMissing) as caught:
        settings_from_environment()

    assert "MARKETPLACE_SECRET_KEY is not set" in str(caught.value)
    assert "MARKETPLACE_DATABASE_URL is not set" in str(caught.value)


def test_a_short_secret_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKETPLACE_DATABASE_URL", "sqlite://")
    monkeypatch.setenv("MARKETPLACE_SECRET_KEY", "tooshortsecret")

    with pytest.raises(SettingsMissing, match="at least 32 characters") as caught:
        settings_from_environment()

    assert "tooshortsecret" not in str(caught.value)


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKETPLACE_DATABASE_URL", "sqlite://")
    monkeypatch.setenv("MARKETPLACE_SECRET_KEY", SECRET)
    monkeypatch.setenv("MARKETPLACE_SITE_URL", "https://work.example.org/")
    monkeypatch.setenv("MARKETPLACE_ALLOWED_HOSTS", "work.internal, 10.0.0.5")

    settings = settings_from_environment()

    assert settings.site_url == "https://work.example.org"
    assert settings.content_origin is None
    assert settings.hosts == ("work.internal", "10.0.0.5", "work.example.org")
    assert not settings.http_loopback_allowed


def test_plain_http_frames_are_for_a_site_on_loopback() -> None:
    local = Settings(database_url="sqlite://", secret_key=SecretStr(SECRET))

    assert local.http_loopback_allowed
    assert local.engine_settings().allow_http_loopback
    with pytest.raises(ValidationError, match="needs a site on loopback"):
        Settings(
            database_url="sqlite://",
            secret_key=SecretStr(SECRET),
            site_url="https://work.example.org",
            allow_http_loopback=True,
        )


@pytest.mark.parametrize(
    ("site_url", "content_url", "origin"),
    [
        ("http://127.0.0.1:8000", None, "http://localhost:8000"),
        ("http://localhost:8000", None, "http://127.0.0.1:8000"),
        ("http://[::1]", None, "http://localhost"),
        ("https://work.example.org", None, None),
        ("https://work.example.org", "", None),
        ("https://work.example.org", "https://Hits.example.net/", "https://hits.example.net"),
    ],
)
def test_requesters_html_has_an_origin_of_its_own(site_url: str, content_url: str | None, origin: str | None) -> None:
    settings = Settings(
        database_url="sqlite://", secret_key=SecretStr(SECRET), site_url=site_url, content_url=content_url
    )

    assert settings.content_origin == origin
    assert settings.engine_settings().content_origin == origin
    assert origin is None or origin.partition("//")[2].split(":")[0] in settings.hosts


@pytest.mark.parametrize("content_url", ["https://work.example.org", "https://work.example.org:8443"])
def test_the_second_origin_is_no_host_of_the_site(content_url: str) -> None:
    with pytest.raises(ValidationError, match="a host name of its own"):
        Settings(
            database_url="sqlite://",
            secret_key=SecretStr(SECRET),
            site_url="https://work.example.org",
            content_url=content_url,
        )


def test_the_keys_of_sessions_and_store_differ_and_stay_the_same() -> None:
    settings = Settings(database_url="sqlite://", secret_key=SecretStr(SECRET))

    assert settings.derived_key("sessions") != settings.derived_key("access-key secrets")
    assert settings.engine_settings().secret_key == settings.engine_settings().secret_key


@pytest.mark.parametrize("url", ["ftp://x", "http://", "https://work.example.org/site", "work.example.org"])
def test_a_site_address_that_is_no_origin_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="an origin such as"):
        Settings(database_url="sqlite://", secret_key=SecretStr(SECRET), site_url=url)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://Example.org/hit?x=1", "https://example.org"),
        ("https://example.org:443/", "https://example.org"),
        ("http://localhost:8001/hit", "http://localhost:8001"),
        ("http://[::1]:8001/hit", "http://[::1]:8001"),
    ],
)
def test_an_origin_is_written_as_browsers_write_it(url: str, text: str) -> None:
    assert origin_text(url) == text
    assert origin(url) == origin(text)


def whole(**changes: Any) -> Settings:
    return Settings(database_url="sqlite://", secret_key=SecretStr("k" * 32), **changes)


def test_by_default_nothing_leaves_but_webhooks_and_nobody_signs_up_uninvited() -> None:
    settings = whole()

    assert (settings.sign_up, settings.sends_mail) == ("invitation", False)
    assert set(transports(settings.delivery_settings())) == {"Webhook"}


def test_what_is_set_reaches_the_process_that_delivers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "DATABASE_URL": "sqlite://",
        "SECRET_KEY": "k" * 32,
        "SMTP_HOST": "mail.example.org",
        "SMTP_SECURITY": "starttls",
        "SMTP_USER": "market",
        "SMTP_PASSWORD": "hidden",
        "MAIL_FROM": "Market <m@example.org>",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hidden",
        "WEBHOOKS": "0",
        "WEBHOOK_CA_FILE": "",
    }.items():
        monkeypatch.setenv(f"MARKETPLACE_{name}", value)

    settings = settings_from_environment()

    assert settings.engine_settings().sends_mail
    assert set(transports(settings.delivery_settings())) == {"SQS", "SNS", "Email"}
    assert "hidden" not in repr(settings) + repr(settings.delivery_settings())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"smtp_host": "mail.example.org"}, "go together"),
        ({"mail_from": "m@example.org"}, "go together"),
        ({"smtp_host": "127.0.0.1", "mail_from": "nobody"}, "a sender such as"),
        ({"smtp_host": "127.0.0.1", "mail_from": "m@example.org", "smtp_user": "m"}, "go together"),
        (
            {"smtp_host": "h.example", "mail_from": "m@h.example", "smtp_user": "m", "smtp_password": SecretStr("p")},
            "for all to read",
        ),
        ({"aws_access_key_id": "key"}, "go together"),
        ({"webhook_ca_file": "/nowhere.pem"}, "PEM form"),
        ({"sign_up": "everybody"}, "invitation"),
        ({"sign_up_limit": "many"}, "limits such as"),
        ({"mail_limit": ""}, "limits such as"),
        ({"webhook_seconds": 0}, "greater than 0"),
        ({"smtp_port": 70000}, "65535"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        whole(**changes)
