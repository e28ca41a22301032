"""The dashboard: what was submitted, judged and earned; its pages and downloads."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

from app.marketplace.dashboard import DAYS_SHOWN, PAGE_SIZE
from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import Account, Visitor, accepted, hit_params
from tests.app.marketplace.test_worker import submit, worker_id


def test_the_dashboard_tells_pay_states_reasons_and_days(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], clock: TestClock
) -> None:
    me = worker_id(worker)
    paid = accepted(worker, hit["HITId"])
    submit(worker, paid, text="x")
    second = engine.call(account.requester_id, "CreateHIT", hit_params(Title="=cmd()", Reward="0.10"))["HIT"]
    refused = accepted(worker, second["HITId"])
    submit(worker, refused, text="x")
    third = engine.call(account.requester_id, "CreateHIT", hit_params(Title="Third", Reward="0.07"))["HIT"]
    submit(worker, accepted(worker, third["HITId"]), text="x")
    engine.call(account.requester_id, "ApproveAssignment", {"AssignmentId": paid, "RequesterFeedback": "Thank you"})
    engine.call(
        account.requester_id, "RejectAssignment", {"AssignmentId": refused, "RequesterFeedback": "<b>Empty</b> text"}
    )
    engine.call(
        account.requester_id,
        "SendBonus",
        {
            "WorkerId": me,
            "AssignmentId": paid,
            "BonusAmount": "0.60",
            "Reason": "Two verified",
            "UniqueRequestToken": "t",
        },
    )

    worker.get("/dashboard")

    text = worker.text()
    assert "$0.90 earned in all" in text or "earned in all $0.90" in text
    assert "The requester wrote: “Thank you”" in text
    assert "<b>Empty</b> text" in text
    assert "$0.60 Two verified ( 30 Nov 2026 )" in text
    assert "Waiting approved by itself 3 Dec 2026, 12:00 UTC at the latest" in text
    earned = engine.earnings(me)
    assert (earned.approved, earned.bonuses, earned.pending) == (Decimal("0.30"), Decimal("0.60"), Decimal("0.07"))
    rows = list(csv.DictReader(io.StringIO(worker.get("/dashboard.csv").text)))
    assert {row["title"]: row["reward_usd"] for row in rows} == {
        "Third": "0.07",
        "'=cmd()": "0.10",
        "Write a statement that fools a model": "0.30",
    }
    assert {row["bonuses_usd"] for row in rows} == {"0.00", "0.60"}


def work_through(worker: Visitor, engine: Marketplace, account: Account, titles: list[str]) -> None:
    for title in titles:
        hit = engine.call(account.requester_id, "CreateHIT", hit_params(Title=title, AutoApprovalDelayInSeconds=0))[
            "HIT"
        ]
        assignment_id = engine.accept(worker_id(worker), hit["HITId"]).assignment_id
        engine.external_submit(assignment_id, {"text": ["x"]})


def test_a_long_history_has_pages(worker: Visitor, engine: Marketplace, account: Account) -> None:
    work_through(worker, engine, account, [f"HIT {number}" for number in range(PAGE_SIZE + 1)])

    worker.get("/dashboard")
    assert len(worker.page.select("tbody tr th a")) == PAGE_SIZE
    following = worker.page.find("a", string="Next page")
    assert following is not None
    worker.get(str(following["href"]))

    assert [link.get_text() for link in worker.page.select("tbody tr th a")] == ["HIT 0"]
    assert len(list(csv.DictReader(io.StringIO(worker.get("/dashboard.csv").text)))) == PAGE_SIZE + 1


def test_the_json_has_every_detail(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], clock: TestClock
) -> None:
    assert json.loads(worker.get("/dashboard.json").text) == []
    assignment_id = accepted(worker, hit["HITId"])
    clock.advance(minutes=2)
    submit(worker, assignment_id, text="x")
    engine.call(
        account.requester_id, "ApproveAssignment", {"AssignmentId": assignment_id, "RequesterFeedback": "=fein"}
    )
    for amount in ("0.10", "0.20"):
        bonus = {"WorkerId": worker_id(worker), "AssignmentId": assignment_id, "BonusAmount": amount, "Reason": "gut"}
        engine.call(account.requester_id, "SendBonus", bonus)
    work_through(worker, engine, account, ["Grün"])

    response = worker.get("/dashboard.json")

    assert response.headers["Content-Disposition"] == "attachment; filename=my-hits.json"
    newest, oldest = json.loads(response.text)
    assert newest["title"] == "Grün"
    submitted, granted = oldest.pop("submitted_at"), [bonus.pop("granted_at") for bonus in oldest["bonuses"]]
    assert submitted > oldest.pop("accepted_at")
    assert granted[0].endswith("+00:00")
    assert oldest.pop("auto_approval_at") > oldest.pop("reviewed_at") == submitted
    assert oldest == {
        "assignment_id": assignment_id,
        "hit_id": hit["HITId"],
        "title": "Write a statement that fools a model",
        "requester": "Sentiment Lab",
        "state": "Approved",
        "reward_usd": "0.30",
        "requester_feedback": "=fein",
        "bonuses": [{"amount_usd": "0.10", "reason": "gut"}, {"amount_usd": "0.20", "reason": "gut"}],
    }


def test_earnings_of_many_days_are_shown_in_part_and_downloaded_as_a_whole(
    worker: Visitor, engine: Marketplace, account: Account, clock: TestClock
) -> None:
    for _ in range(DAYS_SHOWN + 1):
        work_through(worker, engine, account, ["A day's work"])
        clock.advance(days=1)

    worker.get("/dashboard")

    assert f"Shown are the last {DAYS_SHOWN} days with earnings." in worker.text()
    assert "All days $9.60 $0.00 $9.60" in worker.text()
    rows = list(csv.DictReader(io.StringIO(worker.get("/earnings.csv").text)))
    assert len(rows) == DAYS_SHOWN + 1
    assert sum(Decimal(row["rewards_approved_usd"]) for row in rows) == Decimal("9.60")
    assert rows[0]["day_utc"] > rows[-1]["day_utc"]


def test_a_download_for_an_account_that_is_gone_is_a_page(worker: Visitor) -> None:
    with worker.client.session_transaction() as session:
        session["worker_id"] = "A0"

    for path in ("/dashboard.csv", "/dashboard.json", "/earnings.csv"):
        with worker.client.session_transaction() as session:
            session["worker_id"] = "A0"
        assert worker.client.get(path).status_code == 303
