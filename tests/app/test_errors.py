"""How refusals look, to people and to a page's own script."""

from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.exceptions import BadGateway, ServiceUnavailable

from app.errors import MAX_BODY_BYTES, trouble_of
from hits.errors import AlreadySubmitted, HitsError, NotFound, Refused, WrongWorker
from hits.models import Attempt, Hit
from hits.predictions import ModelUnavailable
from tests.app.conftest import ask, open_page


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotFound("x"), 404),
        (Refused("x"), 409),
        (WrongWorker(), 403),
        (AlreadySubmitted(), 409),
        (ModelUnavailable("x"), 503),
        (HitsError("x"), 400),
        (BadGateway(), 500),
        (ServiceUnavailable(), 503),
        (ValueError("secret detail"), 500),
    ],
)
def test_each_error_has_its_status(error: Exception, status: int) -> None:
    assert trouble_of(error).status == status


def test_an_unknown_error_tells_nothing_of_its_details() -> None:
    trouble = trouble_of(ValueError("secret detail"))

    assert "secret detail" not in trouble.what + trouble.next + trouble.pay


def test_a_body_above_64_kb_is_a_clear_page_and_uses_no_try(client: FlaskClient, token: str, rows) -> None:
    response = ask(client, token, "x" * 100_000)

    assert response.status_code == 413
    assert "This is too long" in response.text
    assert "no try was used" in response.text
    assert rows(Attempt) == []


def test_a_body_just_below_the_limit_meets_the_tasks_own_limit(client: FlaskClient, token: str) -> None:
    response = ask(client, token, "x" * (MAX_BODY_BYTES - 2000))

    assert response.status_code == 422
    assert "1,000 are the most" in response.text


def test_a_script_gets_json(client: FlaskClient, token: str) -> None:
    response = client.post("/work/submit", data={"token": token}, headers={"X-Requested-With": "fetch"})

    assert response.status_code == 409
    assert set(response.json["error"]) == {"title", "what", "pay", "next"}


WROTE = "I saw A1WORKER on Monday"


def test_the_log_tells_where_a_crash_was_and_quotes_nobody(
    client: FlaskClient, hit: Hit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(*arguments: object, **named: object) -> None:
        try:
            raise KeyError(WROTE)
        except KeyError as error:
            raise RuntimeError(WROTE) from error

    monkeypatch.setattr("app.worker.views.progress", crash)
    open_page(client, hit)

    (record,) = [one for one in caplog.records if one.levelname == "ERROR"]
    said = record.getMessage()
    assert said.startswith("GET worker.")
    for part in ("RuntimeError", "KeyError", "test_errors.py", "in crash"):
        assert part in said
    assert "Monday" not in caplog.text
    assert "A1WORKER" not in caplog.text


def test_a_crash_is_a_calm_page_inside_the_frame(app: Flask, client: FlaskClient, hit: Hit, monkeypatch) -> None:
    def crash(*arguments: object, **named: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("app.worker.views.progress", crash)
    response = open_page(client, hit)

    assert response.status_code == 500
    assert "Something went wrong here" in response.text
    assert "secret detail" not in response.text
    assert 'class="hit-page"' in response.text


def test_too_many_questions_are_slowed_down_and_use_no_try(client: FlaskClient, token: str, rows) -> None:
    answers = [ask(client, token, "") for _ in range(31)]

    assert [answer.status_code for answer in answers[:30]] == [422] * 30
    assert answers[30].status_code == 429
    assert answers[30].headers["Retry-After"] == "60"
    assert "Wait a minute" in answers[30].text
    assert rows(Attempt) == []


def test_one_workers_haste_does_not_slow_another(client: FlaskClient, hit: Hit, token: str) -> None:
    for _ in range(31):
        ask(client, token, "")

    assert open_page(client, hit, assignment="ASSIGNMENTTWO", worker="AOTHER").status_code == 200


def test_an_error_of_staff_pages_has_no_words_about_pay(app: Flask, client: FlaskClient) -> None:
    response = client.get("/nowhere")

    assert response.status_code == 404
    assert "No page has this address" in response.text
    assert "pay" not in response.text.lower().replace("payments", "")
