"""A worker's whole walk in a real browser, with the HIT's page on another site; axe on each page."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, render_template_string, request
from pydantic import SecretStr

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace.clock import SystemClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.questions import write_html_question
from hits.marketplace.settings import MarketplaceSettings
from tests.app.marketplace.conftest import PASSWORD, hit_params, question, serving
from tests.app.marketplace.test_forms import FORM
from tests.app.marketplace.test_qualifications import WITH_TEST

pytestmark = pytest.mark.browser

ARTIFACTS = Path(__file__).resolve().parents[3] / "artifacts" / "marketplace"
#: What sticks out of the window to the right, when the page can be scrolled sideways.
TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > width)
    .map((element) => element.outerHTML.slice(0, 200));
}"""
#: What the browser notes of refusals: the late half of a double click, a form that comes back with what is wrong, a
#: page that tries to lead the whole window away.
EXPECTED = ("409 (CONFLICT)", "422 (UNPROCESSABLE", "Unsafe attempt to initiate navigation")
HIT_PAGE = """<!doctype html><html lang="en"><title>Task</title><h1>Write a sentence</h1>
<form method="post" action="{{ target }}/mturk/externalSubmit">
<input type="hidden" name="assignmentId" value="{{ assignment_id }}">
<label>Sentence <input name="sentence" {{ 'disabled' if preview }}></label>
<button {{ 'disabled' if preview }}>Submit</button></form>
<button id="decline">I do not want to do this</button>
<script>document.getElementById("decline").onclick = () => parent.postMessage({dynahit: "return"}, "*");</script>"""


class Site:
    """A marketplace and a HIT's page, served on two sites."""

    def __init__(self, url: str, page_url: str, engine: Marketplace, requester_id: str) -> None:
        self.url = url
        self.page_url = page_url
        self.engine = engine
        self.requester_id = requester_id

    def create_hit(self, **changes: Any) -> dict[str, Any]:
        """Publish a HIT that opens the page, or shows another question."""
        params = hit_params(**{"Question": question(self.page_url), **changes})
        return self.engine.call(self.requester_id, "CreateHIT", params)["HIT"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    page = Flask("hit_page")

    @page.get("/hit")
    def hit() -> str:
        return render_template_string(
            HIT_PAGE,
            target=request.args.get("turkSubmitTo", ""),
            assignment_id=request.args["assignmentId"],
            preview=request.args["assignmentId"] == "ASSIGNMENT_ID_NOT_AVAILABLE",
        )

    class Late:
        app: Any = None

        def __call__(self, environ: Any, start_response: Any) -> Any:
            return self.app(environ, start_response)

    late = Late()
    with serving(page) as page_server, serving(late) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        database_url = f"sqlite:///{tmp_path / 'marketplace.db'}"
        content_url = f"http://localhost:{server.server_port}"
        marketplace_settings = MarketplaceSettings.for_tests(site_url=url, content_url=content_url)
        engine = Marketplace(database_url, settings=marketplace_settings, clock=SystemClock())
        engine.create_schema()
        late.app = create_app(
            Settings(database_url=database_url, secret_key=SecretStr("0123456789abcdef" * 2), site_url=url),
            marketplace=engine,
        )
        requester = engine.create_requester("Sentiment Lab", email="lab@example.org", password=PASSWORD)
        engine.top_up(requester.requester_id, Decimal(100), "seed")
        # localhost and 127.0.0.1 are two sites to a browser.
        yield Site(url, f"http://localhost:{page_server.server_port}/hit", engine, requester.requester_id)
        engine.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 700})
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()
    assert [problem for problem in problems if not any(one in problem for one in EXPECTED)] == []


def check(page: Any, name: str) -> None:
    """Look at one page: no axe findings, nothing wider than the window; keep pictures of three kinds."""
    from axe_playwright_python.sync_playwright import Axe

    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    for kind, width, height, scheme in [
        ("phone", 375, 740, "light"),
        ("narrow", 320, 640, "light"),
        ("dark", 1280, 700, "dark"),
        ("wide", 1280, 700, "light"),
    ]:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        # The new size arrives a moment later; what is measured before belongs to neither.
        # (wait_for_function would evaluate a string in the page, which the page's policy forbids.)
        for _ in range(100):
            if page.evaluate("innerWidth") == width:
                break
            page.wait_for_timeout(50)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.evaluate(TOO_WIDE) == [], (name, kind)
        if kind != "narrow":
            page.screenshot(path=str(ARTIFACTS / f"{name}-{kind}.png"))
        if kind in {"wide", "dark"}:
            found = Axe().run(page).response["violations"]
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], (name, kind)


