"""A quiz by keyboard: failed, told why, a day later taken with other questions, and passed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from app.extensions import db
from app.factory import create_app
from app.settings import Settings
from hits.clock import FixedClock
from hits.db import Base, engine_for
from hits.models import Hit
from qualification.models import QuizResult
from tests import factories
from tests.app.conftest import RuleEngine
from tests.browser.conftest import ROOT
from tests.browser.framed import opened, served, violations, worker_site
from tests.qualification.quiz_hits import answers, quiz_hit

pytestmark = pytest.mark.browser

ARTIFACTS = ROOT / "artifacts" / "screenshots"


@dataclass
class World:
    """A service with two quiz HITs and a worker site that frames them; time is the test's."""

    service: str
    site: str
    clock: FixedClock
    sessions: sessionmaker[Session]
    submitted: list[dict[str, str]]
    hits: list[Hit]

    def framed(self, hit: Hit, assignment: str, *, width: int = 1240) -> str:
        claim = {"assignmentId": assignment, "hitId": hit.mturk_hit_id, "workerId": "AONE", "turkSubmitTo": self.site}
        address = f"{self.service}/quiz/{hit.reference}?{urlencode(claim)}"
        return f"{self.site}/frame?src={quote(address)}&width={width}&height=620"

    def right(self, number: int, so_many: int) -> dict[str, str]:
        with self.sessions() as session:
            return answers(session.query(QuizResult).filter_by(number=number).one(), so_many)

    def scores(self) -> list[int | None]:
        with self.sessions() as session:
            return [row.score for row in session.query(QuizResult).order_by(QuizResult.number)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    url = f"sqlite:///{tmp_path / 'quiz.db'}"
    database = engine_for(url)
    Base.metadata.create_all(database)
    sessions = sessionmaker(database, expire_on_commit=False)
    with sessions() as session:
        hits = [quiz_hit(session, "nli", "writer") for _ in range(2)]
        session.commit()
        session.expunge_all()
    submitted: list[dict[str, str]] = []
    site_server, site_url = served(worker_site(submitted), "127.0.0.1")
    settings = Settings(
        database_url=url,
        secret_key=SecretStr("s"),
        pseudonym_key=SecretStr(factories.PSEUDONYM_KEY),
        aws_access_key_id=SecretStr("a"),
        aws_secret_access_key=SecretStr("b"),
        worker_site_url=site_url,
    )
    clock = FixedClock(datetime(2026, 11, 15, 12, tzinfo=UTC))
    app = create_app(settings, engine=RuleEngine(), clock=clock)
    server, service_url = served(app, "localhost")
    yield World(service_url, site_url, clock, sessions, submitted, hits)
    for one in (server, site_server):
        one.shutdown()
        one.server_close()
    with app.app_context():
        db.engine.dispose()
    database.dispose()


def answer_by_keyboard(page: Any, frame: Any, given: dict[str, str]) -> None:
    """Tab from question to question, choose with the arrows, send with Enter; the mouse is never used."""
    frame.locator("summary", has_text="Rules and examples").focus()
    page.keyboard.press("Tab")
    for _ in given:
        name = frame.evaluate("document.activeElement.name")
        wanted = given[name.removeprefix("answer-")]
        page.keyboard.press("Space")
        for _ in range(4):
            if frame.evaluate("document.activeElement.value") == wanted:
                break
            page.keyboard.press("ArrowDown")
        assert frame.evaluate("document.activeElement.checked && document.activeElement.value") == wanted
        page.keyboard.press("Tab")
    assert frame.evaluate("document.activeElement.textContent") == "Send my answers"
    page.keyboard.press("Enter")


def look_at(page: Any, frame: Any, name: str) -> None:
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(ARTIFACTS / f"quiz-{name}.png"), full_page=True)
    assert violations(frame) == [], name


def test_a_quiz_is_failed_and_a_day_later_passed_by_keyboard(world: World, page: Any) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    first, second = world.hits

    frame = opened(page, world.framed(first, "AFIRST"))
    look_at(page, frame, "questions")
    asked = set(world.right(1, 7))
    answer_by_keyboard(page, frame, world.right(1, 4))
    frame.get_by_role("heading", name="4 of 7 right: not passed").wait_for()
    assert frame.get_by_text("Right is:").count() == 3
    assert frame.get_by_text("24 hours from now").count() == 1
    look_at(page, frame, "failed")
    frame.get_by_role("button", name="Submit to the marketplace").focus()
    page.keyboard.press("Enter")
    frame.get_by_role("heading", name="Submitted").wait_for()
    assert [one["assignmentId"] for one in world.submitted] == ["AFIRST"]

    frame = opened(page, world.framed(second, "ASECOND"))
    frame.get_by_role("heading", name="You can't take this quiz now").wait_for()
    look_at(page, frame, "too-soon")

    world.clock.advance(timedelta(hours=24))
    frame = opened(page, world.framed(second, "ATHIRD", width=375))
    assert frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert not asked & set(world.right(2, 7))
    answer_by_keyboard(page, frame, world.right(2, 6))
    frame.get_by_role("heading", name="6 of 7 right: passed").wait_for()
    assert frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    look_at(page, frame, "passed")
    frame.get_by_role("button", name="Submit to the marketplace").focus()
    page.keyboard.press("Enter")
    frame.get_by_role("heading", name="Submitted").wait_for()

    assert world.scores() == [4, 6]
    assert [one["assignmentId"] for one in world.submitted] == ["AFIRST", "ATHIRD"]
    assert problems == []
