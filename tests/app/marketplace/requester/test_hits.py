"""HIT types and HITs in the console."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.questions import write_html_question
from tests.app.marketplace.conftest import Account, Visitor, hit_params
from tests.app.marketplace.requester.conftest import handed_in


def test_types_lead_to_their_hits(console: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]) -> None:
    other = engine.call(account.requester_id, "CreateHIT", hit_params(Title="Another kind"))["HIT"]
    console.get("/requester/types")
    assert "Another kind" in console.text()

    console.get(f"/requester/types/{hit['HITTypeId']}")
    assert "Every worker." in console.text()
    console.get(f"/requester/hits?type={hit['HITTypeId']}")

    assert hit["HITId"] in console.text()
    assert other["HITId"] not in console.text()


def test_hits_are_chosen_by_status(console: Visitor, worker: Visitor, hit: dict[str, Any]) -> None:
    console.get("/requester/hits?status=Reviewable")
    assert "No HITs here." in console.text()
    console.get("/requester/hits?status=Assignable")
    assert hit["HITId"] in console.text()
    console.get("/requester/hits?status=%00nonsense&page=99")
    assert hit["HITId"] in console.text()


def test_one_hit_shows_its_counters_question_and_assignments(
    console: Visitor, worker: Visitor, hit: dict[str, Any]
) -> None:
    assignment_id = handed_in(worker, hit)

    page = console.get(f"/requester/hits/{hit['HITId']}")

    assert assignment_id in console.text()
    assert "&lt;ExternalURL&gt;" in page.text
    facts = [div.get_text(" ", strip=True) for div in console.page.select(".figures > div")]
    assert facts == ["places 2", "free 1", "being worked on 0", "to review 1", "judged 0"]
    console.get(f"/requester/hits/{hit['HITId']}?state=Approved")
    assert assignment_id not in console.text()


def test_a_page_that_no_worker_can_answer_is_named(console: Visitor, engine: Marketplace, account: Account) -> None:
    page = "<script src='https://assets.crowd.aws/crowd-html-elements.js'></script><crowd-form><crowd-polygon>"
    params = hit_params(Question=write_html_question(page, 0))
    made = engine.call(account.requester_id, "CreateHIT", params)["HIT"]

    console.get(f"/requester/hits/{made['HITId']}")

    assert "No worker can do this HIT Its page needs crowd-polygon, which this site cannot show." in console.text()


def test_places_are_added_once_for_each_form(
    console: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    address = f"/requester/hits/{hit['HITId']}"
    console.get(address)
    form = {"number": "3", "token": str(console.page.find("input", {"name": "token"})["value"])}  # type: ignore[index]

    for _ in range(2):
        console.post(f"{address}/places", form)

    assert "was sent before" in console.text()
    assert engine.requester_hit(account.requester_id, hit["HITId"]).max_assignments == 5
    for number in ("0", "-1", "x", "1001", "99999999999", "000000001" + "0" * 5000):
        console.post(f"{address}/places", {"number": number, "token": f"token-{number[:9]}-0123456789"})
        assert "from 1 to 1000. Nothing was changed." in console.text()
    console.post(f"{address}/places", {"number": "8", "token": "another-token-0123456789"})
    assert "fewer than 10 places cannot be extended" in console.text()


def until(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M}"


def test_a_hit_is_extended_until_a_moment_and_once_for_a_double_click(
    console: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], clock: TestClock
) -> None:
    address, now = f"/requester/hits/{hit['HITId']}", clock.now()
    console.get(address)
    field = console.page.find("input", {"name": "until"})
    assert field is not None
    assert (field["type"], field["value"]) == ("datetime-local", until(now + timedelta(days=1)))
    wanted = (now + timedelta(days=10)).replace(second=0, microsecond=0)

    for _ in range(2):
        console.post(f"{address}/until", {"until": until(wanted)})

    assert engine.requester_hit(account.requester_id, hit["HITId"]).expires_at == wanted
    assert "is open until" in console.text()
    # There and back again within a day, which the API refuses for the very same moment.
    sooner = wanted - timedelta(days=5)
    for moment in (sooner, wanted, sooner):
        console.post(f"{address}/until", {"until": until(moment)})
        expires = engine.requester_hit(account.requester_id, hit["HITId"]).expires_at
        assert moment <= expires < moment + timedelta(minutes=1)


def test_an_expired_hit_opens_again_for_money(
    console: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], clock: TestClock
) -> None:
    address = f"/requester/hits/{hit['HITId']}"
    console.get(f"{address}/expire")
    console.post(f"{address}/expire")
    assert engine.balance(account.requester_id).on_hold == 0
    console.get(address)
    assert "held again" in console.text()

    console.post(f"{address}/until", {"until": until(clock.now() + timedelta(days=2))})

    assert engine.requester_hit(account.requester_id, hit["HITId"]).status == "Assignable"
    assert engine.balance(account.requester_id).on_hold == Decimal("0.72")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "such as 2026-12-31 18:00, not “”"),
        ("soon\x00", "such as 2026-12-31 18:00, not “soon”"),
        ("9999-99-99T99:99", "not “9999-99-99T99:99”"),
        ("2001-01-01T00:00", "lies in the past"),
        ("0001-01-01T00:00+14:00", "lies in the past"),
        ("9999-12-31T23:59-12:00", "more than a year ahead"),
        ("2999-01-01T00:00", "more than a year ahead"),
    ],
)
def test_what_is_no_moment_to_extend_to_is_refused(
    console: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], typed: str, said: str
) -> None:
    address = f"/requester/hits/{hit['HITId']}"
    before = engine.requester_hit(account.requester_id, hit["HITId"])
    console.get(address)

    console.post(f"{address}/until", {"until": typed})

    assert said in console.text()
    assert "Nothing was changed." in console.text()
    assert engine.requester_hit(account.requester_id, hit["HITId"]) == before


def test_nobody_extends_anothers_hit_or_one_without_the_money(
    console: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], clock: TestClock
) -> None:
    other = engine.create_requester("Other")
    engine.top_up(other.requester_id, Decimal("10.00"))
    theirs = engine.call(other.requester_id, "CreateHIT", hit_params())["HIT"]["HITId"]
    tomorrow = until(clock.now() + timedelta(days=2))
    assert console.post(f"/requester/hits/{theirs}/until", {"until": tomorrow}).status_code == 404
    address = f"/requester/hits/{hit['HITId']}"
    console.get(f"{address}/expire")
    console.post(f"{address}/expire")
    left = engine.balance(account.requester_id).available
    engine.call(account.requester_id, "CreateHIT", hit_params(MaxAssignments=1, Reward=f"{left - 17:.2f}"))

    console.post(f"{address}/until", {"until": tomorrow})

    assert "Your available balance is too low for that." in console.text()
    assert engine.requester_hit(account.requester_id, hit["HITId"]).status == "Reviewable"


def test_a_hit_expires_and_is_disposed_of_after_questions(
    console: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any]
) -> None:
    address = f"/requester/hits/{hit['HITId']}"
    console.get(f"{address}/expire")
    assert "Nobody can accept its 2 free places" in console.text()
    assert console.post(f"{address}/delete").status_code == 409

    console.post(f"{address}/expire")
    assert engine.requester_hit(account.requester_id, hit["HITId"]).status == "Reviewable"
    assert engine.balance(account.requester_id).on_hold == 0
    console.get(f"{address}/delete")
    assert "can no longer be read" in console.text()
    console.post(f"{address}/delete")

    assert engine.requester_hit(account.requester_id, hit["HITId"]).status == "Disposed"
    assert console.get(address).status_code == 200
