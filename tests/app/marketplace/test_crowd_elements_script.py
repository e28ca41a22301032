"""Pages made of crowd-html elements in a real browser: filled in, checked, submitted, and what the requester reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from lxml import etree

from hits.marketplace.questions import write_html_question
from tests.app.marketplace.test_browser import ARTIFACTS, TOO_WIDE, Site, join, page, site

__all__ = ["page", "site"]

pytestmark = pytest.mark.browser

SCRIPT = '<script src="https://assets.crowd.aws/crowd-html-elements.js"></script>'
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
#: The requester's page has no headings or landmarks of its own, which is theirs to put right.
THEIRS = {"landmark-one-main", "page-has-heading-one", "region"}
Frame = Any


def opened(site: Site, page: Any, content: str) -> tuple[str, Frame]:
    """Publish a page, accept its HIT as ada, and return the HIT's id and the frame."""
    html = f"<!doctype html><html lang='en'><title>Task</title>{SCRIPT}{content}"
    hit_id = site.create_hit(MaxAssignments=1, Question=write_html_question(html, 0))["HITId"]
    join(site, page)
    page.get_by_role("button", name="Accept:").click()
    frame = page.frame_locator("#hit-frame")
    frame.locator("crowd-form form").wait_for(state="attached")
    return hit_id, frame


def sent(site: Site, page: Any, frame: Frame, hit_id: str, button: str = "Submit") -> dict[str, str]:
    """Submit the page and return the fields of the answer's XML."""
    frame.get_by_role("button", name=button).click()
    page.get_by_role("heading", name="Your work is submitted").wait_for()
    listed = site.engine.call(site.requester_id, "ListAssignmentsForHIT", {"HITId": hit_id})["Assignments"]
    root = etree.fromstring(listed[0]["Answer"].encode("ascii"))
    return {answer[0].text: answer[1].text or "" for answer in root}


def answers(site: Site, page: Any, frame: Frame, hit_id: str) -> Any:
    """Submit the page and return what its elements answered."""
    fields = sent(site, page, frame, hit_id)
    assert list(fields) == ["taskAnswers"]
    (found,) = json.loads(fields["taskAnswers"])
    return found


def fill_in(frame: Frame) -> None:
    frame.get_by_label("Colour").fill("grün & <gelb>")
    frame.get_by_label("Why").fill("two\nlines")


def choose(frame: Frame) -> None:
    frame.get_by_role("checkbox", name="Blurry").check()
    frame.get_by_role("checkbox", name="Dim").check()
    frame.get_by_role("checkbox", name="Dim").uncheck()
    frame.get_by_role("switch", name="sure").check()
    frame.get_by_role("radio", name="Yes").check()
    frame.get_by_role("radio", name="No", exact=True).check()


def slide(frame: Frame) -> None:
    frame.get_by_role("slider", name="howMuch").fill("7")
    frame.get_by_role("spinbutton").fill("3")


def classify(frame: Frame) -> None:
    frame.get_by_text("Full instructions").click()
    frame.get_by_role("group", name="Mood?").get_by_role("radio", name='It\'s "bad"').check()
    group = frame.get_by_role("group", name="Which?")
    group.get_by_role("checkbox", name="None of the above").check()
    group.get_by_role("checkbox", name="Dog").check()
    group.get_by_role("checkbox", name="Cat").check()
    frame.get_by_role("group", name="Animal?").get_by_role("radio", name="Dog").check()
    frame.get_by_text("Say why").click()
    frame.get_by_role("textbox", name="Your comment").fill("ears")


def use_plain_controls(frame: Frame) -> None:
    frame.get_by_label("Line").fill("a")
    frame.get_by_label("Pick").select_option("y")
    frame.get_by_label("Several").select_option(["x", "z"])
    frame.get_by_label("Left").check()
    frame.get_by_label("Box").check()


