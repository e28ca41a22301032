"""The page of a batch: measured pay by the hour, the reason for paying little, and who may work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from bs4 import BeautifulSoup
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from app.models import StaffUser
from hits.mturk.client import Requirement
from hits.states import AssignmentState
from qualification.limits_models import LimitPer, Work, WorkLimit
from qualification.requirements import as_json
from tests.app.conftest import sign_in
from tests.factories import NOON, make_assignment, make_batch, make_hit

#: What they call is tested on both databases.
pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def requester(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff()
    sign_in(client)
    return client


@pytest.fixture
def batch_id(session_factory: sessionmaker[Session]) -> int:
    """A batch of $0.30 for 6 minutes whose five HITs took 6, 6, 10, 12 and 600 minutes, with a limit."""
    with session_factory() as session:
        batch = make_batch(
            session,
            minutes=6,
            practice=3,
            wage_reason="A pilot <b>of five</b>.",
            requirements=[
                as_json(Requirement("QUALIFICATION1", comparator="DoesNotExist", name="other work")),
                as_json(Requirement("000000000000000000L0", 95)),
            ],
        )
        for minutes in (6, 6, 10, 12, 600):
            make_assignment(
                session,
                hit=make_hit(session, batch=batch),
                state=AssignmentState.APPROVED,
                accepted_at=NOON,
                submitted_at=NOON + timedelta(minutes=minutes),
            )
        for number, most in ((0, 20), (2, 7)):
            session.add(
                WorkLimit(
                    task_code="sentiment",
                    round_number=number,
                    work=Work.WRITING,
                    per=LimitPer.DAY,
                    most=most,
                    set_at=NOON,
                    set_by="robin",
                )
            )
        session.commit()
        return batch.id


def test_the_wage_is_shown_as_it_was_measured(requester: FlaskClient, batch_id: int) -> None:
    page = BeautifulSoup(requester.get(f"/rounds/batches/{batch_id}").text, "lxml")

    figures = [dd.get_text(" ", strip=True) for dd in page.find("dl", class_="figures").find_all("dd")]
    # 600 minutes counts with the median of 10: 44 minutes for $1.50.
    assert figures == ["$3.00", "$1.80", "$2.05", "10 minutes", "5, 1"]
    assert "below the floor because: A pilot <b>of five</b>." in page.get_text(" ", strip=True).replace("  ", " ")


def test_requirements_and_the_rules_that_hold_are_listed(requester: FlaskClient, batch_id: int) -> None:
    page = requester.get(f"/rounds/batches/{batch_id}").text

    asked = BeautifulSoup(page, "lxml").find("table")
    assert [cell.get_text() for cell in asked.tbody.find_all(["th", "td"])] == [
        "other work", "not held", "finding it", "percent-approved", ">= 95", "finding it",
    ]  # fmt: skip
    assert "each worker at most 20 HITs in a day (UTC)" in page
    assert "at most 7" not in page
    assert "3 examples must pass a reviewer" in page
    assert f"/rounds/batches/{batch_id}" in requester.get("/rounds/sentiment/1").text


def test_a_wage_below_the_floor_is_marked_with_the_way_to_mend_it(
    requester: FlaskClient, batch_id: int, app: Flask
) -> None:
    known = app.extensions["dynahit"]
    before = requester.get(f"/rounds/batches/{batch_id}").text
    known.settings = known.settings.model_copy(update={"wage_floor": Decimal("2.00")})

    after = requester.get(f"/rounds/batches/{batch_id}").text

    assert "below the floor</h2>" not in before
    assert "This is below the floor" in after
    assert f"dynahit hits topup {batch_id} --hourly 2.00 --plan" in after


def test_a_batch_without_work_or_rules_says_so(requester: FlaskClient, session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        batch = make_batch(session)
        session.commit()
        number = batch.id

    page = requester.get(f"/rounds/batches/{number}").text

    assert page.count("none yet") == 3
    assert "The marketplace asks nothing of workers." in page
    assert "No rules of our own" in page


def test_no_batch_no_page(requester: FlaskClient, client: FlaskClient) -> None:
    assert requester.get("/rounds/batches/999").status_code == 404
    assert requester.get(f"/rounds/batches/{10**20}").status_code == 404


def test_finance_does_not_see_it(client: FlaskClient, staff: Callable[..., StaffUser], batch_id: int) -> None:
    staff("finn", ("finance",))
    sign_in(client, "finn")

    assert client.get(f"/rounds/batches/{batch_id}").status_code == 403
