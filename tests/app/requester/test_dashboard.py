"""A round's dashboard."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from app.models import StaffUser
from hits import validations
from hits.clock import FixedClock
from hits.models import Worker
from tests.app.conftest import sign_in
from tests.factories import make_example, make_round, make_vote

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

PAGE = "/rounds/sentiment/1/dashboard"
Rows = Callable[[type[Any]], list[Any]]


@pytest.fixture
def requester(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff()
    sign_in(client)
    return client


@pytest.fixture
def collected(session_factory: sessionmaker[Session], clock: FixedClock) -> None:
    """Two examples, one of which readers have verified; two hours go by."""
    with session_factory() as session:
        verified, _ = make_example(session), make_example(session)
        for _ in range(2):
            make_vote(session, example=verified)
        clock.advance(timedelta(hours=1))
        validations.decide(session, verified, clock.now())
        session.commit()
    clock.advance(timedelta(hours=1))


@pytest.mark.usefixtures("collected")
def test_the_dashboard_shows_figures_with_denominators_and_pseudonyms_only(requester: FlaskClient, rows: Rows) -> None:
    page = requester.get(f"{PAGE}?target=5")
    text = BeautifulSoup(page.text, "lxml").get_text(" ", strip=True)

    assert "1 of 5 verified" in text
    assert "the other 4 are there about" in text
    assert "1 valid_and_model_wrong / (2 collected - 0 retracted)" in text
    assert "50.0% 9.5% to 90.5%" in text
    assert "6 minutes" in text
    assert 'aria-current="page">Dashboard' in page.text
    for worker in rows(Worker):
        assert worker.mturk_worker_id not in page.text
    for image in BeautifulSoup(page.text, "lxml").find_all("img"):
        picture = requester.get(str(image["src"]))
        assert (image["alt"].strip() != "", picture.status_code) == (True, 200)
        assert picture.content_type == "image/svg+xml; charset=utf-8"
        assert "style=" not in picture.text


@pytest.mark.usefixtures("collected")
def test_a_script_gets_the_figures_alone(requester: FlaskClient) -> None:
    found = requester.get(PAGE, headers={"X-Requested-With": "fetch"}).text

    assert "<html" not in found
    parts = BeautifulSoup(found, "lxml").find_all(attrs={"data-part": True})
    assert len({part["id"] for part in parts}) == len(parts) == 7
    assert 'data-say="2 collected, 1 verified, vMER 50.0%."' in found


def test_an_empty_round_says_what_will_appear_and_others_are_not_there(
    requester: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        make_round(session)
        session.commit()

    page = requester.get(f"{PAGE}?target=nonsense").text
    assert "Nothing collected yet" in page
    assert "No target is set" in page
    assert "Nothing was verified in the last hours" in requester.get(f"{PAGE}?target=3").text
    assert requester.get(f"{PAGE}/other.svg").status_code == 404
    assert requester.get("/rounds/sentiment/2/dashboard").status_code == 404
    for name in ("days", "labels", "writers"):
        assert requester.get(f"{PAGE}/{name}.svg").status_code == 200


def test_only_the_requester_reads_it(client: FlaskClient, staff: Callable[..., StaffUser]) -> None:
    assert client.get(PAGE).status_code == 302
    staff("kim", ("finance",))
    sign_in(client, "kim")
    assert client.get(PAGE).status_code == 403
