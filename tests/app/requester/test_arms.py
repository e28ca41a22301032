"""The page of a round's arms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from app.models import StaffUser
from hits.arms import Arm, draw_arm, set_arms
from tests.app.conftest import sign_in
from tests.factories import NOON, make_round, make_worker
from tests.rounds import finished

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def test_the_page_shows_figures_differences_and_the_answer_and_no_worker_id(
    client: FlaskClient, staff: Callable[..., StaffUser], session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        round_ = make_round(session)
        arms = [Arm("explained", 1), Arm("plain", 1, explanations=False)]
        set_arms(session, round_, arms, seed=3, by="ada", now=NOON)
        people = [make_worker(session) for _ in range(12)]
        for one in people:
            arm = draw_arm(session, round_, one.id, NOON)
            assert arm
            readers = [make_worker(session) for _ in range(2)]
            finished(session, round=round_, writer=one, readers=readers, fooled=arm.explanations)
        ids = [one.mturk_worker_id for one in people]
        session.commit()
    staff()
    sign_in(client)
    page = client.get("/rounds/sentiment/1/arms")
    plot = client.get("/rounds/sentiment/1/arms/rates.svg")
    text = BeautifulSoup(page.text, "lxml").get_text(" ", strip=True)

    assert "Do explanations help? Yes: +100.0 points" in text
    assert "explained less plain" in text
    assert "100.0% 6 of 6" in text
    assert "Seed 3, 1 plan of shares so far" in text
    assert plot.mimetype == "image/svg+xml"
    assert b"vMER" in plot.data
    assert not any(one in page.text for one in ids)


def test_a_round_without_arms_says_how_to_set_them(
    client: FlaskClient, staff: Callable[..., StaffUser], session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        make_round(session)
        session.commit()
    staff()
    sign_in(client)

    assert "dynahit round arms sentiment 1 --arm" in client.get("/rounds/sentiment/1/arms").text
    assert client.get("/rounds/sentiment/1/arms").status_code == 200
