"""A requester's and an operator's whole walk in a real browser; axe on each page, and no page too wide for a phone."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace.clock import SystemClock
from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from tests.app.marketplace.conftest import PASSWORD, hit_params, serving
from tests.app.marketplace.test_browser import EXPECTED, check

pytestmark = pytest.mark.browser

LAYOUT = (
    "<!doctype html><html lang='en'><title>Layout</title><body><h1>${sentence}</h1>"
    "<form action='https://www.mturk.com/mturk/externalSubmit'><label>Answer <input name='a'></label></form>"
    "</body></html>"
)
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft "


class Town:
    """A marketplace with a requester, an operator, and three workers who handed in a HIT."""

    def __init__(self, url: str, engine: Marketplace) -> None:
        self.url, self.engine = url, engine
        self.requester_id = engine.create_requester(
            "Sentiment Lab", email="lab@example.org", password=PASSWORD
        ).requester_id
        engine.top_up(self.requester_id, Decimal(100), "seed")
        engine.add_operator("olga", PASSWORD, by=Actor.command_line("root"))
        self.hit = engine.call(self.requester_id, "CreateHIT", hit_params(MaxAssignments=5, Title=LONG.strip()))["HIT"]
        self.workers, self.assignments = [], []
        for name in ("ada", "bob", "cleo"):
            worker_id = engine.register_worker(engine.create_invitation(), name, PASSWORD).worker_id
            assignment_id = engine.accept(worker_id, self.hit["HITId"]).assignment_id
            engine.external_submit(assignment_id, {"sentence": [f"By {name}. {LONG}"], "label": ["<b>positive</b>"]})
            self.workers.append(worker_id)
            self.assignments.append(assignment_id)

    def sign_in(self, page: Any, console: str) -> None:
        page.goto(f"{self.url}/{console}/sign-in")
        check(page, f"{console}-sign-in")
        page.get_by_label("E-mail address" if console == "requester" else "Name").fill(
            "lab@example.org" if console == "requester" else "olga"
        )
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Overview").wait_for()

    def state(self, number: int) -> str:
        get = {"AssignmentId": self.assignments[number]}
        found = self.engine.call(self.requester_id, "GetAssignment", get)["Assignment"]
        return str(found["AssignmentStatus"])


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    class Late:
        app: Any = None

        def __call__(self, environ: Any, start_response: Any) -> Any:
            return self.app(environ, start_response)

    late = Late()
    with serving(late) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        database_url = f"sqlite:///{tmp_path / 'marketplace.db'}"
        content_url = f"http://localhost:{server.server_port}"
        settings = MarketplaceSettings.for_tests(site_url=url, content_url=content_url)
        engine = Marketplace(database_url, settings=settings, clock=SystemClock())
        engine.create_schema()
        secret = SecretStr("0123456789abcdef" * 2)
        late.app = create_app(Settings(database_url=database_url, secret_key=secret, site_url=url), marketplace=engine)
        yield Town(url, engine)
        engine.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 700})
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()
    assert [problem for problem in problems if not any(one in problem for one in EXPECTED)] == []


def go(page: Any, link: str, heading: str, name: str) -> None:
    page.get_by_role("link", name=link, exact=True).first.click()
    page.get_by_role("heading", name=heading).first.wait_for()
    check(page, name)


def test_a_requester_approves_rejects_pays_a_bonus_and_makes_a_key(town: Town, page: Any) -> None:
    town.sign_in(page, "requester")
    check(page, "requester-overview")
    go(page, "Review", "Review", "requester-review")
    boxes = page.get_by_role("checkbox")
    boxes.nth(0).check()
    boxes.nth(1).check()
    page.get_by_role("button", name="Approve the chosen ones").click()
    page.get_by_role("heading", name="Approve 2 assignments").wait_for()
    check(page, "requester-approve")
    page.get_by_label("Words to the worker").fill("Thank you.")
    page.get_by_role("button", name="Approve 2 assignments").click()
    page.get_by_text("2 assignments are approved.").wait_for()
    assert [town.state(number) for number in range(3)] == ["Approved", "Approved", "Submitted"]

    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Reject the chosen ones").click()
    page.get_by_label("Reason").fill("It has nothing to do with the task.")
    check(page, "requester-reject")
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("heading", name="Reject 1 assignment for this reason?").wait_for()
    check(page, "requester-reject-sure")
    assert town.state(2) == "Submitted"
    page.get_by_role("button", name="Reject 1 assignment").click()
    page.get_by_text("1 assignment is rejected.").wait_for()
    assert town.state(2) == "Rejected"

    page.goto(f"{town.url}/requester/assignments/{town.assignments[0]}")
    check(page, "requester-assignment")
    page.get_by_role("link", name="Pay a bonus").click()
    page.get_by_label("Amount in dollars").fill("1.50")
    page.get_by_label("What it is for").fill("Very good.")
    page.get_by_role("button", name="Go on").click()
    check(page, "requester-bonus")
    page.get_by_role("button", name="Pay the bonus of $1.50").click()
    page.get_by_text("The bonus of $1.50 is paid.").wait_for()

    go(page, "Access keys", "Access keys", "requester-keys")
    page.get_by_role("button", name="Create an access key").click()
    page.get_by_text("AWS_SECRET_ACCESS_KEY=").wait_for()
    check(page, "requester-new-key")


def test_a_requesters_other_pages_are_good_to_use(town: Town, page: Any) -> None:
    engine, me = town.engine, town.requester_id
    engine.contact_requester(town.workers[0], town.hit["HITId"], f"Hello? {LONG}")
    reject = {"AssignmentId": town.assignments[0], "RequesterFeedback": "No."}
    engine.call(me, "RejectAssignment", reject)
    engine.open_dispute(town.workers[0], town.assignments[0], "Unfair.")
    engine.call(me, "CreateWorkerBlock", {"WorkerId": town.workers[2], "Reason": "Copies."})
    kind = {"Name": "Fluent", "Description": "d", "QualificationTypeStatus": "Active"}
    made = engine.call(me, "CreateQualificationType", kind)["QualificationType"]["QualificationTypeId"]
    engine.request_qualification(town.workers[1], made)
    layout = engine.create_layout(me, "One sentence", LAYOUT, frame_height=300)
    town.sign_in(page, "requester")

    go(page, "HITs", "HITs", "requester-hits")
    page.goto(f"{town.url}/requester/hits/{town.hit['HITId']}")
    check(page, "requester-hit")
    go(page, "HIT types", "HIT types", "requester-types")
    page.goto(f"{town.url}/requester/types/{town.hit['HITTypeId']}/notifications")
    check(page, "requester-notifications")
    go(page, "Qualifications", "Qualifications", "requester-qualifications")
    page.goto(f"{town.url}/requester/qualifications/{made}")
    check(page, "requester-qualification")
    page.goto(f"{town.url}/requester/qualifications/new")
    check(page, "requester-qualification-new")
    go(page, "Messages", "Messages", "requester-messages")
    page.get_by_role("button", name="Send the reply").wait_for()
    go(page, "Disputes", "Disputes", "requester-disputes")
    page.get_by_role("link", name=LONG.strip()).click()
    check(page, "requester-dispute")
    go(page, "Blocks", "Blocked workers", "requester-blocks")
    page.goto(f"{town.url}/requester/layouts/{layout.layout_id}")
    page.frame_locator("iframe").get_by_role("heading", name="${sentence}").wait_for()
    check(page, "requester-layout")
    go(page, "Account", "Account", "requester-account")


def test_an_operator_overturns_a_rejection_and_pays_a_run_out(town: Town, page: Any) -> None:
    engine = town.engine
    engine.set_payout_details(town.workers[1], PASSWORD, "IBAN DE00 1234 5678")
    engine.call(town.requester_id, "ApproveAssignment", {"AssignmentId": town.assignments[1]})
    reject = {"AssignmentId": town.assignments[0], "RequesterFeedback": "Too short."}
    engine.call(town.requester_id, "RejectAssignment", reject)
    engine.open_dispute(town.workers[0], town.assignments[0], f"One sentence was asked for. {LONG}")
    town.sign_in(page, "operator")
    check(page, "operator-overview")
    go(page, "Disputes", "Disputes", "operator-disputes")
    page.get_by_role("link", name=LONG.strip()).click()
    page.get_by_label("Why").fill("One sentence was asked for, and one was written.")
    check(page, "operator-dispute")
    page.get_by_role("button", name="Overturn the rejection").click()
    page.get_by_role("heading", name="Overturn the rejection?").wait_for()
    check(page, "operator-dispute-sure")
    page.get_by_role("button", name="Overturn it").click()
    page.get_by_text("the worker is paid").wait_for()
    assert town.state(0) == "Approved"

    go(page, "Payouts", "Payouts", "operator-payouts")
    page.get_by_label("Last day (UTC)").fill(f"{engine.clock.now():%Y-%m-%d}")
    page.get_by_role("button", name="Draft a run").click()
    page.get_by_text("The run is drafted.").wait_for()
    check(page, "operator-payout")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the file").click()
    assert "IBAN DE00 1234 5678" in Path(download.value.path()).read_text(encoding="utf-8")
    page.get_by_label("The payment's reference").fill("bank 7")
    page.get_by_role("button", name="Mark $0.60 as paid").click()
    page.get_by_text("The run is marked as paid").wait_for()
    assert f"{engine.worker_payouts(town.workers[0]).paid}" == "0.30"


def test_an_operators_other_pages_are_good_to_use(town: Town, page: Any) -> None:
    engine = town.engine
    engine.report_hit(town.workers[0], town.hit["HITId"], "personal-data", f"Asks for passwords. {LONG}")
    town.sign_in(page, "operator")
    go(page, "Workers", "Workers", "operator-workers")
    page.get_by_role("link", name="ada").click()
    check(page, "operator-worker")
    go(page, "Requesters", "Requesters", "operator-requesters")
    page.get_by_role("link", name="Sentiment Lab").click()
    check(page, "operator-requester")
    page.get_by_role("link", name="Top up").click()
    page.get_by_label("Amount in dollars").fill("25.00")
    check(page, "operator-top-up")
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Add $25.00").click()
    page.get_by_text("$25.00 was added").wait_for()
    go(page, "Reports", "Reports of HITs", "operator-reports")
    page.get_by_role("link", name="Take it down").click()
    check(page, "operator-take-down")
    go(page, "Invitations", "Invitations", "operator-invitations")
    go(page, "Audit log", "Audit log", "operator-audit")


def test_by_keyboard_alone_and_without_script(town: Town, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 375, "height": 740})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{town.url}/requester/sign-in")
    page.get_by_label("E-mail address").focus()
    page.keyboard.type("lab@example.org")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Overview").wait_for()
    page.get_by_role("link", name="Review", exact=True).focus()
    page.keyboard.press("Enter")
    page.get_by_role("checkbox").first.focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Approve the chosen ones").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Approve 1 assignment").focus()
    page.keyboard.press("Enter")

    page.get_by_text("1 assignment is approved.").wait_for()
    assert "Approved" in {town.state(number) for number in range(3)}
    context.close()