@pytest.mark.parametrize(
    ("content", "act", "expected"),
    [
        (
            """
            <crowd-form><crowd-input name='colour' label='Colour' required></crowd-input>
            <crowd-input name='empty'></crowd-input><crowd-input name='preset' value='p'></crowd-input>
            <crowd-text-area name='why' label='Why' rows='4' char-counter></crowd-text-area></crowd-form>
            """,
            fill_in,
            {"colour": "grün & <gelb>", "preset": "p", "why": "two\nlines"},
        ),
        (
            """
            <crowd-form><crowd-checkbox name='is' value='blurry'>Blurry</crowd-checkbox>
            <crowd-checkbox name='is' value='dim'>Dim</crowd-checkbox>
            <crowd-checkbox name='kept' checked>Kept</crowd-checkbox>
            <crowd-toggle-button name='sure'></crowd-toggle-button><crowd-radio-group>
            <crowd-radio-button name='btn1' value='yes'>Yes</crowd-radio-button>
            <crowd-radio-button name='btn2' value='no'>No</crowd-radio-button></crowd-radio-group></crowd-form>
            """,
            choose,
            {
                "is": {"blurry": True, "dim": False},
                "kept": {"on": True},
                "sure": {"on": True},
                "btn1": {"yes": False},
                "btn2": {"no": True},
            },
        ),
        (
            """
            <crowd-form><crowd-slider name='howMuch' min='1' max='10' step='1' pin required></crowd-slider>
            <crowd-slider name='exact' label='Exact' min='0' max='5' editable></crowd-slider></crowd-form>
            """,
            slide,
            {"howMuch": 7, "exact": 3},
        ),
        (
            """
            <crowd-form>
            <crowd-classifier name='mood' header='Mood?' categories="['Good', 'It\\'s &quot;bad&quot;']">
            <classification-target>A sentence.
            <input name='inside' value='kept' aria-label='Inside'></classification-target>
            <short-instructions>Be quick.</short-instructions>
            <full-instructions header='Full instructions'>Read it all.</full-instructions></crowd-classifier>
            <crowd-classifier-multi-select name='which' header='Which?' categories='["Cat", "Dog"]'
              exclusion-category="{ text: 'None of the above' }"></crowd-classifier-multi-select>
            <crowd-image-classifier name='animal' header='Animal?' src='PIXEL' categories="['Cat','Dog']">
            <worker-comment header='Your comment' link-text='Say why'></worker-comment>
            </crowd-image-classifier></crowd-form>
            """.replace("PIXEL", PIXEL),
            classify,
            {
                "inside": "kept",
                "mood": {"label": 'It\'s "bad"'},
                "which": {"labels": ["Cat", "Dog"]},
                "animal": {"label": "Dog", "workerComment": "ears"},
            },
        ),
        (
            """
            <crowd-form><label>Line <input name='line'></label>
            <label>Pick <select name='pick'><option>x<option>y</select></label>
            <label>Several <select name='several' multiple><option>x<option>y<option>z</select></label>
            <label><input type='radio' name='side' value='l'> Left</label>
            <label><input type='radio' name='side' value='r'> Right</label>
            <label><input type='checkbox' name='box'> Box</label><input type='hidden' name='batch' value='9'>
            <textarea name='none' aria-label='none'></textarea></crowd-form>
            """,
            use_plain_controls,
            {
                "line": "a",
                "pick": "y",
                "several": ["x", "z"],
                "side": {"l": True, "r": False},
                "box": {"on": True},
                "batch": "9",
            },
        ),
    ],
    ids=["text", "choices", "sliders", "classifiers", "plain controls"],
)
def test_what_is_filled_in_arrives_as_from_amazons_elements(
    site: Site, page: Any, content: str, act: Callable[[Frame], None], expected: Any, request: pytest.FixtureRequest
) -> None:
    hit_id, frame = opened(site, page, content)

    act(frame)
    looked_at(page, request.node.callspec.id.replace(" ", "-"))

    assert answers(site, page, frame, hit_id) == expected


def looked_at(page: Any, name: str) -> None:
    """Check the page in the frame as one of our own: axe, 320 pixels; keep a picture."""
    from axe_playwright_python.sync_playwright import Axe

    inner = next(one for one in page.frames if "/hit-content/" in one.url)
    found = Axe().run(inner).response["violations"]
    ours = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found if one["id"] not in THEIRS]
    assert ours == [], name
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(ARTIFACTS / f"crowd-{name}.png"))
    page.set_viewport_size({"width": 320, "height": 640})
    page.wait_for_timeout(200)
    assert inner.evaluate(TOO_WIDE) == []
    page.screenshot(path=str(ARTIFACTS / f"crowd-{name}-narrow.png"))
    page.set_viewport_size({"width": 1280, "height": 700})


