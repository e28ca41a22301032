"""HTML of requesters is served at a host name of its own, shut in; nothing else is served there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask

from app.marketplace import content
from app.marketplace.content import at_home
from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace import crowd_elements
from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.questions import write_html_question
from hits.marketplace.settings import MarketplaceSettings
from tests.app.marketplace.conftest import CONTENT_URL, Account, Visitor, accepted, hit_params, new_worker

PAGE = "<!doctype html><form action='/mturk/externalSubmit'><input name='a'></form><script>evil()</script>"
AMAZON_SCRIPT = "s3.amazonaws.com/mturk-public/externalHIT_v1.js"
SECOND = {"Host": urlsplit(CONTENT_URL).netloc}


@pytest.fixture
def html_hit(engine: Marketplace, account: Account) -> str:
    params = hit_params(Question=write_html_question(PAGE, 0))
    return str(engine.call(account.requester_id, "CreateHIT", params)["HIT"]["HITId"])


def frame_address(worker: Visitor) -> str:
    frame = worker.page.find("iframe")
    assert frame is not None
    assert str(frame["src"]).startswith(CONTENT_URL + "/hit-content/")
    return str(frame["src"])


def test_the_frame_leads_to_the_second_origin_with_the_parameters(worker: Visitor, html_hit: str) -> None:
    preview = worker.get(f"/hits/{html_hit}")
    assert "assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE" in frame_address(worker)
    assignment_id = accepted(worker, html_hit)

    address = frame_address(worker)
    for words in (f"assignmentId={assignment_id}", f"hitId={html_hit}", "workerId=A", "turkSubmitTo=http%3A%2F%2F"):
        assert words in address
    assert f"frame-src 'self' {CONTENT_URL};" in preview.headers["Content-Security-Policy"]


def test_the_page_is_shut_in_and_gets_no_cookie(worker: Visitor, html_hit: str) -> None:
    accepted(worker, html_hit)

    response = worker.client.get(frame_address(worker), headers=SECOND)

    assert response.status_code == 200
    assert "<script>evil()</script>" in response.text
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith(f"sandbox {content.CONTENT_SANDBOX};")
    assert "allow-same-origin" not in policy
    assert "allow-top-navigation" not in policy
    assert "frame-ancestors http://127.0.0.1:8000" in policy
    assert f"form-action http://127.0.0.1:8000 {CONTENT_URL};" in policy
    assert "X-Frame-Options" not in response.headers
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in response.headers
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000"])
def test_the_sites_own_host_names_never_serve_it(worker: Visitor, html_hit: str, host: str) -> None:
    worker.get(f"/hits/{html_hit}")

    response = worker.client.get(frame_address(worker), headers={"Host": host})

    assert response.status_code == 404
    assert "evil()" not in response.text


def test_another_signature_another_hit_and_a_late_visit_get_nothing(
    worker: Visitor, html_hit: str, hit: dict[str, Any], clock: TestClock
) -> None:
    worker.get(f"/hits/{html_hit}")
    address = frame_address(worker)
    wrong = [
        address.replace("contentSignature=", "contentSignature=0"),
        address.replace("contentExpires=", "contentExpires=1"),
        address.replace(f"/{html_hit}?", f"/{hit['HITId']}?"),
        address.partition("?")[0],
        address.partition("?")[0] + "?contentExpires=x&contentSignature=%ff",
    ]

    assert [worker.client.get(one, headers=SECOND).status_code for one in wrong] == [404] * 5
    clock.advance(timedelta(days=2))
    assert worker.client.get(address, headers=SECOND).status_code == 404


def test_everything_else_at_the_second_host_leads_to_the_site(worker: Visitor) -> None:
    for path in ("/", "/hits", "/static/js/hit.js", "/nowhere?x=1", "/requester/sign-in"):
        response = worker.client.get(path, headers=SECOND)
        assert response.status_code == 303
        assert response.location == "http://127.0.0.1:8000" + path
        assert "Set-Cookie" not in response.headers
    assert worker.client.post("/sign-in", headers=SECOND).status_code == 404
    assert worker.client.get("/healthz", headers=SECOND).status_code == 200


def test_a_form_with_a_relative_address_arrives_at_the_site(worker: Visitor, html_hit: str) -> None:
    accepted(worker, html_hit)

    response = worker.client.post("/mturk/externalSubmit", headers=SECOND, data={"a": "1"})

    assert response.status_code == 307
    assert response.location == "http://127.0.0.1:8000/mturk/externalSubmit"


@pytest.mark.parametrize(
    ("written", "served"),
    [
        (
            "<script src='https://s3.amazonaws.com/mturk-public/externalHIT_v1.js'></script>",
            "<script src='https://hits.example.org/static/js/externalHIT_v1.js'></script>",
        ),
        (
            "src=//s3.amazonaws.com/mturk-public/externalHIT_v1.js",
            "src=https://hits.example.org/static/js/externalHIT_v1.js",
        ),
        (
            "src='https://assets.crowd.aws/crowd-html-elements.js'",
            "src='https://hits.example.org/static/js/crowd_elements.js'",
        ),
        (
            'src="//assets.crowd.aws/crowd-html-elements-without-ce-polyfill.js"',
            'src="https://hits.example.org/static/js/crowd_elements.js"',
        ),
        ("'https://www.mturk.com/mturk/externalSubmit'", "'https://work.example.org/mturk/externalSubmit'"),
        ("'https://workersandbox.mturk.com/mturk/externalSubmit'", "'https://work.example.org/mturk/externalSubmit'"),
        (
            "https://www.mturk.com/other https://s3.amazonaws.com/x.js https://assets.crowd.aws/other.js",
            "https://www.mturk.com/other https://s3.amazonaws.com/x.js https://assets.crowd.aws/other.js",
        ),
    ],
)
def test_addresses_of_amazons_that_are_gone_become_those_of_the_marketplace(written: str, served: str) -> None:
    here = at_home(written, site_url="https://work.example.org", content_origin="https://hits.example.org")

    assert here == served


def test_the_page_gets_its_scripts_from_its_own_origin(worker: Visitor, engine: Marketplace, account: Account) -> None:
    scripts = [f"https://{address}" for address in ("assets.crowd.aws/crowd-html-elements.js", AMAZON_SCRIPT)]
    page = "<form></form>" + "".join(f"<script src='{address}'></script>" for address in scripts)
    params = hit_params(Question=write_html_question(page, 0))
    worker.get(f"/hits/{engine.call(account.requester_id, 'CreateHIT', params)['HIT']['HITId']}")
    served = worker.client.get(frame_address(worker), headers=SECOND).text

    found = re.findall(r"src='([^']+)'", served)

    assert found == [f"{CONTENT_URL}/static/js/{name}.js" for name in ("crowd_elements", "externalHIT_v1")]
    for address in found:
        with worker.client.get(address, headers=SECOND) as response:
            assert (response.status_code, response.mimetype) == (200, "text/javascript")
            assert "Set-Cookie" not in response.headers


def test_the_script_defines_exactly_the_elements_that_are_said_to_be_shown() -> None:
    script = (Path(content.__file__).parents[1] / "static" / "js" / "crowd_elements.js").read_text(encoding="utf-8")

    defined = set(re.findall(r'define\("(crowd-[a-z0-9-]+)"', script))
    lacking = set(re.findall(r'"(crowd-[a-z0-9-]+)"', script.split("const NOT_SHOWN = [")[1].split("]")[0]))

    assert defined == crowd_elements.SHOWN
    assert lacking == crowd_elements.NOT_SHOWN
    assert not defined & lacking


@pytest.fixture
def bare(clock: TestClock) -> Iterator[tuple[Flask, Marketplace]]:
    """A site on a public address without a second one."""
    engine = Marketplace("sqlite://", settings=MarketplaceSettings.for_tests(content_url=None), clock=clock)
    settings = Settings(
        database_url="sqlite://",
        secret_key="0123456789abcdef" * 2,  # type: ignore[arg-type]
        site_url="http://work.example.org",
        allowed_hosts=("localhost",),
    )
    app = create_app(settings, marketplace=engine)
    app.testing = True
    # The session's cookie is for https there; the test's client speaks http.
    app.config["SESSION_COOKIE_SECURE"] = False
    yield app, engine
    engine.close()


def test_without_a_second_origin_the_site_says_so_and_the_hit_cannot_be_accepted(
    bare: tuple[Flask, Marketplace],
) -> None:
    app, engine = bare
    requester_id = engine.create_requester("Lab").requester_id
    engine.top_up(requester_id, 100, "seed")  # type: ignore[arg-type]
    hit = engine.call(requester_id, "CreateHIT", hit_params(Question=write_html_question(PAGE, 0)))["HIT"]
    worker = new_worker(app, engine, "ada")

    worker.get("/hits")
    assert "No HITs are open for you" in worker.text()
    assert worker.get(f"/hits/{hit['HITId']}").status_code == 200
    assert "This site cannot show this HIT" in worker.text()
    assert worker.page.find("iframe") is None
    assert worker.page.find("form", action=f"/hits/{hit['HITId']}/accept") is None
    response = worker.post(f"/hits/{hit['HITId']}/accept")
    assert response.status_code == 501
    assert "cannot be accepted here" in worker.text()
    worker.post(f"/groups/{hit['HITGroupId']}/accept")
    assert engine.call(requester_id, "GetHIT", {"HITId": hit["HITId"]})["HIT"]["NumberOfAssignmentsPending"] == 0


def test_a_hit_that_was_held_before_the_second_origin_went_can_still_be_returned(
    engine: Marketplace, worker: Visitor, html_hit: str
) -> None:
    assignment_id = accepted(worker, html_hit)
    engine.settings = MarketplaceSettings.for_tests(content_url=None)

    assert worker.get(f"/work/{assignment_id}").status_code == 501
    worker.get(f"/work/{assignment_id}/return")
    assert worker.post(f"/work/{assignment_id}/return").status_code == 200
    assert "You returned" in worker.text()
