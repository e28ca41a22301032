"""The HIT pages in a real browser, framed by another site: layout, keys, drafts, lost connections, axe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from app.extensions import db
from app.factory import create_app
from app.models import StaffUser
from app.settings import Settings
from hits.clock import SystemClock
from hits.db import Base, engine_for
from hits.models import Attempt, Hit, Vote
from hits.states import AssignmentState, HitKind, Verdict
from inference.errors import ModelWarmingUp
from tests import factories
from tests.app.conftest import RuleEngine
from tests.browser.framed import opened, press, served, violations, worker_site
from tests.launched import ROOT

pytestmark = pytest.mark.browser

ARTIFACTS = ROOT / "artifacts" / "screenshots"

#: 300 words, as long as a prompt gets.
LONG_PROMPT = " ".join(["The ferry was late again and people on the pier began to talk."] * 25)


@dataclass
class World:
    """The service on one site, a worker site that frames it on another."""

    service: str
    site: str
    engine: RuleEngine
    sessions: sessionmaker[Session]
    submitted: list[dict[str, str]]
    long: Hit
    short: Hit
    judging: Hit

    def framed(
        self, kind: str, hit: Hit, assignment: str, *, worker: str = "AWRITER", width: int = 1240, height: int = 620
    ) -> str:
        """The worker site's page with an accepted HIT in its frame."""
        claim = {"assignmentId": assignment, "hitId": hit.mturk_hit_id or ""}
        if assignment != "ASSIGNMENT_ID_NOT_AVAILABLE":
            claim |= {"workerId": worker, "turkSubmitTo": self.site}
        address = f"{self.service}/{kind}/{hit.reference}?{urlencode(claim)}"
        return f"{self.site}/frame?src={quote(address)}&width={width}&height={height}"

    def count(self, table: type[Any]) -> int:
        with self.sessions() as session:
            return session.query(table).count()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(factories, "NOON", datetime.now(UTC))
    url = f"sqlite:///{tmp_path / 'pages.db'}"
    database = engine_for(url)
    Base.metadata.create_all(database)
    sessions = sessionmaker(database, expire_on_commit=False)
    with sessions() as session:
        round_ = factories.make_round(session)
        batch = factories.make_batch(session, round=round_)
        prompts = [
            factories.make_context(session, round=round_, fields={"prompt": text})
            for text in (LONG_PROMPT, "We had dinner by the station.")
        ]
        long, short = (factories.make_hit(session, batch=batch, context_id=one.id, goal_label="negative")
                       for one in prompts)  # fmt: skip
        examples = []
        for text in ("I would have loved it.", "لم يكن الطعام سيئًا", "They open at nine."):
            assignment = factories.make_assignment(session, hit=long, state=AssignmentState.SUBMITTED)
            attempt = factories.make_attempt(session, assignment=assignment, answer={"statement": text})
            examples.append(factories.make_example(session, attempt=attempt))
        judging_batch = factories.make_batch(
            session, round=round_, kind=HitKind.VALIDATION, title="Say what the writer feels"
        )
        judging = factories.make_validation_hit(session, examples=examples, batch=judging_batch)
        assignment = factories.make_assignment(session, hit=long, state=AssignmentState.SUBMITTED)
        flagged = factories.make_example(
            session, attempt=factories.make_attempt(session, assignment=assignment), verdict=Verdict.FLAGGED
        )
        factories.make_vote(session, example=flagged, label=None, flag_reason="Insults somebody")
        user = StaffUser(name="robin", roles=["requester"], created_at=datetime.now(UTC))
        user.set_password("a long enough password")
        session.add(user)
        session.commit()

    submitted: list[dict[str, str]] = []
    site_server, site_url = served(worker_site(submitted), "127.0.0.1")
    engine = RuleEngine()
    settings = Settings(
        database_url=url,
        secret_key=SecretStr("s"),
        pseudonym_key=SecretStr(factories.PSEUDONYM_KEY),
        aws_access_key_id=SecretStr("a"),
        aws_secret_access_key=SecretStr("b"),
        worker_site_url=site_url,
    )
    app = create_app(settings, engine=engine, clock=SystemClock())
    server, service_url = served(app, "localhost")
    yield World(service_url, site_url, engine, sessions, submitted, long, short, judging)
    for one in (server, site_server):
        one.shutdown()
        one.server_close()
    with app.app_context():
        db.engine.dispose()
    database.dispose()


def test_goal_box_and_button_are_seen_without_scrolling_beside_a_long_context(world: World, page: Any) -> None:
    frame = opened(page, world.framed("work", world.long, "AONE"))

    for place in ("h1.goal", "textarea", "button:has-text('Ask the model')"):
        box = frame.locator(place).bounding_box()
        outer = page.locator("iframe").bounding_box()
        assert box["y"] >= outer["y"]
        assert box["y"] + box["height"] <= outer["y"] + outer["height"]
    assert frame.evaluate("scrollY") == 0
    context = frame.locator(".context")
    assert context.evaluate("element => element.scrollHeight - element.clientHeight") <= 1


