"""The pages about models: matrix, leaderboard and what the data give away, each with its empty state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from app.models import StaffUser
from app.operations.measure_bias import measure_bias
from app.requester.matrix import shade
from hits.clock import FixedClock
from hits.measures.intervals import Estimate
from hits.measures.sets import rows_set, split_set
from hits.states import Split
from hits.tasks import task
from tests.app.conftest import sign_in
from tests.factories import make_round
from tests.measured import RuledModel, always, frozen_round, measured, sentiment_rows, sentiment_set, told

#: What does not depend on the database.
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def requester(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff()
    sign_in(client)
    return client


def words_in(text: str) -> str:
    return BeautifulSoup(text, "lxml").get_text(" ", strip=True)


@ON_SQLITE
def test_pages_without_anything_say_what_will_appear(
    requester: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        make_round(session)
        session.commit()

    assert "Nothing was measured yet" in requester.get("/rounds/sentiment/matrix").text
    assert "No model was measured on all of these sets" in requester.get("/rounds/sentiment/leaderboard").text
    assert "The round is not frozen" in requester.get("/rounds/sentiment/1/bias").text
    assert requester.get("/rounds/sentiment/1/bias.json").status_code == 404
    assert requester.get("/rounds/nothing/matrix").status_code == 404
    assert requester.get("/rounds/sentiment/7/bias").status_code == 404


@ON_SQLITE
def test_the_matrix_shows_figures_words_and_files(
    requester: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    rows = sentiment_rows(6, functionality=("negation",))
    tests = rows_set(task("sentiment"), "tests", rows, kind="functions")
    with session_factory() as session:
        models = always("positive", "<b>always</b>"), RuledModel(told, "good one")
        measured(session, *models, sets=[sentiment_set(), tests])

    page = requester.get("/rounds/sentiment/matrix")

    text = words_in(page.text)
    assert "<b>always</b> one" in text
    assert re.search(r"66\.7% \d\d\.\d to \d\d\.\d", text)
    assert "errs less than <b>always</b> one on made up (-66.7 points" in text
    assert "negation 6 66.7%" in text
    assert BeautifulSoup(page.text, "lxml").select_one("td[class*='heat-']") is not None
    assert "style=" not in page.text.split("<main")[1]
    other = words_in(requester.get("/rounds/sentiment/matrix?metric=macro_f1&before=x&after=y").text)
    assert "Macro F1 of each model" in other
    svg = requester.get("/rounds/sentiment/matrix.svg")
    assert svg.content_type == "image/svg+xml; charset=utf-8"
    assert "style=" not in svg.text
    assert len(json.loads(requester.get("/rounds/sentiment/matrix.json").text)) == 4
    assert "attachment" in requester.get("/rounds/sentiment/matrix.csv").headers["Content-Disposition"]
    assert requester.get("/rounds/sentiment/matrix.exe").status_code == 404

    board = words_in(requester.get("/rounds/sentiment/leaderboard?set=made+up&set=other").text)
    assert "1 good one one" in board
    assert "clearly behind" in board


@ON_SQLITE
def test_the_page_about_the_data_shows_what_was_found(
    requester: FlaskClient, session_factory: sessionmaker[Session], clock: FixedClock, tmp_path: Path
) -> None:
    with session_factory() as session:
        frozen_round(session, tmp_path)
    assert "Nobody has looked yet" in requester.get("/rounds/sentiment/2/bias").text
    with session_factory() as session:
        measure_bias(session, clock, "sentiment", 2)
        measured(session, always("positive"), sets=[split_set(session, "sentiment", 2, Split.TEST)])

    page = words_in(requester.get("/rounds/sentiment/2/bias").text)

    assert "120 examples with a settled label" in page
    assert "Statement alone" in page
    assert "0 of 120 texts repeat an earlier one" in page
    assert json.loads(requester.get("/rounds/sentiment/2/bias.json").text)["examples"] == 120


def test_a_cell_is_the_darker_the_worse_it_is() -> None:
    assert [shade("error", Estimate(value, 0, 1, 9, 0, 9)) for value in (0, 0.17, 0.5, 1)] == [0, 1, 3, 5]
    assert [shade("accuracy", Estimate(value, 0, 1, 9, 0, 9)) for value in (0, 0.5, 1)] == [5, 3, 0]
