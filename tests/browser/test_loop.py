"""The whole loop as people walk it: a writer, two validators, finance; in a real browser on the real processes."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.cli.crowd import PLAIN, TRICKY
from tests.browser.conftest import ROOT, Running
from tests.browser.framed import gone_on

pytestmark = [pytest.mark.browser, pytest.mark.model]

ARTIFACTS = ROOT / "artifacts" / "screenshots"
PASSWORD = "correct horse battery"
LONG_PROMPT = next(
    line
    for line in (ROOT / "docs/examples/prompts.jsonl").read_text(encoding="utf-8").splitlines()
    if len(line.split()) >= 300
)
GOALS = {"a NEGATIVE statement": "negative", "a POSITIVE statement": "positive", "a NEUTRAL statement": "neutral"}


@pytest.fixture
def people(browser: Any) -> Iterator[Any]:
    """Opens a page in a browser of its own for each person; script errors and refused contents fail the test."""
    contexts, problems = [], []

    def person() -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 700}, reduced_motion="reduce")
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        return page

    yield person
    for context in contexts:
        context.close()
    assert problems == []


def look_at(page: Any, name: str, *, frame: Any = None) -> None:
    """Keep a picture, and let axe look at the page and at the page in its frame."""
    from axe_playwright_python.sync_playwright import Axe

    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(ARTIFACTS / f"{name}.png"))
    page.screenshot(path=str(ARTIFACTS / f"{name}-whole.png"), full_page=True)
    for content in (page, frame) if frame is not None else (page,):
        found = Axe().run(content).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], name


def in_frame(page: Any, service: str) -> Any:
    """Return the HIT's page in the frame, once it is there."""
    page.locator("iframe").wait_for()
    for _ in range(200):
        for frame in page.frames:
            if frame.url.startswith(service) and frame.evaluate("document.readyState") == "complete":
                return gone_on(frame)
        page.wait_for_timeout(50)
    raise AssertionError(f"no frame of {service} in {page.url}")


def join(page: Any, address: str, name: str) -> None:
    page.goto(address)
    page.get_by_label("Choose a user name").fill(name)
    page.get_by_label("Choose a password").fill(PASSWORD)
    page.get_by_role("button", name="Create my account").click()
    page.get_by_role("heading", name="HITs", exact=True).wait_for()


def assert_unscrolled(page: Any, *locators: Any) -> None:
    """Each is whole inside the window before anybody scrolls."""
    for locator in locators:
        box = locator.bounding_box()
        assert box is not None, locator
        assert box["y"] >= 0, (locator, box)
        assert box["y"] + box["height"] <= page.viewport_size["height"], (locator, box)


def until(seconds: float, what: str) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.5)
    raise AssertionError(f"waited {seconds} seconds in vain for {what}")


def test_the_whole_loop(running: Running, people: Any, tmp_path: Path) -> None:
    contexts = tmp_path / "long.jsonl"
    contexts.write_text(LONG_PROMPT + "\n", encoding="utf-8")
    terms = ("--round", "1", "--hits", "1", "--reward", "0.30", "--bonus", "0.30", "--tries", "5")
    launch = ("hits", "launch", "sentiment", *terms, "--contexts", str(contexts))
    plan = running.dynahit(*launch, "--plan", "--json")
    assert running.dynahit(*launch, "--plan", "--json") == plan  # planning changed nothing, the balance included
    running.dynahit(*launch, "--yes")

    statement = write(running, people())
    for number in (1, 2):
        judge(running, people(), number, statement)
    settle_and_read(running, people(), statement, tmp_path)


def write(running: Running, page: Any) -> tuple[str, str]:
    """A writer joins, previews, accepts, tries three times, fools the model, submits. Returns label and statement."""
    page.goto(running.invitation("writer 1"))
    look_at(page, "01-join")
    join(page, running.invitation("writer 1"), "ada")
    look_at(page, "02-hits")
    page.get_by_role("link", name="Preview").first.click()
    frame = in_frame(page, running.service)
    assert frame.get_by_role("textbox").first.is_disabled()
    look_at(page, "03-preview", frame=frame)
    page.get_by_role("button", name="Accept this HIT").first.click()
    page.wait_for_url("**/work/*")

    frame = in_frame(page, running.service)
    box, ask = frame.get_by_role("textbox", name="Your statement"), frame.get_by_role("button", name="Ask the model")
    assert_unscrolled(page, frame.locator("h1.goal"), box, ask)
    look_at(page, "04-work", frame=frame)
    goal = GOALS[frame.locator(".goal-label").inner_text()]

    for number, text in enumerate(PLAIN[goal][:2], start=1):
        box.fill(text)
        ask.click()
        frame.get_by_role("heading", name="The model got it right").wait_for()
        frame.get_by_text(f"{5 - number} of 5 tries left").first.wait_for()
        frame.get_by_role("heading", name="Which words mattered").wait_for()
        assert frame.locator("mark").count() > 0
        look_at(page, f"05-answer-{number}", frame=frame)
        box.fill("")
    page.reload()
    frame = in_frame(page, running.service)
    frame.get_by_text("3 of 5 tries left").first.wait_for()

    box, ask = frame.get_by_role("textbox", name="Your statement"), frame.get_by_role("button", name="Ask the model")
    statement = TRICKY[goal][0]
    box.fill(statement)
    ask.dblclick()
    frame.get_by_role("heading", name="You fooled the model").wait_for()
    frame.get_by_role("heading", name="Which words mattered").wait_for()
    bars = frame.locator(".probability-bars tbody tr")
    percents = [int(re.sub(r"\D", "", text)) for text in bars.locator(".num").all_inner_texts()]
    assert len(percents) == 3
    assert sum(percents) in range(98, 103) or sum(percents) in range(980, 1030)
    look_at(page, "06-fooled", frame=frame)
    frame.get_by_label("Why is your label right?").fill("Any reader sees that.")
    frame.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url("**/submitted")
    look_at(page, "07-submitted")
    page.goto(f"{running.site}/dashboard")
    look_at(page, "08-dashboard")
    return goal, statement