def join(site: Site, page: Any) -> None:
    """Register as ada from an invitation's address."""
    page.goto(f"{site.url}/join?code={site.engine.create_invitation('ada')}")
    page.get_by_label("Choose a user name").fill("ada")
    page.get_by_label("Choose a password").fill(PASSWORD)
    page.get_by_role("button", name="Create my account").click()
    page.get_by_role("heading", name="HITs", exact=True).wait_for()


def test_a_worker_joins_looks_works_submits_and_sees_it(site: Site, page: Any) -> None:
    site.create_hit(MaxAssignments=1)
    site.create_hit(MaxAssignments=1)
    code = site.engine.create_invitation("ada")

    page.goto(f"{site.url}/sign-in")
    check(page, "sign-in")
    page.goto(f"{site.url}/join?code={code}")
    check(page, "join")
    page.get_by_label("Choose a user name").fill("ada")
    page.get_by_label("Choose a password").fill(PASSWORD)
    page.get_by_role("button", name="Create my account").click()
    page.get_by_role("heading", name="HITs", exact=True).wait_for()
    check(page, "hits")

    page.get_by_role("link", name="Preview: Write a statement").click()
    assert page.frame_locator("iframe").get_by_role("button", name="Submit").is_disabled()
    check(page, "preview")
    page.get_by_role("button", name="Accept this HIT").click()

    frame = page.frame_locator("#hit-frame")
    frame.get_by_label("Sentence").wait_for()
    check(page, "work")
    box = page.locator("#hit-frame").bounding_box()
    assert box["width"] == 1280
    assert box["height"] >= 700 - 48
    assert page.evaluate("document.documentElement.scrollHeight") <= 700
    page.reload()
    frame.get_by_label("Sentence").fill("A fine day")
    frame.get_by_role("button", name="Submit").click()

    page.get_by_role("heading", name="Your work is submitted").wait_for()
    assert page.url.endswith("/submitted")
    check(page, "submitted")
    page.get_by_role("button", name="Accept the next HIT of this kind").click()
    frame.get_by_role("button", name="I do not want to do this").click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    check(page, "return-dialog")
    page.keyboard.press("Escape")
    page.goto(f"{site.url}/work")
    check(page, "my-hits")
    page.set_viewport_size({"width": 375, "height": 740})
    for words in ("Continue: Write a statement", "Return: Write a statement"):
        box = page.get_by_role("link", name=words).bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 375, words  # in reach without scrolling the table
    page.set_viewport_size({"width": 1280, "height": 700})
    page.get_by_role("link", name="Return: Write a statement").click()
    check(page, "return")
    page.get_by_label("Why do you return it?").fill("Enough for today")
    page.get_by_role("button", name="Return the HIT").click()
    page.get_by_text("You returned").wait_for()
    page.get_by_role("link", name="Dashboard").click()
    page.get_by_role("heading", name="Dashboard").wait_for()
    check(page, "dashboard")
    page.get_by_role("link", name="ada").click()
    check(page, "profile")
    (assignment,) = [
        assignment
        for hit in site.engine.call(site.requester_id, "ListHITs", {})["HITs"]
        for assignment in site.engine.call(site.requester_id, "ListAssignmentsForHIT", {"HITId": hit["HITId"]})[
            "Assignments"
        ]
    ]
    assert "<FreeText>A fine day</FreeText>" in assignment["Answer"]


def test_a_form_is_filled_in_by_keyboard_and_shows_what_is_wrong(site: Site, page: Any) -> None:
    hit = site.create_hit(MaxAssignments=1, Question=FORM)
    join(site, page)
    page.get_by_role("link", name="Preview:").click()
    assert page.get_by_role("radio", name="BLUE").is_disabled()
    check(page, "form-preview")
    page.get_by_role("button", name="Accept this HIT").click()
    page.get_by_role("group", name="Question 1 What colour is the sky?").get_by_role("radio", name="BLUE").focus()
    check(page, "form-work")

    page.keyboard.press("Space")
    words = page.get_by_role("group", name="Question 2")
    for name in ("GOOD", "BAD", "UGLY"):
        words.get_by_role("checkbox", name=name).check()
    page.get_by_label("Which town?").select_option("rome")
    page.get_by_label("How warm?").fill("21.5")
    page.get_by_label("Why?").fill("Because of the light.")
    page.get_by_role("button", name="Submit").click()

    page.get_by_role("link", name="Question 2").wait_for()
    check(page, "form-errors")
    assert page.get_by_label("Why?").input_value() == "Because of the light."
    assert page.get_by_role("radio", name="BLUE").is_checked()
    page.get_by_role("link", name="Question 2").click()
    assert page.evaluate("document.activeElement.id") == "question-2"
    words.get_by_role("checkbox", name="BAD").uncheck()
    page.get_by_role("link", name="Return this HIT").click()
    page.get_by_role("button", name="Keep working").click()
    page.get_by_role("button", name="Submit").click()

    page.get_by_role("heading", name="Your work is submitted").wait_for()
    (assignment,) = site.engine.call(site.requester_id, "ListAssignmentsForHIT", {"HITId": hit["HITId"]})["Assignments"]
    assert "<SelectionIdentifier>rome</SelectionIdentifier>" in assignment["Answer"]


