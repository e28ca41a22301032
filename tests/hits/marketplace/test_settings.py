"""The operator's settings."""

from __future__ import annotations

import pytest

from hits.marketplace.errors import OperatorError
from hits.marketplace.settings import MarketplaceSettings


def test_secrets_are_not_shown() -> None:
    settings = MarketplaceSettings.for_tests(frame_secret="between us")

    assert "between us" not in repr(settings)
    assert settings.secret_key not in repr(settings)


def test_plain_http_is_refused_unless_asked_for() -> None:
    assert not MarketplaceSettings(secret_key=MarketplaceSettings.new_secret_key()).allow_http_loopback


def test_the_address_to_submit_to_has_no_trailing_slash() -> None:
    settings = MarketplaceSettings(
        secret_key=MarketplaceSettings.new_secret_key(), site_url="https://work.example.org/"
    )

    assert settings.turk_submit_to == "https://work.example.org"


@pytest.mark.parametrize("key", ["", "short", "x" * 44])
def test_keys_that_cannot_encrypt_are_refused(key: str) -> None:
    with pytest.raises(OperatorError, match="secret_key"):
        MarketplaceSettings(secret_key=key)


@pytest.mark.parametrize("url", ["work.example.org", "https://work.example.org/path"])
def test_addresses_that_are_no_origin_are_refused(url: str) -> None:
    with pytest.raises(OperatorError, match="site_url"):
        MarketplaceSettings(secret_key=MarketplaceSettings.new_secret_key(), site_url=url)
    with pytest.raises(OperatorError, match="content_url"):
        MarketplaceSettings(secret_key=MarketplaceSettings.new_secret_key(), content_url=url)


def test_html_has_an_origin_of_its_own_where_one_is_named() -> None:
    key = MarketplaceSettings.new_secret_key()

    assert MarketplaceSettings(secret_key=key, content_url="https://c.example.org/").content_origin == (
        "https://c.example.org"
    )
    assert MarketplaceSettings(secret_key=key, site_url="https://w.example.org").content_origin is None