def test_flat_answers_have_names_with_dots(site: Site, page: Any) -> None:
    hit_id, frame = opened(
        site,
        page,
        """
            <crowd-form answer-format='flatten-objects'>
            <crowd-classifier name='category' header='Mood?' categories="['Good','Bad']"></crowd-classifier>
            <crowd-checkbox name='sure'>Sure</crowd-checkbox>
            <crowd-input name='note' label='Note'></crowd-input>
            <crowd-slider name='n' max='3' label='N'></crowd-slider>
            <crowd-classifier-multi-select name='m' header='Which?' categories="['A','B']">
            </crowd-classifier-multi-select>
            </crowd-form>
            """,
    )
    frame.get_by_role("radio", name="Bad").check()
    frame.get_by_label("Note").fill("3")
    frame.get_by_role("checkbox", name="B", exact=True).check()

    assert sent(site, page, frame, hit_id) == {
        "category.label": "Bad",
        "sure.on": "false",
        "note": "3",
        "n": "0",
        "m.labels": '["B"]',
    }


def test_what_is_required_holds_the_page_back(site: Site, page: Any) -> None:
    hit_id, frame = opened(
        site,
        page,
        """
            <crowd-form><crowd-input name='a' label='A' required></crowd-input>
            <crowd-slider name='s' required></crowd-slider><crowd-radio-group required aria-label='R'>
            <crowd-radio-button name='r'>One</crowd-radio-button></crowd-radio-group>
            <crowd-classifier-multi-select name='m' header='M' categories="['X']"></crowd-classifier-multi-select>
            <crowd-tabs><crowd-tab header='First'>Words</crowd-tab><crowd-tab header='Second'>
            <crowd-input name='t' label='T' required></crowd-input></crowd-tab></crowd-tabs></crowd-form>
            """,
    )
    steps = (
        lambda: frame.get_by_label("A", exact=True).fill("x"),
        lambda: frame.get_by_role("slider").press("ArrowRight"),
        lambda: frame.get_by_role("radio", name="One").check(),
        lambda: frame.get_by_role("checkbox", name="X").check(),
        lambda: frame.get_by_label("T", exact=True).fill("y"),
    )
    for step in steps:
        frame.get_by_role("button", name="Submit").click()
        page.wait_for_timeout(100)
        assert "/work/" in page.url
        assert not page.url.endswith("/submitted")
        step()

    found = answers(site, page, frame, hit_id)

    assert found == {"a": "x", "s": 1, "r": {"on": True}, "m": {"labels": ["X"]}, "t": "y"}


def test_a_pages_own_scripts_keep_their_say(site: Site, page: Any) -> None:
    hit_id, frame = opened(
        site,
        page,
        """
        <crowd-form><crowd-input name='a' label='Answer'></crowd-input>
        <crowd-button form-action='submit'>Hand in</crowd-button><p id='said'></p></crowd-form>
        <script>
          let tries = 0;
          const form = document.querySelector("crowd-form");
          const input = document.querySelector("crowd-input");
          form.onsubmit = (event) => {
            if (!tries++) {
              event.preventDefault();
              said.textContent = "Once more: " + input.value;
            }
            input.value += "!";
          };
          document.addEventListener("all-crowd-elements-ready", () => {
            const box = document.createElement("crowd-checkbox");
            box.setAttribute("name", "late");
            box.textContent = "Late";
            form.querySelector("form").prepend(box);
          });
          form.addEventListener("change", (event) => { form.dataset.changed = event.target.localName; });
        </script>
        """,
    )
    frame.get_by_label("Answer").fill("x")
    frame.get_by_label("Answer").press("Enter")
    frame.get_by_role("checkbox", name="Late").check()
    assert frame.locator("crowd-form").get_attribute("data-changed") == "crowd-checkbox"
    frame.get_by_role("button", name="Hand in").click()
    frame.get_by_text("Once more: x").wait_for()
    assert frame.get_by_role("button", name="Submit").count() == 0

    fields = sent(site, page, frame, hit_id, "Hand in")

    assert json.loads(fields["taskAnswers"]) == [{"late": {"on": True}, "a": "x!!"}]


