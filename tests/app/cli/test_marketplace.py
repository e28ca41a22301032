"""The marketplace's command line, run in process on a database of its own."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr

from app.cli import marketplace as cli
from app.marketplace.settings import Settings, settings_from_environment
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import hit_params

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MARKETPLACE_DATABASE_URL", f"sqlite:///{tmp_path / 'marketplace.db'}")
    monkeypatch.setenv("MARKETPLACE_SECRET_KEY", SECRET)
    monkeypatch.setenv("MARKETPLACE_SITE_URL", "http://127.0.0.1:8000")


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli.marketplace, list(arguments), input=stdin)


def run_json(*arguments: str, stdin: str | None = None) -> Any:
    result = run(*arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def requester_id() -> str:
    assert run("init").exit_code == 0
    return str(run_json("requester", "create", "Lab")["requester_id"])


def test_init_can_be_repeated() -> None:
    for _ in range(2):
        result = run("init")
        assert result.exit_code == 0, result.output


def test_without_a_secret_every_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARKETPLACE_SECRET_KEY")

    result = run("init")

    assert result.exit_code == 1
    assert "MARKETPLACE_SECRET_KEY is not set" in result.output


def test_an_invitation_is_an_address_that_registers_one_worker(requester_id: str) -> None:
    (made,) = run_json("invite", "--note", "for Ada")

    assert made["url"] == f"http://127.0.0.1:8000/join?code={made['code']}"
    settings = settings_from_environment()
    engine = Marketplace(settings.database_url, settings=settings.engine_settings())
    engine.register_worker(made["code"], "ada", "correct horse battery")
    engine.close()
    (listed,) = run_json("invitations")
    assert listed["used_at"] is not None
    assert listed["note"] == "for Ada"


def test_an_invitation_carries_grants(requester_id: str) -> None:
    settings = settings_from_environment()
    engine = Marketplace(settings.database_url, settings=settings.engine_settings())
    kind = engine.call(
        requester_id,
        "CreateQualificationType",
        {"Name": "Validator", "Description": "Validates", "QualificationTypeStatus": "Active"},
    )["QualificationType"]["QualificationTypeId"]
    engine.close()

    made = run_json("invite", "--grant", f"{kind}=1", "--count", "3")

    assert len({one["code"] for one in made}) == 3
    assert [one["grants"] for one in run_json("invitations")] == [{kind: 1}] * 3


@pytest.mark.parametrize("grant", ["3ABC", "=1", "3ABC=", "3ABC=one"])
def test_a_grant_of_another_form_is_refused(requester_id: str, grant: str) -> None:
    result = run("invite", "--grant", grant)

    assert result.exit_code == 2
    assert "QUALIFICATION_TYPE_ID=VALUE" in result.output
    assert run_json("invitations") == []


def test_a_grant_of_an_unknown_type_is_refused(requester_id: str) -> None:
    result = run("invite", "--grant", "3NOSUCHTYPE=1")

    assert result.exit_code == 1
    assert "3NOSUCHTYPE" in result.output


def test_a_top_up_arrives_and_a_wrong_one_does_not(requester_id: str) -> None:
    assert "$25.50 available" in run("top-up", "Lab", "25.50").output

    for amount in ("0", "-1", "0.001", "NaN", "Infinity", "many"):
        assert run("top-up", "--", "Lab", amount).exit_code != 0
    assert run_json("requester", "list") == [
        {"requester_id": requester_id, "name": "Lab", "email": None, "available": "25.50", "on_hold": "0.00"}
    ]


def test_an_unknown_requester_is_named(requester_id: str) -> None:
    result = run("top-up", "Nobody", "1.00")

    assert result.exit_code == 2
    assert "No requester is called 'Nobody'" in result.output


def test_a_secret_is_shown_once(requester_id: str) -> None:
    made = run_json("key", "create", "Lab")

    assert made["secret_access_key"] not in run("key", "list", "Lab").output
    assert made["secret_access_key"] not in run("key", "list", "Lab", "--json").output
    assert made["access_key_id"] in run("key", "list", "Lab").output


def test_a_revoked_key_is_no_longer_in_force(requester_id: str) -> None:
    made = run_json("key", "create", requester_id)

    assert run("key", "revoke", "Lab", made["access_key_id"]).exit_code == 0

    (listed,) = run_json("key", "list", "Lab")
    assert listed["revoked_at"] is not None
    assert run("key", "revoke", "Lab", "AKIANOSUCHKEY").exit_code == 1


def test_a_requesters_password_comes_from_standard_input() -> None:
    run("init")
    run_json(
        "requester", "create", "Lab", "--email", "lab@example.org", "--password-stdin", stdin="correct horse battery\n"
    )
    settings = settings_from_environment()
    engine = Marketplace(settings.database_url, settings=settings.engine_settings())

    assert engine.authenticate_requester("lab@example.org", "correct horse battery").name == "Lab"
    engine.close()


def test_a_name_that_two_requesters_have_is_not_guessed(requester_id: str) -> None:
    run_json("requester", "create", "Lab")

    assert "2 requesters are called 'Lab'" in run("top-up", "Lab", "1.00").output
    assert run("top-up", requester_id, "1.00").exit_code == 0


@pytest.mark.parametrize("bind", ["0.0.0.0:8000", "[::]:8000", "192.0.2.1:80", "work.example.org:80", ":8000"])
def test_plain_http_frames_are_never_served_beyond_loopback(bind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run_server", lambda *arguments, **_options: pytest.fail(f"served: {arguments}"))

    result = run("serve", "--bind", bind)

    assert result.exit_code == 2
    assert "reachable from other machines" in result.output


@pytest.mark.parametrize("bind", ["127.0.0.1:8000", "[::1]:8000", "localhost:8000"])
def test_loopback_is_served(bind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[object, ...]] = []

    def serve(*arguments: object, **options: object) -> int:
        started.append((*arguments, options))
        return 7

    monkeypatch.setattr(cli, "run_server", serve)

    assert run("serve", "--bind", bind, "--threads", "3", "--no-deliver").exit_code == 7

    assert started == [(bind, 3, {"deliver": False, "insecure_no_auth": False})]


@pytest.mark.parametrize("bind", ["0.0.0.0:8000", "[::]:8000", "192.0.2.1:80", "work.example.org:80", ":8000"])
def test_without_authentication_nothing_but_loopback_is_served(bind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run_server", lambda *arguments, **_options: pytest.fail(f"served: {arguments}"))
    monkeypatch.setenv("MARKETPLACE_ALLOW_HTTP_LOOPBACK", "0")

    result = run("serve", "--insecure-no-auth", "--bind", bind)

    assert result.exit_code == 2
    assert "loopback only" in result.output


def test_the_secret_of_webhooks_is_shown(requester_id: str) -> None:
    first, again = run("requester", "webhook-secret", "Lab"), run("requester", "webhook-secret", requester_id)

    assert first.output == again.output
    assert len(first.output.strip()) == 64


def test_a_link_for_a_new_password_is_made_for_workers_and_requesters(requester_id: str) -> None:
    run("requester", "create", "Mailed", "--email", "m@example.org", "--password-stdin", stdin="old password\n")
    (made,) = run_json("invite")
    engine = Marketplace(os.environ["MARKETPLACE_DATABASE_URL"], settings=settings_from_environment().engine_settings())
    engine.register_worker(made["code"], "Ada", "correct horse battery")

    worker = run("reset-link", "ada", "--for", "2h").output.strip()
    requester = run("reset-link", "--requester", "m@example.org").output.strip()

    assert worker.startswith("http://127.0.0.1:8000/password/new?token=")
    engine.reset_password(worker.partition("token=")[2], "another password")
    assert engine.authenticate_worker("ada", "another password").user_name == "Ada"
    assert requester.startswith("http://127.0.0.1:8000/requester/password/new?token=")
    engine.reset_password(requester.partition("token=")[2], "another password", requester=True)
    assert engine.authenticate_requester("m@example.org", "another password").name == "Mailed"
    engine.close()
    assert "no worker with the user name" in run("reset-link", "nobody").output


def test_an_https_site_may_listen_for_its_proxy() -> None:
    settings = Settings(database_url="sqlite://", secret_key=SecretStr(SECRET), site_url="https://work.example.org")

    cli.check_bind("0.0.0.0:8000", settings)  # the address under test


def test_amounts_are_exact() -> None:
    assert cli.dollars("0.30") == Decimal("0.30")


def test_a_test_servers_clock_moves_ahead_and_what_is_due_happens(
    requester_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARKETPLACE_MOVABLE_CLOCK", "1")
    settings = settings_from_environment()
    engine = Marketplace(settings.database_url, settings=settings.engine_settings())
    engine.top_up(requester_id, Decimal(10), "test")
    hit = engine.call(requester_id, "CreateHIT", hit_params(LifetimeInSeconds=3600))["HIT"]
    before = datetime.strptime(run("clock").output.strip(), "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)

    result = run("clock", "--forward", "2h")

    assert result.exit_code == 0, result.output
    after = datetime.strptime(result.output.strip(), "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    assert timedelta(hours=2) <= after - before < timedelta(hours=2, minutes=5)
    assert engine.call(requester_id, "GetHIT", {"HITId": hit["HITId"]})["HIT"]["HITStatus"] == "Reviewable"
    engine.close()


def test_the_clock_of_a_real_marketplace_stays_the_machines(requester_id: str) -> None:
    result = run("clock", "--forward", "2h")

    assert result.exit_code == 2
    assert "MARKETPLACE_MOVABLE_CLOCK" in result.output


@pytest.mark.parametrize("step", ["2", "h", "-2h", "2 h", "1.5h", "2w", "999999d", ""])
def test_a_step_that_is_no_time_is_refused(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKETPLACE_MOVABLE_CLOCK", "1")

    result = run("clock", "--forward", step)

    assert result.exit_code == 2
    assert "is not a time such as" in result.output


def test_a_movable_clock_needs_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKETPLACE_MOVABLE_CLOCK", "1")
    monkeypatch.setenv("MARKETPLACE_SITE_URL", "https://work.example.org")

    result = run("clock")

    assert result.exit_code == 1
    assert "MARKETPLACE_MOVABLE_CLOCK is for test servers on loopback" in result.output
