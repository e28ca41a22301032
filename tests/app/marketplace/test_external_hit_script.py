"""A page written for MTurk, on another host, that prepares its form with the marketplace's externalHIT_v1.js."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, render_template_string

from tests.app.marketplace.conftest import hit_params, question, serving
from tests.app.marketplace.test_browser import Site, join, page, site  # noqa: F401  # fixtures

pytestmark = pytest.mark.browser

OLD_PAGE = """<!doctype html><html lang="en"><title>Old task</title><link rel="icon" href="data:,">
<script src="{{ marketplace }}/static/js/externalHIT_v1.js"></script>
<form id="mturk_form" method="post" action="https://www.mturk.com/mturk/externalSubmit">
<input type="hidden" id="assignmentId" name="assignmentId" value="">
<label>Sentence <input name="sentence"></label><p id="batch"></p>
<input type="submit" id="submitButton" value="Submit"></form>
<script>turkSetAssignmentID(); document.getElementById("batch").textContent = turkGetParam("batch", "none")</script>"""


@pytest.fixture
def old_page(site: Site) -> Iterator[str]:  # noqa: F811
    """The address of the page, on another site than the marketplace."""
    pages = Flask("old_page")
    pages.add_url_rule("/task", view_func=lambda: render_template_string(OLD_PAGE, marketplace=site.url))
    with serving(pages) as server:
        yield f"http://localhost:{server.server_port}/task"


def test_an_old_page_is_previewed_accepted_and_submitted(
    site: Site,  # noqa: F811
    old_page: str,
    page: Any,  # noqa: F811
) -> None:
    hit = site.engine.call(
        site.requester_id, "CreateHIT", hit_params(Question=question(f"{old_page}?batch=a%26b%20c"), MaxAssignments=1)
    )["HIT"]
    join(site, page)

    page.get_by_role("link", name="Preview: Write a statement").click()
    button = page.frame_locator("iframe").get_by_role("button")
    button.wait_for()
    assert button.get_attribute("value") == "You must ACCEPT the HIT before you can submit the results."
    assert button.is_disabled()
    page.get_by_role("button", name="Accept this HIT").click()
    frame = page.frame_locator("#hit-frame")
    frame.get_by_label("Sentence").fill("From an old page")
    assert frame.locator("#batch").text_content() == "a&b c"
    frame.get_by_role("button", name="Submit").click()

    page.get_by_role("heading", name="Your work is submitted").wait_for()
    (assignment,) = site.engine.call(site.requester_id, "ListAssignmentsForHIT", {"HITId": hit["HITId"]})["Assignments"]
    assert "<FreeText>From an old page</FreeText>" in assignment["Answer"]


@pytest.mark.parametrize(
    ("query", "host"),
    [
        ("turkSubmitTo=https%3A%2F%2Fwork.example.org", "https://work.example.org"),
        ("turkSubmitTo=https%3A%2F%2Fwork.example.org%2F", "https://work.example.org"),
        ("turkSubmitTo=javascript%3Aalert(1)%2F%2F", None),
        ("assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE", None),
    ],
)
def test_the_place_to_submit_to_is_the_given_site_or_the_scripts_own(
    site: Site,  # noqa: F811
    old_page: str,
    page: Any,  # noqa: F811
    query: str,
    host: str | None,
) -> None:
    page.goto(f"{old_page}?{query}")

    assert page.evaluate("turkGetSubmitToHost()") == (host or site.url)
    assert page.evaluate("document.getElementById('mturk_form').action") == (host or site.url) + "/mturk/externalSubmit"
    assert page.evaluate("[turkGetParam('nothing', 'x'), turkGetParam('nothing')]") == ["x", ""]


def test_another_form_with_a_button_element_and_no_hidden_field_is_prepared(
    site: Site,  # noqa: F811
    old_page: str,
    page: Any,  # noqa: F811
) -> None:
    page.goto(f"{old_page}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")
    page.evaluate(
        """() => {
          document.body.innerHTML = '<form id="mine" method="post"><button id="go">Send</button></form>';
          turkSetAssignmentID("mine", "go");
        }"""
    )

    assert page.locator("#go").text_content() == "You must ACCEPT the HIT before you can submit the results."
    assert page.locator("#mine input[name=assignmentId]").input_value() == "ASSIGNMENT_ID_NOT_AVAILABLE"