OF_MTURK = """<!doctype html><html lang="en"><title>Task</title>
<script src="https://s3.amazonaws.com/mturk-public/externalHIT_v1.js"></script><h1>Name a colour</h1>
<form name="mturk_form" method="post" id="mturk_form" action="https://www.mturk.com/mturk/externalSubmit">
<input type="hidden" value="" name="assignmentId" id="assignmentId"><label>Colour <input name="colour"></label>
<input type="hidden" name="seen" id="seen"><input type="submit" id="submitButton" value="Submit"></form>
<script>turkSetAssignmentID();
const tried = {};
for (const [name, attempt] of Object.entries({
  cookie: () => document.cookie, parent: () => parent.document.title, storage: () => localStorage.length,
  top: () => { top.location.href = "about:blank"; },
})) { try { attempt(); tried[name] = "done"; } catch (error) { tried[name] = error.name; } }
document.getElementById("seen").value = JSON.stringify({origin: self.origin, ...tried});
</script>"""


def test_a_page_of_html_written_for_mturk_works_shut_in_and_cannot_touch_the_site(site: Site, page: Any) -> None:
    hit = site.create_hit(MaxAssignments=1, Question=write_html_question(OF_MTURK, 0))
    join(site, page)
    page.get_by_role("link", name="Preview:").click()
    assert page.frame_locator("iframe").locator("#submitButton").is_disabled()
    check(page, "html-preview")
    page.get_by_role("button", name="Accept this HIT").click()
    frame = page.frame_locator("#hit-frame")
    frame.get_by_label("Colour").fill("grün")
    check(page, "html-work")

    frame.locator("#submitButton").click()

    page.get_by_role("heading", name="Your work is submitted").wait_for()
    assert page.url.endswith("/submitted")
    (assignment,) = site.engine.call(site.requester_id, "ListAssignmentsForHIT", {"HITId": hit["HITId"]})["Assignments"]
    assert "<FreeText>gr&#252;n</FreeText>" in assignment["Answer"]
    seen = json.loads(html.unescape(assignment["Answer"].split("seen</QuestionIdentifier><FreeText>")[1].split("<")[0]))
    assert seen == dict.fromkeys(("cookie", "parent", "storage", "top"), "SecurityError") | {"origin": "null"}


def test_a_worker_takes_a_test_and_then_qualifies(site: Site, page: Any) -> None:
    kind = {"Name": "Fluent in Norwegian", "Description": "You read it.", "QualificationTypeStatus": "Active"}
    made = site.engine.call(site.requester_id, "CreateQualificationType", {**kind, **WITH_TEST})["QualificationType"]
    needed = {"QualificationTypeId": made["QualificationTypeId"], "Comparator": "GreaterThan", "IntegerValues": [50]}
    site.create_hit(QualificationRequirements=[needed])
    join(site, page)
    page.get_by_role("link", name="Qualifications", exact=True).click()
    page.get_by_role("heading", name="Qualifications", exact=True).wait_for()
    check(page, "qualifications")
    page.get_by_role("link", name="HITs", exact=True).click()
    check(page, "hits-not-qualified")
    page.get_by_role("link", name="See how to get the qualification").click()
    page.get_by_role("heading", name="Fluent in Norwegian").wait_for()
    check(page, "qualification")
    page.get_by_role("button", name="Begin the test").click()
    page.get_by_role("radio", name="BLUE").check()
    check(page, "test")
    for name in ("2", "3"):
        page.get_by_role("checkbox", name=name).check()

    page.get_by_role("button", name="Hand in the test").click()

    page.get_by_text("You now have the qualification").wait_for()
    check(page, "qualification-passed")
    page.get_by_role("link", name="HITs", exact=True).click()
    page.get_by_text("You qualify").wait_for()
    page.get_by_role("link", name="Messages").click()
    page.get_by_role("heading", name="Messages").wait_for()
    check(page, "messages")


