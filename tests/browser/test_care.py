"""The way through a task with disturbing texts, by keyboard alone: consent, warning, reveal, cap, exit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hits.models import Assignment, Consent, Exposure, Vote
from hits.states import AssignmentState
from tests.app.four_tasks import CONTEXTS
from tests.browser.framed import press, violations
from tests.browser.test_task_pages import World, made_world

pytestmark = pytest.mark.browser


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with made_world(
        tmp_path, exposure_cap=1, break_after=1, support_line="Call 0800 111 0 111, day and night."
    ) as made:
        yield made


def at(page: Any, address: str) -> Any:
    page.goto(address)
    page.frames[1].wait_for_load_state("load")
    return page.frames[1]


def test_the_hate_speech_path_by_keyboard_alone(world: World, page: Any) -> None:
    seen: list[str] = []
    frame = at(page, world.framed(world.validation["hate"], "AREADER"))

    def look(wanted: str) -> None:
        frame.wait_for_selector(wanted)
        seen.extend(violations(page))

    look("h1:has-text('Do you agree?')")
    press(page, frame, "I agree, go on")
    look("h1:has-text('Before you go on')")
    assert "0800 111 0 111" in frame.inner_text("main")
    assert "Quillby" not in frame.content()
    press(page, frame, "I have read this, go on")
    look("text=1 of 2")
    assert "Quillby" not in frame.content()
    press(page, frame, "Show the message")
    look("blockquote:has-text('Quillby')")
    # What is read out: the place among the messages has the focus, the text follows, and the break is announced.
    assert frame.evaluate("document.activeElement.innerText") == "Message 1 of 2"
    heard = frame.locator("#item").aria_snapshot()
    for words in (
        'heading "Message 1 of 2"',
        "status:",
        "blockquote: Another lot from Quillby",
        "Is this message hateful",
    ):
        assert words in heard, heard
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    look("text=2 of 2")
    assert "Quillby" not in frame.content()
    press(page, frame, "Show the message")
    look("[role=alert]:has-text('You have read 1 such text today')")
    assert "Quillby" not in frame.content()
    press(page, frame, "Stop here and hand in")
    frame.wait_for_selector("h1:has-text('Submitted')")

    # The same person writes: nothing more is begun today. Somebody else does, and stops early.
    frame = at(
        page, world.framed(world.creation["hate"], "AREADER").replace("assignmentId%3DAREADER", "assignmentId%3DAMORE")
    )
    look("text=Enough for today")
    frame = at(page, world.framed(world.creation["hate"], "AWRITES"))
    press(page, frame, "I agree, go on")
    frame.wait_for_selector("h1:has-text('Before you go on')")
    press(page, frame, "I have read this, go on")
    frame.wait_for_selector("h1.goal")
    assert CONTEXTS["hate"]["prompt"] not in frame.content()
    press(page, frame, "Show what I start from")
    look(f"#starting-point:has-text('{CONTEXTS['hate']['prompt']}')")
    assert frame.evaluate("document.activeElement.id") == "starting-point"
    frame.focus("#message")
    page.keyboard.type("This message is hateful, they say.")
    page.keyboard.press("Control+Enter")
    look("text=The model got it right")
    press(page, frame, "Stop here and hand in")
    frame.wait_for_selector("h1:has-text('Submitted')")

    assert seen == []
    assert [(one.subject.partition(":")[0], one.number) for one in world.rows(Exposure)] == [
        ("example", 1),
        ("context", 1),
    ]
    assert len(world.rows(Consent)) == 2
    assert len(world.rows(Vote)) == 1
    left = [one for one in world.rows(Assignment) if one.left_at is not None]
    assert [one.state for one in left] == [AssignmentState.SAVED] * 2
    assert len(world.submitted) == 2


def test_who_does_not_agree_tells_the_worker_site_and_leaves_nothing(world: World, page: Any) -> None:
    frame = at(page, world.framed(world.creation["hate"], "ADECLINES"))
    before = len(world.rows(Assignment))

    press(page, frame, "I don't agree")

    page.wait_for_function("document.title.includes('return')")
    frame.wait_for_selector("h1:has-text('You did not agree, and that is fine')")
    assert violations(page) == []
    assert len(world.rows(Assignment)) == before
    assert world.rows(Consent) == []
