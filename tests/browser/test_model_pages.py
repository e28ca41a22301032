"""The pages about models in a real browser: every page fits wide and narrow screens, works by keyboard, passes axe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from app.extensions import db
from app.factory import create_app
from app.models import StaffUser
from app.operations.measure_bias import measure_bias
from app.settings import Settings
from hits.clock import FixedClock, SystemClock
from hits.db import Base, engine_for
from hits.measures.sets import rows_set, split_set
from hits.states import Split
from hits.tasks import task
from tests import factories
from tests.app.conftest import RuleEngine
from tests.browser.framed import served, violations
from tests.launched import ROOT
from tests.measured import RuledModel, always, frozen_round, measured, sentiment_rows, sentiment_set, told

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ARTIFACTS = ROOT / "artifacts" / "screenshots"
PASSWORD = "a long enough password"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """The service with four measured models and a frozen round that was looked at."""
    url = f"sqlite:///{tmp_path / 'measured.db'}"
    database = engine_for(url)
    Base.metadata.create_all(database)
    with sessionmaker(database, expire_on_commit=False)() as session:
        _measure(session, tmp_path)
        user = StaffUser(name="robin", roles=["requester"], created_at=factories.NOON)
        user.set_password(PASSWORD)
        session.add(user)
        session.commit()
    database.dispose()
    settings = Settings(
        database_url=url,
        secret_key=SecretStr("s"),
        pseudonym_key=SecretStr(factories.PSEUDONYM_KEY),
        aws_access_key_id=SecretStr("a"),
        aws_secret_access_key=SecretStr("b"),
    )
    app = create_app(settings, engine=RuleEngine(), clock=SystemClock())
    server, address = served(app, "localhost")
    yield address
    server.shutdown()
    server.server_close()
    with app.app_context():
        db.engine.dispose()


def _measure(session: Session, folder: Path) -> None:
    frozen_round(session, folder, count=240)
    measure_bias(session, FixedClock(factories.NOON), "sentiment", 2)
    spec = task("sentiment")
    sets = [
        split_set(session, "sentiment", 2, Split.TEST),
        split_set(session, "sentiment", 2, Split.TRAIN),
        sentiment_set(90, "a base set with a rather long name"),
        rows_set(spec, "tests", sentiment_rows(30, functionality=("negation",)), kind="functions"),
    ]

    def better(texts: tuple[str, ...]) -> str:
        return told(texts) if "It was" in texts[0] else ("negative", "positive", "neutral")[len(texts[0]) % 3]

    for name in ("positive", "neutral"):
        measured(session, always(name, f"someone/a-model-with-a-long-name-{name}"), sets=sets)
    measured(session, RuledModel(better, "dynahit/sentiment-minilm-l6-r32"), sets=sets)
    measured(session, RuledModel(better, "dynahit/sentiment-again"), sets=sets[:2])


def look(page: Any, name: str) -> None:
    """Keep a picture of a page on a wide and on a narrow screen; it must fit both, and axe must find nothing."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    for width, height in ((1280, 700), (375, 700)):
        page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=str(ARTIFACTS / f"models-{name}-{width}.png"), full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
    page.set_viewport_size({"width": 1280, "height": 700})
    assert violations(page) == [], name


def test_a_requester_reads_what_models_reach_and_what_the_data_give_away(service: str, page: Any) -> None:
    # The first picture imports matplotlib, which takes its time on a busy machine.
    page.set_default_timeout(60_000)
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(f"{service}/rounds")
    page.get_by_label("Name").fill("robin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Models of sentiment by set").click()
    page.get_by_role("heading", name="What changed").wait_for()
    page.wait_for_load_state("networkidle")
    assert page.eval_on_selector("figure.plot img", "one => one.naturalWidth") > 300
    page.locator("details summary").first.click()
    look(page, "matrix")

    page.get_by_label("Figure").select_option("macro_f1")
    page.get_by_label("Figure").press("Tab")
    page.get_by_role("button", name="Show").press("Enter")
    page.get_by_text("Macro F1 of each model").wait_for()
    page.get_by_role("link", name="Leaderboard").click()
    look(page, "leaderboard")
    page.get_by_label("round 2 train").check()
    page.get_by_role("button", name="Show").click()
    page.get_by_role("columnheader", name="round 2 train").wait_for()

    page.get_by_role("link", name="All rounds").click()
    page.get_by_role("link", name="Sentiment, round 2").click()
    page.get_by_role("link", name="Bias").click()
    page.get_by_role("heading", name="What the data give away").wait_for()
    look(page, "bias")
    assert problems == []