def judge(running: Running, page: Any, number: int, written: tuple[str, str]) -> None:
    """A validator joins, finds the validation HIT, judges the statement and submits."""
    label, statement = written
    join(page, running.invitation(f"validator {number}"), f"reader{number}")
    for _ in until(90, "a validation HIT"):
        page.goto(f"{running.site}/hits?q=short+statements")
        if page.get_by_role("link", name="Preview").count():
            break
    page.get_by_role("link", name="Preview").first.click()
    frame = in_frame(page, running.service)
    look_at(page, f"10-validation-preview-{number}", frame=frame)
    page.get_by_role("button", name="Accept this HIT").first.click()
    page.wait_for_url("**/work/*")
    frame = in_frame(page, running.service)
    assert statement in frame.locator("blockquote").inner_text()
    for word in ("fooled", "model says", "w-"):
        assert word not in frame.locator("main").inner_text()
    choice = frame.locator(f"input[name=label][value={label}]")
    keep = frame.get_by_role("button", name="Keep and see all")
    assert_unscrolled(page, frame.locator("blockquote"), choice, keep)
    look_at(page, f"11-validate-{number}", frame=frame)
    choice.check()
    keep.click()
    frame.get_by_role("heading", name="You have judged the statement").wait_for()
    look_at(page, f"12-judged-{number}", frame=frame)
    frame.get_by_role("button", name="Submit", exact=True).click()
    page.wait_for_url("**/submitted")


def settle_and_read(running: Running, page: Any, written: tuple[str, str], folder: Path) -> None:
    """Finance sees what is owed, pays it, and page, report, export, books and worker's dashboard agree."""
    for _ in until(60, "the bonus to be owed"):
        plan = running.dynahit("payments", "settle", "--plan")
        if "$0.36" in plan:
            break
    name, password = running.login()
    page.goto(f"{running.service}/finance")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    look_at(page, "20-staff-sign-in")
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{running.service}/finance")
    look_at(page, "21-finance-owed")

    assert "Paid: 1 bonus" in running.dynahit("payments", "settle", "--yes")
    assert "1 bonus" not in running.dynahit("payments", "settle", "--yes").replace("no bonus", "")
    assert "agree" in running.dynahit("payments", "reconcile")
    page.reload()
    look_at(page, "22-finance-paid")
    page.goto(f"{running.service}/rounds")
    look_at(page, "23-rounds")
    page.get_by_role("link", name=re.compile("[Rr]ound 1")).first.click()
    page.wait_for_load_state()
    look_at(page, "24-round")

    report = folder / "report.csv"
    running.dynahit("payments", "report", "--csv", str(report))
    rows = list(csv.reader(report.read_text(encoding="utf-8").splitlines()))
    assert len(rows) > 1
    exported = folder / "round-1.jsonl"
    running.dynahit("export", "sentiment", "--round", "1", "--out", str(exported))
    text = exported.read_text(encoding="utf-8")
    found = [json.loads(line) for line in text.splitlines()]
    label, statement = written
    assert [(one["goal_label"], one["fooled"]) for one in found] == [(label, False), (label, False), (label, True)]
    assert found[2]["answer"] == {"statement": statement}
    assert found[2]["verdict"] == "valid_and_model_wrong"
    assert [vote["label"] for vote in found[2]["votes"]] == [label, label]
    assert found[2]["attribution"]["words"]
    assert found[2]["why"] == "Any reader sees that."
    for secret in worker_ids(running):
        assert secret not in text
        assert secret not in report.read_text(encoding="utf-8")
        for log in (running.folder / "logs").iterdir():
            assert secret not in log.read_text(encoding="utf-8"), log


def worker_ids(running: Running) -> list[str]:
    """The workers' ids on the marketplace, which nobody may find outside the one table that holds them."""
    from sqlalchemy import create_engine, text

    engine = create_engine(f"sqlite:///{running.folder / 'dynahit.db'}")
    with engine.connect() as connection:
        found = list(connection.scalars(text("SELECT mturk_worker_id FROM worker")))
    engine.dispose()
    assert len(found) == 3
    return found