def test_a_worker_writes_to_the_requester_and_reports_a_hit(site: Site, page: Any) -> None:
    site.create_hit(MaxAssignments=1)
    join(site, page)
    page.get_by_role("button", name="Accept:").click()
    page.frame_locator("#hit-frame").get_by_label("Sentence").fill("Not lost")
    with page.context.expect_page() as beside:
        page.get_by_role("link", name="Write to the requester or report this HIT (opens in a new tab)").click()
    tab = beside.value
    tab.get_by_role("heading", name="Write to the requester").wait_for()
    tab.get_by_role("button", name="Send the message").click()
    # The browser itself asks for words first.
    assert tab.url.endswith("/contact")
    tab.get_by_label("Your message").fill("Is German fine?")
    check(tab, "contact")
    tab.get_by_role("button", name="Send the message").click()
    tab.get_by_text("Your message was sent to Sentiment Lab.").wait_for()
    check(tab, "messages-sent")
    tab.close()
    assert page.frame_locator("#hit-frame").get_by_label("Sentence").input_value() == "Not lost"
    page.frame_locator("#hit-frame").get_by_role("button", name="Submit").click()
    page.get_by_role("link", name="Report this HIT", exact=True).click()
    page.get_by_role("heading", name="Report this HIT").wait_for()
    page.get_by_label("It asks for personal data").check()
    page.get_by_label("In your words").fill("It wants my address.")
    check(page, "report")
    page.get_by_role("button", name="Send the report").click()
    page.get_by_text("Your report was sent to the operator").wait_for()
    (message,) = site.engine.requester_messages(site.requester_id).messages
    site.engine.reply_to_worker(site.requester_id, message.message_id, "Yes, German is fine. " * 12)
    site.engine.close_report(site.engine.reports().reports[0].report_id, "We asked the requester to stop.")

    page.get_by_role("link", name="Messages").click()
    page.get_by_role("link", name="Messages 2 new").wait_for()
    page.get_by_text("We asked the requester to stop.").wait_for()
    check(page, "messages-received")
    page.get_by_role("button", name="Mark all as read").click()
    page.get_by_role("link", name="Messages", exact=True).first.wait_for()


def test_lists_with_pages_and_measured_pay_fit(site: Site, page: Any) -> None:
    for number in range(26):
        site.create_hit(Title=f"Kind {number}", MaxAssignments=9)
    join(site, page)
    me = site.engine.authenticate_worker("ada", PASSWORD).worker_id
    groups = site.engine.hit_groups(me, page_size=50).groups
    people = [
        site.engine.register_worker(site.engine.create_invitation(), f"worker{number}", PASSWORD).worker_id
        for number in range(5)
    ]
    for worker_id in people:
        work = site.engine.accept(worker_id, groups[0].hit_id)
        site.engine.external_submit(work.assignment_id, {"a": ["1"]})
    page.goto(f"{site.url}/hits?sort=wage")
    page.get_by_text("Page 1 of 2").wait_for()
    check(page, "hits-many")
    page.get_by_role("link", name="Next page").click()
    page.get_by_text("Page 2 of 2").wait_for()
    assert page.get_by_label("Sort by").input_value() == "wage"


def test_a_page_of_html_can_ask_and_open_other_sites(site: Site, page: Any) -> None:
    html_page = (
        "<!doctype html><html lang='en'><title>Task</title><form method='post' action='/mturk/externalSubmit' "
        "onsubmit=\"return confirm('Sure?')\"><input type='hidden' name='assignmentId' id='assignmentId'>"
        f"<a href='{site.page_url}?assignmentId=x' target='_blank'>Look there</a><button>Submit</button>"
        "<input type='hidden' name='a' value='1'></form><script>document.getElementById('assignmentId').value = "
        "new URLSearchParams(location.search).get('assignmentId');</script>"
    )
    site.create_hit(MaxAssignments=1, Question=write_html_question(html_page, 0))
    join(site, page)
    page.get_by_role("button", name="Accept:").click()
    frame = page.frame_locator("#hit-frame")
    with page.context.expect_page() as beside:
        frame.get_by_role("link", name="Look there").click()
    tab = beside.value
    tab.get_by_role("heading", name="Write a sentence").wait_for()
    # A site of its own, which has its storage, and no hold of ours.
    assert tab.evaluate("[origin, opener, localStorage.length]") == [site.page_url.removesuffix("/hit"), None, 0]
    tab.close()
    page.once("dialog", lambda dialog: dialog.accept())
    frame.get_by_role("button", name="Submit").click()

    page.get_by_role("heading", name="Your work is submitted").wait_for()


