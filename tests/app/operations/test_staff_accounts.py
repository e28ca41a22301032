"""Accounts of staff: what is refused, and that refusing changes nothing."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from app.models import StaffUser, password_fits
from app.operations.staff_accounts import add_staff, close_staff, set_staff_password
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound

PASSWORD = "a long enough password"


def test_a_password_is_stored_as_a_hash(session: Session, clock: FixedClock) -> None:
    user = add_staff(session, clock, " robin ", PASSWORD, ["requester"])

    assert user.name == "robin"
    assert PASSWORD not in user.password_hash
    assert user.password_hash.startswith("scrypt:")
    assert password_fits(user, PASSWORD)
    assert not password_fits(user, PASSWORD + "x")
    assert not password_fits(None, PASSWORD)


@pytest.mark.parametrize(
    ("name", "password", "roles"),
    [
        ("", PASSWORD, ["finance"]),
        ("a\0b", PASSWORD, ["finance"]),
        ("x" * 81, PASSWORD, ["finance"]),
        ("robin", "short", ["finance"]),
        ("robin", PASSWORD, []),
        ("robin", PASSWORD, ["root"]),
    ],
)
def test_what_can_not_be_an_account_is_refused(
    session: Session, clock: FixedClock, name: str, password: str, roles: list[str]
) -> None:
    with pytest.raises(InvalidInput):
        add_staff(session, clock, name, password, roles)

    session.rollback()
    assert session.query(StaffUser).count() == 0


def test_a_name_is_given_once(session: Session, clock: FixedClock) -> None:
    add_staff(session, clock, "robin", PASSWORD, ["finance"])

    with pytest.raises(InvalidInput, match="already an account 'robin'"):
        add_staff(session, clock, "robin", PASSWORD, ["finance"])


def test_an_unknown_account_is_told(session: Session, clock: FixedClock) -> None:
    with pytest.raises(NotFound):
        close_staff(session, clock, "nobody")
    with pytest.raises(NotFound):
        set_staff_password(session, clock, "nobody", PASSWORD)
