"""Who gets into the staff's pages, and where signing in leads."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from app.models import StaffUser
from app.operations.staff_accounts import set_staff_password
from app.staff.access import safe_next
from hits.clock import FixedClock
from tests.app.conftest import sign_in

Staff = Callable[..., StaffUser]


@pytest.mark.parametrize("target", ["/rounds", "/rounds/sentiment/1?sort=name", "/"])
def test_a_path_of_the_service_may_follow_the_sign_in(target: str) -> None:
    assert safe_next(target) == target


@pytest.mark.parametrize(
    "target", ["", "rounds", "//evil.example", "/\\evil.example", "https://evil.example/", "javascript:x", "/a\nb"]
)
def test_nothing_else_may_follow_it(target: str) -> None:
    assert safe_next(target) is None


def test_a_page_of_another_role_stays_closed(client: FlaskClient, staff: Staff) -> None:
    staff(roles=("finance",))
    sign_in(client)

    response = client.get("/rounds")

    assert response.status_code == 403
    assert "does not have the role" in response.text


def test_a_closed_account_is_out_at_its_next_request(
    client: FlaskClient, staff: Staff, session_factory: sessionmaker[Session]
) -> None:
    staff()
    sign_in(client)
    assert client.get("/rounds").status_code == 200

    with session_factory() as session:
        session.query(StaffUser).one().active = False
        session.commit()

    assert client.get("/rounds").status_code == 302
    assert sign_in(client).status_code == 403


def test_a_new_password_ends_the_sessions_that_the_old_one_began(
    client: FlaskClient, staff: Staff, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    staff()
    sign_in(client)
    assert client.get("/rounds").status_code == 200

    with session_factory() as session:
        set_staff_password(session, clock, "robin", "another password of robin's")

    assert client.get("/rounds").status_code == 302
    assert sign_in(client, password="another password of robin's").status_code == 302
    assert client.get("/rounds").status_code == 200