def test_without_script_the_walk_works_too(site: Site, browser: Any) -> None:
    site.create_hit(MaxAssignments=1)
    context = browser.new_context(java_script_enabled=False, viewport={"width": 375, "height": 740})
    page = context.new_page()

    join(site, page)
    page.get_by_role("button", name="Accept").click()
    frame = page.frame_locator("#hit-frame")
    frame.get_by_label("Sentence").fill("Plain")
    frame.get_by_role("button", name="Submit").click()
    frame.get_by_role("heading", name="Your work is submitted").wait_for()
    page.get_by_role("link", name="HITs").click()
    page.get_by_role("link", name="Dashboard").click()
    page.get_by_text("Waiting", exact=True).wait_for()
    context.close()


def test_long_words_and_right_to_left_text_fit(site: Site, page: Any) -> None:
    site.create_hit(
        MaxAssignments=1,
        Title="Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
        Description="اكتب جملة قصيرة تخدع النموذج. "
        + "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz" * 3,
    )
    join(site, page)
    check(page, "long-hits")
    page.get_by_role("link", name="Preview:").click()
    check(page, "long-preview")
    page.get_by_role("button", name="Accept this HIT").click()
    page.frame_locator("#hit-frame").get_by_label("Sentence").wait_for()
    check(page, "long-work")


def test_the_countdown_says_when_time_gets_short_and_is_over(site: Site, page: Any) -> None:
    site.create_hit(MaxAssignments=1)
    join(site, page)
    page.clock.install()
    page.get_by_role("button", name="Accept").click()
    page.locator("[data-countdown]").wait_for()
    # The countdown takes its start when its script runs, which is a moment after the element is there.
    page.wait_for_load_state("domcontentloaded")

    page.clock.fast_forward("54:30")
    assert page.locator("[data-countdown-said]").text_content() == ""
    page.clock.fast_forward("00:40")
    assert page.locator("[data-countdown-said]").text_content() == "5 minutes left."
    page.clock.fast_forward("04:00")
    assert page.locator("[data-countdown-said]").text_content() == "1 minute left."
    assert page.locator("#time-over").text_content() == ""
    page.clock.fast_forward("01:00")

    assert page.locator("[data-countdown-value]").text_content() == "0:00"
    assert "can no longer be submitted" in page.locator("#time-over").text_content()
    check(page, "time-over")


def test_the_keyboard_alone_leads_from_sign_in_into_the_frame(site: Site, page: Any) -> None:
    site.create_hit(MaxAssignments=1)
    join(site, page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to main content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label') || ''").startswith("Accept:"):
            break
    page.keyboard.press("Enter")
    page.frame_locator("#hit-frame").get_by_label("Sentence").wait_for()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "hit-frame":
            break
    page.keyboard.type("By hand")
    page.keyboard.press("Enter")

    page.get_by_role("heading", name="Your work is submitted").wait_for()


def test_a_double_click_on_submit_ends_at_the_receipt(site: Site, page: Any) -> None:
    hit = site.create_hit(MaxAssignments=1)
    join(site, page)
    page.get_by_role("button", name="Accept").click()
    frame = page.frame_locator("#hit-frame")
    frame.get_by_label("Sentence").fill("Twice")

    frame.get_by_role("button", name="Submit").dblclick(no_wait_after=True)

    page.get_by_role("heading", name="Your work is submitted").wait_for()
    assert site.engine.call(site.requester_id, "ListAssignmentsForHIT", {"HITId": hit["HITId"]})["NumResults"] == 1


def test_a_frame_cannot_pretend_that_it_was_submitted_or_lead_the_page_away(site: Site, page: Any) -> None:
    site.create_hit(MaxAssignments=1)
    join(site, page)
    page.get_by_role("button", name="Accept").click()
    page.frame_locator("#hit-frame").get_by_label("Sentence").wait_for()
    assignment_id = page.locator("#hit-frame").get_attribute("data-assignment")
    frame = next(frame for frame in page.frames if frame.url.startswith(site.page_url))

    frame.evaluate("id => parent.postMessage({marketplace: 'submitted', assignmentId: id}, '*')", assignment_id)
    page.evaluate("window.postMessage({dynahit: 'return'}, '*')")
    page.wait_for_timeout(300)

    assert page.url.endswith(f"/work/{assignment_id}")
    assert not page.locator("#return-dialog").is_visible()


def test_the_requester_console_is_readable(site: Site, page: Any) -> None:
    page.goto(f"{site.url}/requester/sign-in")
    check(page, "requester-sign-in")
    page.get_by_label("E-mail address").fill("lab@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    site.create_hit()
    page.reload()
    check(page, "requester-overview")
    page.get_by_role("link", name="Account").click()
    page.get_by_role("heading", name="Account", exact=True).wait_for()
    check(page, "requester-account")