def test_instructions_tabs_and_windows_work_by_the_keyboard(site: Site, page: Any) -> None:
    _hit_id, frame = opened(
        site,
        page,
        """
            <crowd-form><crowd-instructions link-text='View instructions' link-type='button'>
            <short-summary>In short</short-summary><detailed-instructions>At length</detailed-instructions>
            <positive-example>Like this</positive-example>
            <negative-example>Not this</negative-example></crowd-instructions><crowd-tabs>
            <crowd-tab header='One'>First words</crowd-tab>
            <crowd-tab header='Two'>Second words</crowd-tab></crowd-tabs>
            <crowd-modal link-text='See more'>More words</crowd-modal>
            <crowd-alert type='warning' dismissible>Mind the step</crowd-alert>
            <crowd-card heading='Card'>Words</crowd-card>
            <crowd-toast opened duration='600'>Soon gone</crowd-toast><crowd-badge label='3'></crowd-badge>
            <crowd-icon-button icon='search'></crowd-icon-button><crowd-fab icon='add' label='Add'></crowd-fab>
            <crowd-button href='https://example.org/'>Away</crowd-button>
            <short-instructions>Short</short-instructions><full-instructions>Full</full-instructions>
            </crowd-form>
            """,
    )
    frame.get_by_text("Soon gone").wait_for(state="hidden")
    looked_at(page, "helpers")
    frame.get_by_role("button", name="View instructions").press("Enter")
    dialog = frame.get_by_role("dialog", name="Instructions")
    for words in ("In short", "At length", "Like this", "Not this"):
        assert dialog.get_by_text(words).is_visible()
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert frame.get_by_role("button", name="View instructions").evaluate("one => one === document.activeElement")
    frame.get_by_role("tab", name="One").press("ArrowRight")
    assert frame.get_by_role("tabpanel", name="Two").is_visible()
    assert not frame.get_by_text("First words").is_visible()
    frame.get_by_role("button", name="Dismiss").press("Enter")
    assert not frame.get_by_text("Mind the step").is_visible()
    frame.get_by_role("button", name="See more").click()
    assert frame.get_by_text("More words").is_visible()
    frame.get_by_role("dialog").get_by_role("button", name="Close").click()
    assert frame.get_by_role("link", name="Away").get_attribute("rel") == "noopener"
    assert frame.get_by_role("button", name="Add").count() == 1


def test_a_preview_can_be_looked_at_and_not_submitted(site: Site, page: Any) -> None:
    form = "<crowd-form><crowd-input name='a' label='A'></crowd-input></crowd-form>"
    html = f"<!doctype html><html lang='en'><title>T</title>{SCRIPT}{form}"
    hit_id = site.create_hit(Question=write_html_question(html, 0))["HITId"]
    page.goto(f"{site.url}/hits/{hit_id}")
    frame = page.frame_locator("iframe")

    frame.get_by_text("Accept the HIT to submit.").wait_for()

    assert frame.get_by_role("button", name="Submit").is_disabled()


def test_elements_that_are_not_there_are_named_before_and_while_one_works(site: Site, page: Any) -> None:
    boxes = f"<!doctype html><html lang='en'>{SCRIPT}<crowd-form><crowd-bounding-box></crowd-bounding-box></crowd-form>"
    lacking = site.create_hit(Question=write_html_question(boxes, 0), Title="Boxes")
    _hit_id, frame = opened(
        site,
        page,
        """
            <crowd-form id='f'></crowd-form>
            <script>setTimeout(() => f.append(document.createElement('crowd-keypoint')), 50)</script>
            """,
    )
    frame.get_by_role("alert").get_by_text("This page needs crowd-keypoint").wait_for()
    page.goto(f"{site.url}/mturk/preview?groupId={lacking['HITGroupId']}")

    page.get_by_text("Its page needs crowd-bounding-box, which this site cannot show.").wait_for()

    assert page.get_by_role("button", name="Accept this HIT").count() == 0
