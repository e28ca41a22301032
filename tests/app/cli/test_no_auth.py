"""`--insecure-no-auth` stays on loopback, whatever the address is called."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import SecretStr

from app.cli import no_auth
from app.cli.no_auth import loopback_address, open_to_all
from app.marketplace.no_auth import PLAY_MONEY
from app.marketplace.settings import Settings
from hits.marketplace.engine import Marketplace
from hits.marketplace.tables import PayoutRunRow


def settings(tmp_path: Path, **changes: Any) -> Settings:
    given = {"database_url": f"sqlite:///{tmp_path / 'm.db'}", "secret_key": SecretStr("k" * 32), **changes}
    return Settings(**given)


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name stand for these addresses."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]
    monkeypatch.setattr(no_auth.socket, "getaddrinfo", lambda *_parts, **_more: found)


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("127.9.9.9", "127.9.9.9"), ("::1", "::1")])
def test_loopback_addresses_stand_for_themselves(host: str, address: str) -> None:
    assert loopback_address(host) == address


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "::ffff:10.0.0.1", "no-such-host.invalid"])
def test_what_others_can_reach_is_not_loopback(host: str) -> None:
    assert loopback_address(host) is None


@pytest.mark.parametrize("addresses", [("203.0.113.7",), ("127.0.0.1", "203.0.113.7"), ("::1", "2001:db8::1")])
def test_a_name_that_leads_elsewhere_is_not_loopback(monkeypatch: pytest.MonkeyPatch, addresses: tuple[str]) -> None:
    resolving(monkeypatch, *addresses)

    assert loopback_address("localhost") is None


def test_a_name_is_listened_on_by_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    resolving(monkeypatch, "::1", "127.0.0.1")

    assert open_to_all("test-machine:8000", settings(tmp_path)) == "127.0.0.1:8000"


@pytest.mark.parametrize("bind", ["0.0.0.0:8000", "[::]:8000", ":8000", "8000", "10.0.0.1:80"])
def test_anything_else_is_refused_before_anything_is_made(bind: str, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="loopback only"):
        open_to_all(bind, settings(tmp_path))
    assert not (tmp_path / "m.db").exists()


@pytest.mark.parametrize("changes", [{"site_url": "https://work.example.org"}, {"proxies": 1}])
def test_a_site_that_others_may_reach_by_a_proxy_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="that nobody else reaches"):
        open_to_all("127.0.0.1:8000", settings(tmp_path, **changes))


def test_a_database_that_workers_are_paid_from_is_refused(tmp_path: Path) -> None:
    given = settings(tmp_path)
    open_to_all("127.0.0.1:8000", given)
    engine = Marketplace(given.database_url, settings=given.engine_settings())
    with engine.store.session(writes=True) as session:
        now = engine.clock.now()
        session.add(PayoutRunRow(run_id="3RUN", until=now, drafted_at=now, drafted_by="olga", state="Drafted"))
    engine.close()

    with pytest.raises(click.UsageError, match="MARKETPLACE_DATABASE_URL"):
        open_to_all("127.0.0.1:8000", given)


def test_it_warns_and_makes_one_requester_with_money_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = settings(tmp_path)

    assert open_to_all("127.0.0.1:8000", chosen) == "127.0.0.1:8000"
    assert "WARNING: no authentication" in capsys.readouterr().err
    open_to_all("[::1]:8000", chosen)

    engine = Marketplace(chosen.database_url, settings=chosen.engine_settings())
    (requester,) = engine.requesters()
    assert engine.balance(requester.requester_id).available == PLAY_MONEY
    engine.close()
