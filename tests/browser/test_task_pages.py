"""Each task's pages in a real browser, framed by another site: what fits, what keys do, what is announced, axe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, urlencode

import pytest
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from app.extensions import db
from app.factory import create_app
from app.settings import Settings
from hits.arms import Arm, set_arms
from hits.clock import SystemClock
from hits.db import Base, engine_for
from hits.models import Attempt, Hit, Vote
from hits.tasks import TASKS, TaskSpec
from tests import factories
from tests.app.four_tasks import PASSAGE, FourTaskEngine, creation_hit, fooling_example, validation_hit
from tests.browser.framed import opened, served, violations, worker_site

pytestmark = pytest.mark.browser
CODES = tuple(TASKS)
#: A family emoji of several characters, combining marks, right-to-left words and a line end before the answer.
HARD = (
    "Ze\u0301bra \U0001f468\u200d\U0001f469\u200d\U0001f467 \u05e9\u05dc\u05d5\u05dd said:\n"
    "the toll, then the toll was two pence."
)
LONG = " ".join([PASSAGE] * 12)


@dataclass
class World:
    """The service with HITs of every task, a worker site that frames it, and the model."""

    service: str
    site: str
    engine: FourTaskEngine
    sessions: sessionmaker[Session]
    submitted: list[dict[str, str]]
    creation: dict[str, Hit]
    validation: dict[str, Hit]

    def framed(self, hit: Hit, assignment: str = "AONE", *, width: int = 1240, height: int = 620) -> str:
        kind = "validate" if hit in self.validation.values() else "work"
        claim = {"assignmentId": assignment, "hitId": hit.mturk_hit_id or ""}
        claim |= {"workerId": f"AWRITER{assignment}", "turkSubmitTo": self.site}
        address = f"{self.service}/{kind}/{hit.reference}?{urlencode(claim)}"
        return f"{self.site}/frame?src={quote(address)}&width={width}&height={height}"

    def rows(self, table: type[Any]) -> list[Any]:
        with self.sessions() as session:
            found = session.query(table).order_by(table.id).all()
            session.expunge_all()
            return found


@contextmanager
def made_world(folder: Path, **changes: Any) -> Iterator[World]:
    """Serve everything from a database in this folder, with some settings changed."""
    url = f"sqlite:///{folder / 'tasks.db'}"
    database = engine_for(url)
    Base.metadata.create_all(database)
    sessions = sessionmaker(database, expire_on_commit=False)
    with patch.object(factories, "NOON", datetime.now(UTC)), sessions() as session:
        creation = {code: creation_hit(session, code) for code in CODES}
        validation = {}
        for code, hit in creation.items():
            examples = [fooling_example(session, hit) for _ in range(2)]
            validation[code] = validation_hit(session, examples)
        for name, passage in (("qa:hard", HARD), ("qa:long", LONG)):
            context = factories.make_context(session, round=creation["qa"].batch.round, fields={"passage": passage})
            creation[name] = factories.make_hit(
                session, batch=creation["qa"].batch, context_id=context.id, goal_label="right"
            )
        session.commit()
    submitted: list[dict[str, str]] = []
    site_server, site_url = served(worker_site(submitted), "127.0.0.1")
    engine = FourTaskEngine()
    settings = Settings(
        database_url=url,
        secret_key=SecretStr("s"),
        pseudonym_key=SecretStr(factories.PSEUDONYM_KEY),
        aws_access_key_id=SecretStr("a"),
        aws_secret_access_key=SecretStr("b"),
        worker_site_url=site_url,
        **changes,
    )
    app = create_app(settings, engine=engine, clock=SystemClock())
    server, service_url = served(app, "localhost")
    try:
        yield World(service_url, site_url, engine, sessions, submitted, creation, validation)
    finally:
        for one in (server, site_server):
            one.shutdown()
            one.server_close()
        with app.app_context():
            db.engine.dispose()
        database.dispose()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with made_world(tmp_path_factory.mktemp("tasks")) as made:
        yield made


def seen_whole(page: Any, frame: Any, *places: str) -> None:
    outer = page.locator("iframe").bounding_box()
    for place in places:
        box = frame.locator(place).first.bounding_box()
        assert box["y"] >= outer["y"], place
        assert box["y"] + box["height"] <= outer["y"] + outer["height"], place


def wider_than_its_frame(frame: Any) -> int:
    return int(frame.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


#: What a writer types that the model of these tests gets wrong, by field.
FOOLING = {
    "sentiment": {"statement": "I am positive that nothing worked."},
    "hate": {"message": "Whoever says not_hateful has not met that lot from Quillby."},
    "nli": {"hypothesis": "It is neutral to say that oak came before stone."},
}


@pytest.mark.parametrize("code", CODES)
def test_goal_boxes_and_button_are_seen_at_once_and_the_page_is_accessible(world: World, page: Any, code: str) -> None:
    hit = world.creation["qa:long" if code == "qa" else code]
    frame = opened(page, world.framed(hit, f"AFIT{code.upper()}"))

    seen_whole(page, frame, "h1.goal", "#ask textarea", "button:has-text('Ask the model')")
    assert frame.evaluate("scrollY") == 0
    assert wider_than_its_frame(frame) == 0
    assert violations(page) == []


@pytest.mark.parametrize("code", FOOLING)
def test_a_writer_fools_a_classifier_sees_the_words_and_submits(world: World, page: Any, code: str) -> None:
    spec = TASKS[code]
    frame = opened(page, world.framed(world.creation[code], f"AFOOL{code.upper()}"))
    for name, text in FOOLING[code].items():
        frame.focus(f"#{name}")
        page.keyboard.type(text)
    page.keyboard.press("Control+Enter")
    frame.wait_for_selector("#model-answer[data-done]")

    assert "You fooled the model" in frame.inner_text("#verdict")
    assert frame.locator(".probability-bars tbody tr").count() == len(spec.labels)
    frame.wait_for_selector("text=Which words mattered")
    assert frame.locator(".explanation .attribution").count() == len(spec.model_fields)
    frame.click("text=Show which words spoke for")
    frame.wait_for_selector("h3:has-text('Which words spoke for your goal')")
    frame.click("text=The same as a table, with numbers >> nth=0")
    assert frame.locator(".explanation tbody tr").first.inner_text()
    assert violations(page) == []
    frame.click("#model-answer button:text-is('Submit')")
    frame.wait_for_selector("h1:has-text('Submitted')")


def test_who_writes_without_a_model_hands_in_one_text_and_sees_nothing_of_what_a_model_says(
    world: World, page: Any
) -> None:
    with patch.object(factories, "NOON", datetime.now(UTC)), world.sessions() as session:
        round_ = factories.make_round(session, number=7)
        set_arms(session, round_, [Arm("control", 1, model_in_loop=False)], seed=1, by="ada", now=factories.NOON)
        hit = factories.make_hit(session, batch=factories.make_batch(session, round=round_))
        session.commit()
        session.expunge_all()
    frame = opened(page, world.framed(hit, "ACONTROL"))
    seen_whole(page, frame, "h1.goal", "#ask textarea", "button:has-text('Finish this statement')")
    assert violations(page) == []
    frame.focus("#statement")
    page.keyboard.type(FOOLING["sentiment"]["statement"])
    page.keyboard.press("Control+Enter")
    frame.wait_for_selector("#model-answer[data-done]")

    assert frame.inner_text("#said") == "Your statement is stored. You can submit now."
    assert frame.evaluate("document.activeElement.id") == "verdict"
    assert "fooled" not in frame.inner_text(".hit-main").lower()
    assert world.rows(Attempt)[-1].fooled
    assert violations(page) == []
    page.set_viewport_size({"width": 375, "height": 700})
    narrow = opened(page, world.framed(hit, "ACONTROL", width=340, height=620))
    assert wider_than_its_frame(narrow) == 0
    narrow.fill("#why", "Nothing worked.")
    narrow.click("#model-answer button:text-is('Submit')")
    narrow.wait_for_selector("h1:has-text('Submitted')")


def test_an_answer_is_marked_by_keyboard_alone_and_every_step_is_announced(world: World, page: Any) -> None:
    frame = opened(page, world.framed(world.creation["qa"], "AKEYS"))
    frame.focus("#context-passage")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert frame.inner_text("#said") == "old"
    page.keyboard.press("Shift+ArrowRight")
    assert frame.inner_text("#said") == "Marked: old bridge"
    assert frame.input_value("#answer") == "old bridge"
    assert frame.inner_text("mark.mine >> nth=0").strip() == "old"
    page.keyboard.press("Escape")
    assert (frame.inner_text("#said"), frame.input_value("#answer")) == ("Nothing is marked.", "")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert frame.input_value("#answer") == "1868"
    page.keyboard.press("Home")
    assert frame.inner_text("#said") == "The"
    page.keyboard.press("ArrowDown")
    assert frame.locator("mark.cursor").bounding_box()["y"] > frame.locator("#context-passage").bounding_box()["y"] + 16
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    assert frame.input_value("#answer") == PASSAGE
    frame.fill("#answer", "stone")
    assert frame.inner_text("mark.mine") == "stone"
    frame.focus("#question")
    page.keyboard.type("Of what was the second bridge built, stone or oak?")
    page.keyboard.press("Control+Enter")
    frame.wait_for_selector("#model-answer[data-done]")
    assert frame.inner_text("#said").startswith("You fooled the model. It says “oak”, 62%. Your answers overlap by 0%.")
    assert frame.inner_text("mark.mine >> nth=0") == "stone"
    assert frame.locator("#context-passage mark.model").inner_text() == "oak"
    frame.wait_for_selector("text=Which words mattered")
    assert violations(page) == []


def test_an_answer_is_marked_with_the_mouse_and_the_models_is_shown_beside_it(world: World, page: Any) -> None:
    frame = opened(page, world.framed(world.creation["qa"], "AMOUSE"))
    frame.evaluate(
        """() => {
          const text = document.getElementById("context-passage").firstChild;
          const at = text.data.indexOf("wo pen");
          getSelection().setBaseAndExtent(text, at, text, at + 6);
          document.getElementById("context-passage").dispatchEvent(new MouseEvent("mouseup", { bubbles: true }));
        }"""
    )
    frame.wait_for_selector("mark.mine")
    assert frame.input_value("#answer") == "two pence"
    frame.fill("#question", "How much was the toll?")
    frame.click("text=Ask the model")
    frame.wait_for_selector("text=below 40% counts as fooling")

    attempt = world.rows(Attempt)[-1]
    assert attempt.answer["answer"] == "two pence"
    assert attempt.answer["answer_start"] == str(PASSAGE.index("two pence"))
    assert (attempt.fooled, attempt.predicted_answer["text"]) == (True, "toll")


def test_a_tap_marks_a_word_and_shift_extends_it(world: World, page: Any) -> None:
    frame = opened(page, world.framed(world.creation["qa"], "ATAP"))
    place = """word => {
      const range = document.createRange();
      const walker = document.createTreeWalker(document.getElementById("context-passage"), NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const at = node.data.indexOf(word);
        if (at < 0) continue;
        range.setStart(node, at); range.setEnd(node, at + word.length);
        const box = range.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
      }
    }"""
    outer = page.locator("iframe").bounding_box()
    for word, keys in (("built", None), ("oak", "Shift")):
        x, y = frame.evaluate(place, word)
        if keys:
            page.keyboard.down(keys)
        page.mouse.click(outer["x"] + x, outer["y"] + y)
        if keys:
            page.keyboard.up(keys)

    assert frame.input_value("#answer") == "built of oak"


def test_offsets_of_browser_and_service_agree_behind_emoji_marks_and_line_ends(world: World, page: Any) -> None:
    frame = opened(page, world.framed(world.creation["qa:hard"], "AHARD"))
    frame.focus("#context-passage")
    page.keyboard.press("End")
    for _ in range(2):
        page.keyboard.press("Shift+ArrowLeft")
    frame.fill("#question", "How much did they pay for the zebra?")
    assert frame.input_value("#answer") == "two pence." or frame.input_value("#answer") == "two pence"
    frame.click("text=Ask the model")
    frame.wait_for_selector("text=below 40% counts as fooling")

    attempt = world.rows(Attempt)[-1]
    start = int(attempt.answer["answer_start"])
    assert HARD[start : start + len(attempt.answer["answer"])] == attempt.answer["answer"]
    assert frame.locator("#context-passage").inner_text().count("two pence") == 1
    assert frame.locator("#context-passage mark.mine").all_inner_texts() == [attempt.answer["answer"]]


def test_an_answer_that_stands_twice_is_chosen_by_its_surroundings(world: World, page: Any) -> None:
    frame = opened(page, world.framed(world.creation["qa:hard"], "ATWICE"))
    frame.fill("#question", "What was two pence?")
    frame.fill("#answer", "the toll")
    frame.click("text=Ask the model")
    frame.wait_for_selector("legend:has-text('Which one do you mean?')")
    assert "stands 2 times" in frame.inner_text("#said")
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    frame.click("text=Ask the model")
    frame.wait_for_selector("text=counts as fooling")

    assert world.rows(Attempt)[-1].answer["answer_start"] == str(HARD.rindex("the toll"))


def test_without_script_the_answer_is_typed_chosen_and_judged(world: World, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 375, "height": 740})
    page = context.new_page()
    page.goto(world.framed(world.creation["qa:hard"], "ANOSCRIPT", width=360, height=700))
    frame = page.frame_locator("iframe")
    frame.locator("button:has-text('I agree, go on')").click()
    frame.locator("#question").fill("What was two pence?")
    frame.locator("#answer").fill("The Toll")
    frame.locator("button:has-text('Ask the model')").click()
    frame.locator("input[type=radio] >> nth=1").check()
    frame.locator("button:has-text('Ask the model')").click()
    frame.locator("text=below 40% counts as fooling").wait_for()

    assert frame.locator("#context-passage mark.mine").inner_text() == "the toll"
    assert world.rows(Attempt)[-1].answer["answer_start"] == str(HARD.rindex("the toll"))
    context.close()


def ask_for_text(page: Any, frame: Any, spec: TaskSpec) -> None:
    """Show the text by keyboard where it is shown only to those who ask; the focus is where the text begins then."""
    show = frame.locator(f"button:has-text('Show the {spec.item_name}')")
    if spec.content_warning is None or show.count() == 0:
        return
    assert frame.locator("blockquote").count() == 0
    show.focus()
    page.keyboard.press("Enter")
    frame.wait_for_selector("blockquote")
    assert frame.evaluate("document.activeElement.matches('#item h1')")


@pytest.mark.parametrize("code", CODES)
def test_a_reader_judges_by_keyboard_alone(world: World, page: Any, code: str) -> None:
    spec = TASKS[code]
    frame = opened(page, world.framed(world.validation[code], f"AREAD{code.upper()}"))
    ask_for_text(page, frame, spec)
    frame.wait_for_selector("blockquote >> nth=0")
    assert violations(page) == []
    seen_whole(page, frame, "blockquote >> nth=0", "legend")
    if code == "qa":
        assert frame.inner_text("blockquote mark.mine >> nth=0") == "stone"
    frame.focus("#item h1")
    for next_place in ("strong:has-text('2 of 2')", "h1:has-text('You have judged all 2')"):
        ask_for_text(page, frame, spec)
        if code == "qa" and "all 2" in next_place:
            say_the_right_answer(page, frame)
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        frame.wait_for_selector(next_place)
    frame.wait_for_selector("h1:has-text('You have judged all 2')")
    assert violations(page) == []
    frame.click("button:text-is('Submit')")
    frame.wait_for_selector("h1:has-text('Submitted')")

    assert [vote.label for vote in world.rows(Vote)][-2:] == [spec.label_codes[0]] * 2


def say_the_right_answer(page: Any, frame: Any) -> None:
    """Find the marked answer wrong and type the right one, by keyboard; go back to the item afterwards."""
    page.keyboard.press("2")
    page.keyboard.press("Tab")
    page.keyboard.type("a bridge of lead")
    page.keyboard.press("Enter")
    frame.wait_for_selector(".field-error:has-text('does not stand in the text')")
    frame.fill("#answer", "")
    frame.focus("#answer")
    page.keyboard.type("oak")
    assert violations(page) == []
    page.keyboard.press("Enter")
    frame.wait_for_selector("text=rather “oak”")
    frame.click("button:has-text('Change') >> nth=1")
    frame.wait_for_selector("strong:has-text('2 of 2')")
    assert frame.input_value("#answer") == "oak"
    frame.focus("#item h1")


@pytest.mark.parametrize("width", [320, 375])
@pytest.mark.parametrize("code", CODES)
def test_nothing_is_wider_than_a_phone(world: World, page: Any, code: str, width: int) -> None:
    frame = opened(page, world.framed(world.creation[code], f"APHONE{code.upper()}", width=width))
    assert wider_than_its_frame(frame) == 0
    frame = opened(page, world.framed(world.validation[code], f"AREADPHONE{code.upper()}", width=width))
    assert wider_than_its_frame(frame) == 0
