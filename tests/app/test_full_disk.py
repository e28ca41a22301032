"""A full or failing disk: what does not fit is refused in words, nothing is half done, and it goes on later."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import make_url

from app.extensions import db
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Assignment, Attempt, Hit
from hits.states import AssignmentState
from tests.app.conftest import RuleEngine, ask, open_page

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
LONG = "It was bad. " * 80


class Disk:
    """SQLite's own limit on its file stands for the disk's."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        self._app = app
        self._path = make_url(settings.database_url).database or ""

    def fill(self) -> None:
        self._limit("SELECT 'PRAGMA max_page_count=' || page_count FROM pragma_page_count")
        with sqlite3.connect(self._path) as connection:
            # Free space inside the file is used up as well.
            connection.execute("VACUUM")
        connection.close()
        self._limit("SELECT 'PRAGMA max_page_count=' || page_count FROM pragma_page_count")

    def make_read_only(self) -> None:
        self._limit("SELECT 'PRAGMA query_only=ON'")

    def free(self) -> None:
        self._limit("SELECT 'PRAGMA query_only=OFF'")
        self._limit("SELECT 'PRAGMA max_page_count=1073741823'")

    def _limit(self, query: str) -> None:
        with self._app.app_context():
            raw = db.engine.raw_connection()
            raw.cursor().execute(raw.cursor().execute(query).fetchone()[0]).close()
            raw.close()


@pytest.fixture
def disk(app: Flask, settings: Settings) -> Disk:
    return Disk(app, settings)


def test_an_attempt_that_can_not_be_stored_uses_no_try_and_works_later(
    client: FlaskClient, disk: Disk, token: str, engine: RuleEngine, rows: Callable[[type[Any]], list[Any]]
) -> None:
    disk.fill()
    answers = [ask(client, token, f"{number} {LONG}") for number in range(4)]

    full = answers[-1]
    assert full.status_code == 503
    assert "be stored at the moment" in full.text
    assert "no try was used" in full.text.lower()
    stored = len(rows(Attempt))

    disk.free()
    again = ask(client, token, "It was good.")
    assert again.status_code == 200
    assert "You fooled the model" in again.text
    assert len(rows(Attempt)) == stored + 1


def test_an_answer_that_can_not_be_stored_gives_the_try_back(
    client: FlaskClient,
    disk: Disk,
    token: str,
    engine: RuleEngine,
    clock: FixedClock,
    rows: Callable[[type[Any]], list[Any]],
) -> None:
    # What a failing disk becomes between the question and the answer.
    engine.before_answer = lambda text: disk.make_read_only()
    assert ask(client, token, "It was bad.").status_code == 503

    disk.free()
    engine.before_answer = lambda text: None
    clock.advance(timedelta(minutes=1))
    answer = ask(client, token, "It was good.")
    assert answer.status_code == 200
    assert "You fooled the model" in answer.text
    assert [(attempt.state.value, attempt.try_number) for attempt in rows(Attempt)] == [
        ("unanswered", None),
        ("answered", 1),
    ]


def test_opening_and_submitting_say_so_too(
    client: FlaskClient, disk: Disk, token: str, hit: Hit, rows: Callable[[type[Any]], list[Any]]
) -> None:
    assert ask(client, token, "It was good.").status_code == 200
    disk.fill()
    statuses = {open_page(client, hit, worker=f"AOTHER{n}", assignment=f"OTHER{n}").status_code for n in range(60)}
    assert 503 in statuses
    refused = client.post("/work/submit", data={"token": token, "why": "x" * 2000})
    assert refused.status_code in (200, 503)

    disk.free()
    assert client.post("/work/submit", data={"token": token, "why": "x" * 2000}).status_code == 200
    (saved,) = [row for row in rows(Assignment) if row.state is AssignmentState.SAVED]
    assert saved.why
