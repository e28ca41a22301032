"""An instance is made once, kept private, and found again as it was, also after a crash in the middle."""

from __future__ import annotations

import stat
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.cli import instance as instances
from app.cli.environment import read_settings
from app.cli.instance import Instance, InstanceError
from app.models import ROLES, StaffUser, password_fits
from hits.clock import FixedClock
from hits.db import engine_for
from payments.ledger import booked_deposits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "an instance's folder"


@pytest.fixture
def stored(folder: Path) -> Instance:
    instance = instances.open_instance(folder)
    instances.store_instance(instance)
    return instance


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_instance_is_readable_by_its_owner_only(folder: Path, stored: Instance) -> None:
    instances.upgrade_databases(stored)

    assert mode(folder) == 0o700
    for name in ("settings.env", "credentials.txt", "dynahit.db", "marketplace.db"):
        assert mode(folder / name) == 0o600, name


def test_two_instances_share_no_secret(tmp_path: Path) -> None:
    first, second = (instances.open_instance(tmp_path / name) for name in ("a", "b"))

    secret = [name for name in first.stored if "SECRET" in name or "KEY" in name]
    assert len(secret) >= 5
    assert all(first.stored[name] != second.stored[name] for name in secret)
    assert first.credentials.staff_password != second.credentials.staff_password


def test_the_frame_secret_is_shared_and_the_sites_differ(stored: Instance) -> None:
    assert stored.stored["DYNAHIT_FRAME_SECRET"] == stored.stored["MARKETPLACE_FRAME_SECRET"]
    assert stored.service_url == "http://localhost:8001"
    assert stored.marketplace_url == "http://127.0.0.1:8000"


def test_a_stored_instance_is_found_again_as_it_was(folder: Path, stored: Instance) -> None:
    again = instances.open_instance(folder)

    assert again == stored


def test_values_with_quotes_spaces_and_hashes_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "o'brien's #1 \\ folder"
    instance = instances.open_instance(folder)

    instances.store_instance(instance)

    assert read_settings(folder) == dict(instance.stored)


def test_the_environment_wins_and_is_not_stored(
    folder: Path, stored: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DYNAHIT_DATABASE_URL", "postgresql+psycopg://elsewhere/dynahit")

    again = instances.open_instance(folder)
    instances.store_instance(again)

    assert again.settings["DYNAHIT_DATABASE_URL"] == "postgresql+psycopg://elsewhere/dynahit"
    assert again.environment()["DYNAHIT_DATABASE_URL"] == "postgresql+psycopg://elsewhere/dynahit"
    assert read_settings(folder)["DYNAHIT_DATABASE_URL"].startswith("sqlite:///")


def test_ports_are_chosen_once(folder: Path) -> None:
    instances.store_instance(instances.open_instance(folder, port=9001, marketplace_port=9000))

    assert instances.open_instance(folder).service_url == "http://localhost:9001"
    assert instances.open_instance(folder, port=9001).marketplace_url == "http://127.0.0.1:9000"
    with pytest.raises(InstanceError, match=r"DYNAHIT_PORT is 9002, but the instance in .* http://localhost:9001"):
        instances.open_instance(folder, port=9002)
    with pytest.raises(InstanceError, match="MARKETPLACE_PORT is 9002"):
        instances.open_instance(folder, marketplace_port=9002)


def test_the_marketplace_is_furnished_once(stored: Instance) -> None:
    instances.upgrade_databases(stored)

    first = instances.furnish_marketplace(stored)
    second = instances.furnish_marketplace(instances.open_instance(stored.folder))

    assert second.stored == first.stored
    assert [one.note for one in instances.invitations(second)] == [*instances.WRITERS, *instances.VALIDATORS]
    marketplace = instances.open_marketplace(second)
    try:
        [requester] = marketplace.requesters()
        assert requester.name == "dynahit"
        assert marketplace.balance(requester.requester_id).available == Decimal("1000.00")
        secret, owner = marketplace.access_key(second.stored["DYNAHIT_AWS_ACCESS_KEY_ID"])
        assert owner == requester.requester_id
        assert secret == second.stored["DYNAHIT_AWS_SECRET_ACCESS_KEY"]
        assert marketplace.authenticate_requester(
            second.credentials.requester_email, second.credentials.requester_password
        )
    finally:
        marketplace.close()


def test_a_requester_with_another_address_is_still_the_instances_own(stored: Instance) -> None:
    instances.upgrade_databases(stored)
    furnished = instances.furnish_marketplace(stored)
    credentials = furnished.credentials
    marketplace = instances.open_marketplace(furnished)
    [requester] = marketplace.requesters()
    marketplace.change_requester_address(requester.requester_id, credentials.requester_password, "new@example.org")
    marketplace.close()

    again = instances.furnish_marketplace(instances.open_instance(stored.folder))

    marketplace = instances.open_marketplace(again)
    assert [one.email for one in marketplace.requesters()] == ["new@example.org"]
    marketplace.close()


def test_validators_invitations_grant_the_qualification(stored: Instance) -> None:
    instances.upgrade_databases(stored)
    instances.furnish_marketplace(stored)

    granted = {one.note: dict(one.grants) for one in instances.invitations(stored)}

    assert granted["writer 1"] == {}
    assert list(granted["validator 1"].values()) == [1]
    assert granted["validator 1"] == granted["validator 3"]


def test_a_crash_before_the_key_was_stored_makes_a_new_key(folder: Path, stored: Instance) -> None:
    instances.upgrade_databases(stored)
    instances.furnish_marketplace(stored)
    instances.store_instance(stored)  # the settings as they were before the key

    again = instances.furnish_marketplace(instances.open_instance(folder))

    assert "DYNAHIT_AWS_ACCESS_KEY_ID" not in stored.stored
    assert instances.open_instance(folder).stored == again.stored
    assert again.stored["DYNAHIT_AWS_ACCESS_KEY_ID"]


def test_one_more_invitation_can_be_made(stored: Instance) -> None:
    instances.upgrade_databases(stored)
    instances.furnish_marketplace(stored)

    code = instances.invite(stored, "simulated validator 1", validator=True)

    assert code
    assert len(instances.invitations(stored)) == 5


def test_the_first_member_of_staff_and_the_deposit_are_made_once(stored: Instance, clock: FixedClock) -> None:
    instances.upgrade_databases(stored)

    instances.furnish_service(stored, clock)
    clock.advance(timedelta(days=1))
    instances.furnish_service(stored, clock)

    engine = engine_for(stored.settings["DYNAHIT_DATABASE_URL"])
    with Session(engine) as session:
        [user] = session.scalars(select(StaffUser))
        assert set(user.roles) == set(ROLES)
        assert password_fits(user, stored.credentials.staff_password)
        assert booked_deposits(session, "http://127.0.0.1:8000") == Decimal("1000.00")
    engine.dispose()


def test_one_port_for_both_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="both"):
        instances.open_instance(tmp_path / "home", port=8203, marketplace_port=8203)