@pytest.mark.parametrize("width", [320, 375, 1240])
@pytest.mark.parametrize("kind", ["work", "validate"])
def test_nothing_is_wider_than_the_frame(world: World, page: Any, kind: str, width: int) -> None:
    hit = world.long if kind == "work" else world.judging
    frame = opened(page, world.framed(kind, hit, "AONE", width=width))

    if kind == "work":
        frame.fill("textarea", "Donaudampfschifffahrtsgesellschaftskapitänskajütenschlüsselbund " * 3)
        frame.click("text=Ask the model")
        frame.wait_for_selector("#verdict")
    assert frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_a_writer_works_by_keyboard_and_hears_what_came(world: World, page: Any) -> None:
    frame = opened(page, world.framed("work", world.short, "AONE"))

    frame.focus("textarea")
    page.keyboard.type("I am sad.")
    page.keyboard.press("Enter")
    assert world.engine.asked == []
    page.keyboard.press("Control+Enter")
    frame.wait_for_selector("text=The model got it right")
    assert frame.evaluate("document.activeElement.id") == "statement"
    assert frame.inner_text("#said") == "The model got it right. It says negative, 83%. 4 tries left."
    frame.wait_for_selector("text=Which words mattered")
    frame.fill("textarea", "Such a good wait.")
    page.keyboard.press("Control+Enter")
    frame.wait_for_selector("#model-answer[data-done]")
    assert frame.evaluate("document.activeElement.id") == "verdict"
    frame.focus("#why")
    page.keyboard.type("It is irony.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    frame.wait_for_selector("h1:has-text('Submitted')")

    assert [sorted(one) for one in world.submitted] == [["assignmentId", "dynahit"]]
    assert world.submitted[0]["assignmentId"] == "AONE"


def test_a_double_click_asks_once(world: World, page: Any) -> None:
    frame = opened(page, world.framed("work", world.short, "AONE"))

    frame.fill("textarea", "I am sad.")
    frame.dblclick("text=Ask the model")
    frame.wait_for_selector("text=4 of 5 tries left")

    assert world.engine.asked == ["I am sad."]


def test_a_lost_connection_keeps_the_text_and_uses_no_try_twice(world: World, page: Any) -> None:
    frame = opened(page, world.framed("work", world.short, "AONE"))
    frame.fill("textarea", "I am sad.")

    page.route("**/work/attempts", lambda route: route.abort())
    frame.click("text=Ask the model")
    frame.wait_for_selector("text=The connection failed")
    assert frame.input_value("textarea") == "I am sad."
    page.unroute("**/work/attempts")
    # The answer is lost on its way back: the service has counted the try, the page does not know it.
    page.route("**/work/attempts", lambda route: (route.fetch(), route.abort()))
    frame.click("text=Ask the model")
    frame.wait_for_selector("#ask button[aria-busy=false]")
    page.unroute("**/work/attempts")
    frame.click("text=Ask the model")
    frame.wait_for_selector("text=4 of 5 tries left")

    assert world.engine.asked == ["I am sad."]


def test_a_draft_survives_a_reload_in_the_frame_until_the_submission(world: World, page: Any) -> None:
    frame = opened(page, world.framed("work", world.short, "AONE"))
    with page.expect_response("**/work/draft"):
        frame.fill("textarea", "A half written good")

    frame = opened(page, world.framed("work", world.short, "AONE"))
    assert frame.input_value("textarea") == "A half written good"
    frame.click("text=Ask the model")
    frame.wait_for_selector("#model-answer[data-done]")
    with page.expect_response("**/work/draft"):
        frame.fill("#why", "Half of a reason")

    frame = opened(page, world.framed("work", world.short, "AONE"))
    assert frame.input_value("#why") == "Half of a reason"


def test_the_page_asks_again_by_itself_while_the_model_warms_up(world: World, page: Any) -> None:
    world.engine.error = ModelWarmingUp(2.0)
    frame = opened(page, world.framed("work", world.short, "AONE"))
    frame.fill("textarea", "I am sad.")
    frame.click("text=Ask the model")
    frame.wait_for_selector("text=The model is still warming up")
    assert frame.locator("button:has-text('Submit')").count() == 0

    world.engine.error = None
    frame.wait_for_selector("text=The model got it right")

    assert frame.locator("#tries").inner_text() == "4 of 5 tries left"


def test_the_way_out_tells_the_worker_site(world: World, page: Any) -> None:
    frame = opened(page, world.framed("work", world.short, "AONE"))

    frame.click("text=I don't want to do this HIT")
    frame.click("text=Return this HIT")

    page.wait_for_function("document.title.includes('return')")
    assert page.title() == world.service + '{"dynahit":"return"}'


def test_a_reader_judges_by_keyboard_alone(world: World, page: Any) -> None:
    frame = opened(page, world.framed("validate", world.judging, "AJUDGES", worker="AREADER"))

    frame.focus("#item h1")
    for number, key in enumerate("132", start=1):
        frame.wait_for_selector(f"text={number} of 3")
        page.keyboard.press(key)
        page.keyboard.press("Enter")
    frame.wait_for_selector("text=You have judged all 3")
    assert violations(page) == []
    press(page, frame, "Change statement 2")
    frame.wait_for_selector("text=2 of 3")
    press(page, frame, "Flag this statement instead")
    page.keyboard.press("Tab")
    assert frame.evaluate("document.activeElement.id") == "flag_reason"
    page.keyboard.type("1 insult")
    assert frame.locator("input[value=negative]").is_checked() is False
    assert violations(page) == []
    press(page, frame, "Flag and go on")
    frame.wait_for_selector("text=flagged: 1 insult")
    press(page, frame, frame.inner_text("button:has-text('Submit')"))
    frame.wait_for_selector("h1:has-text('Submitted')")

    with world.sessions() as session:
        mine = session.query(Vote).filter(Vote.counted_at.is_(None)).order_by(Vote.example_id).all()
        assert [(one.label, one.flag_reason) for one in mine] == [
            ("negative", None),
            (None, "1 insult"),
            ("positive", None),
        ]


def test_everything_works_without_scripts(world: World, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(15_000)
    page = context.new_page()
    frame = opened(page, world.framed("work", world.short, "AONE"))
    frame.fill("textarea", "I am sad.")
    frame.click("text=Ask the model")
    page.frames[1].wait_for_selector("text=The model got it right")
    page.frames[1].click("text=Show which words mattered")
    page.frames[1].wait_for_selector(".attribution")
    page.frames[1].fill("textarea", "Such a good wait.")
    page.frames[1].click("text=Ask the model")
    page.frames[1].click("button:has-text('Submit')")
    page.frames[1].click("text=Submit to the marketplace")
    page.frames[1].wait_for_selector("h1:has-text('Submitted')")
    context.close()

    assert len(world.submitted) == 1
    assert world.count(Attempt) == 6


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(world: World, browser: Any, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, color_scheme=scheme)
    context.set_default_timeout(15_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    found: dict[str, list[str]] = {}

    def look(name: str) -> None:
        found[name] = violations(page)

    opened(page, world.framed("work", world.short, "ASSIGNMENT_ID_NOT_AVAILABLE"))
    look("preview")
    frame = opened(page, world.framed("work", world.short, "AONE"))
    look("work")
    frame.fill("textarea", "I am sad.")
    frame.click("text=Ask the model")
    frame.wait_for_selector(".attribution")
    look("answer")
    frame.fill("textarea", "Such a good wait.")
    frame.click("text=Ask the model")
    frame.wait_for_selector("#model-answer[data-done] .attribution")
    look("fooled")
    opened(page, world.framed("validate", world.judging, "ASSIGNMENT_ID_NOT_AVAILABLE"))
    look("validation preview")
    opened(page, world.framed("validate", world.judging, "AJUDGES", worker="AREADER"))
    look("validation")
    page.goto(f"{world.service}/rounds")
    look("sign-in")
    page.fill("#name", "robin")
    page.fill("#password", "a long enough password")
    page.click("main button")
    page.wait_for_url("**/rounds")
    look("rounds")
    page.click("text=Sentiment, round 1")
    page.wait_for_url("**/rounds/sentiment/1")
    look("round")
    moderate(page, look)
    context.close()

    assert {name: what for name, what in found.items() if what} == {}
    assert complaints == []


def moderate(page: Any, look: Callable[[str], None]) -> None:
    """By keyboard: dismiss a flag with words, look at the readers, decide about a statement against them."""
    page.focus(".flagged input[name=reason]")
    page.keyboard.type("It insults nobody who is real.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The flag is dismissed.")
    page.focus("nav >> text='Readers'")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Readers and votes')")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("Array.from(document.images).every(one => one.complete && one.naturalWidth > 0)")
    look("readers")
    page.screenshot(path=str(ARTIFACTS / "requester-readers.png"), full_page=True)
    page.goto(page.url.replace("/readers", "/statements"))
    look("statements")
    page.focus("tbody a >> nth=0")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('One statement')")
    page.focus("input[name=label] >> nth=0")
    page.keyboard.press("Space")
    page.focus("#override-reason")
    page.keyboard.type("Plain irony.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Your decision stands above")
    look("statement")
    page.screenshot(path=str(ARTIFACTS / "requester-statement.png"), full_page=True)
