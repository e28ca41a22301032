"""Several models on one text, through the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app.models import StaffUser
from app.side_models import SideModels
from hits.models import Attempt, ModelVersion
from hits.predictions import ModelUnavailable
from tests.app.conftest import RuleEngine, csrf_in, sign_in
from tests.factories import make_round

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

PAGE = "/rounds/sentiment/1/compare"


@pytest.fixture
def beside(app: Flask, session_factory: sessionmaker[Session]) -> RuleEngine:
    """The model that the page finds beside the one in service."""
    engine = RuleEngine(revision="two")
    engine.start = engine.stop = lambda: None  # type: ignore[attr-defined]
    made: Any = lambda _task, _reference: engine  # noqa: E731
    app.extensions["dynahit"].side_models = SideModels(made)
    app.extensions["dynahit"].settings.compare["sentiment"] = ["dir:/models/two"]
    with session_factory() as session:
        make_round(session)
        session.commit()
    return engine


@pytest.fixture
def requester(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff()
    sign_in(client)
    return client


def asked(client: FlaskClient, text: str, *models: str, **more: str) -> TestResponse:
    token = csrf_in(client.get(PAGE))
    return client.post(PAGE, data={"csrf_token": token, "statement": text, "model": list(models), **more})


def test_models_answer_side_by_side_and_nothing_is_stored(
    requester: FlaskClient, beside: RuleEngine, engine: RuleEngine, rows: Callable[[type[Any]], list[Any]]
) -> None:
    page = asked(requester, "A good <b>soup</b>.", "embedded:sentiment", "dir:/models/two")

    assert page.status_code == 200
    assert (engine.asked, beside.asked) == (["A good <b>soup</b>."], ["A good <b>soup</b>."])
    assert "rule at one" in page.text
    assert "rule at two" in page.text
    assert page.text.count("83%") == 4
    assert "A solid line" in page.text.replace('<mark class="for-2">', "").replace("</mark>", "")
    assert "<b>soup" not in page.text
    assert rows(Attempt) == []
    assert rows(ModelVersion) == []


def test_a_failure_stands_in_its_column(requester: FlaskClient, beside: RuleEngine) -> None:
    beside.error = ModelUnavailable("It is warming up.")

    page = asked(requester, "Nice.", "embedded:sentiment", "dir:/models/two").text

    assert "It is warming up." in page
    assert "rule at one" in page


@pytest.mark.usefixtures("beside")
def test_what_is_typed_wrongly_is_told_at_its_field(requester: FlaskClient) -> None:
    page = asked(requester, " ", "embedded:sentiment")

    assert page.status_code == 422
    assert 'id="statement-error"' in page.text
    # What is no choice is not loaded; the first ones are asked instead.
    assert asked(requester, "Nice.", "dir:/etc").status_code == 200
    assert requester.get("/rounds/sentiment/9/compare").status_code == 404
