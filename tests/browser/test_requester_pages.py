"""The requester's pages in a real browser: a dashboard that renews itself, search, one example, models side by side."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from app.extensions import db
from app.factory import create_app
from app.models import StaffUser
from app.settings import Settings
from app.side_models import SideModels
from hits import validations
from hits.attempts import store_attribution
from hits.clock import SystemClock
from hits.db import Base, engine_for
from hits.predictions import MemberAnswer
from hits.states import AssignmentState
from tests import factories as make
from tests.app.conftest import RuleEngine
from tests.browser.framed import served, violations
from tests.launched import ROOT

pytestmark = pytest.mark.browser

ARTIFACTS = ROOT / "artifacts" / "screenshots"
PASSWORD = "a long enough password"


def collected(session: Session, count: int, now: datetime, *, text: str = "The soup came cold") -> None:
    """Examples of three writers over some days, every second one verified, with members and words that mattered."""
    writers = [make.make_worker(session) for _ in range(3)]
    for number in range(count):
        at = now - timedelta(hours=1 + 7 * (count - number))
        hit = make.make_hit(session, goal_label="negative" if number % 3 else "neutral")
        work = make.make_assignment(session, hit=hit, worker=writers[number % 5 % 3], state=AssignmentState.APPROVED)
        answer = {"statement": f"{text}, visit {number}, and nobody at the other tables seemed to mind."}
        attempt = make.make_attempt(session, assignment=work, answer=answer, goal_label=hit.goal_label)
        members = [MemberAnswer(f"model-{one}", "r1", "positive", dict(attempt.probabilities or {})) for one in "ab"]
        attempt.members = [
            {"model_id": one.model_id, "revision": "r1", "label": "positive", "probabilities": one.probabilities}
            for one in members
        ]
        said = RuleEngine().explain("sentiment", answer, "positive")
        store_attribution(session, attempt, said)
        example = make.make_example(session, attempt=attempt, collected_at=at)
        for _ in range(2 * (number % 2)):
            make.make_vote(session, example=example, seconds=8.0, created_at=at)
        validations.decide(session, example, at + timedelta(minutes=30))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[str, sessionmaker[Session]]]:
    url = f"sqlite:///{tmp_path / 'rounds.db'}"
    database = engine_for(url)
    Base.metadata.create_all(database)
    sessions = sessionmaker(database, expire_on_commit=False)
    now = datetime.now(UTC)
    with sessions() as session:
        collected(session, 12, now)
        make.make_round(session).stop_validated = 20
        user = StaffUser(name="robin", roles=["requester"], created_at=now)
        user.set_password(PASSWORD)
        session.add(user)
        session.commit()
    settings = Settings(
        database_url=url,
        secret_key=SecretStr("s"),
        pseudonym_key=SecretStr(make.PSEUDONYM_KEY),
        aws_access_key_id=SecretStr("a"),
        aws_secret_access_key=SecretStr("b"),
        compare={"sentiment": ["dir:/models/two"]},
    )
    app = create_app(settings, engine=RuleEngine(), clock=SystemClock())
    beside = RuleEngine(revision="two")
    beside.start = beside.stop = lambda: None  # type: ignore[attr-defined]
    made: Any = lambda _task, _reference: beside  # noqa: E731
    app.extensions["dynahit"].side_models = SideModels(made)
    server, address = served(app, "localhost")
    yield address, sessions
    server.shutdown()
    server.server_close()
    database.dispose()
    with app.app_context():
        db.engine.dispose()


def look(page: Any, name: str) -> None:
    """Keep a picture of a page on a wide and on a narrow screen; it must fit both, and axe must find nothing."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    for width, height in ((1280, 700), (375, 700)):
        page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=str(ARTIFACTS / f"requester-{name}-{width}.png"), full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    page.set_viewport_size({"width": 1280, "height": 700})
    assert violations(page) == [], name


def test_the_requester_watches_searches_reads_and_compares(
    service: tuple[str, sessionmaker[Session]], page: Any
) -> None:
    address, sessions = service
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(f"{address}/rounds/sentiment/1/dashboard")
    page.get_by_label("Name").fill("robin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{address}/rounds/sentiment/1/dashboard")
    page.get_by_text("6 of 20 verified").wait_for()
    page.wait_for_load_state("networkidle")
    assert min(page.eval_on_selector_all("figure.plot img", "all => all.map(one => one.naturalWidth)")) > 300
    look(page, "dashboard")

    # What is focused and how far one has scrolled stay, and the rest is renewed and said.
    held = page.locator("#part-rates a").first
    held.focus()
    top = page.evaluate("scrollY")
    with sessions() as session:
        collected(session, 2, datetime.now(UTC), text="The train was late")
        session.commit()
    renew = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(renew)
    page.get_by_text("7 of 20 verified").wait_for()
    assert held.evaluate("one => one === document.activeElement")
    assert page.evaluate("scrollY") == top
    assert page.locator("[data-live-said]").text_content() == "14 collected, 7 verified of 20, vMER 50.0%."

    page.get_by_role("button", name="Pause updating").press("Enter")
    with sessions() as session:
        collected(session, 2, datetime.now(UTC))
        session.commit()
    page.evaluate(renew)
    page.get_by_text("Paused.").wait_for()
    assert page.get_by_text("7 of 20 verified").is_visible()
    page.get_by_role("button", name="Go on updating").press("Enter")
    page.get_by_text("8 of 20 verified").wait_for()

    page.get_by_role("navigation", name="Sentiment, round 1").get_by_role("link", name="Examples").press("Enter")
    look(page, "examples")
    page.get_by_label("What the writer wrote").fill("TRAIN")
    page.get_by_label("What the writer wrote").press("Enter")
    page.get_by_text("2 fit among the 16 that were looked through").wait_for()
    page.get_by_role("link", name="The train was late, visit 1").press("Enter")
    page.get_by_role("heading", name="Which words mattered").wait_for()
    page.get_by_role("heading", name="model-b at r1").wait_for()
    look(page, "example")

    page.get_by_role("navigation", name="Sentiment, round 1").get_by_role("link", name="Compare models").press("Enter")
    page.get_by_label("Statement").fill("A good soup on a bad day.")
    page.get_by_role("button", name="Compare").press("Enter")
    page.get_by_role("heading", name="rule at two").wait_for()
    look(page, "compare")
    page.get_by_role("navigation", name="Sentiment, round 1").get_by_role("link", name="Round", exact=True).click()
    look(page, "round")
    assert problems == []
