"""What a worker sees of payouts, and says about them."""

from __future__ import annotations

from typing import Any

from hits.marketplace.clock import TestClock
from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import PASSWORD, Account, Visitor, accepted

OLGA = Actor.operator("olga")


def test_payouts_are_shown_as_they_come(
    worker: Visitor, engine: Marketplace, account: Account, hit: dict[str, Any], clock: TestClock
) -> None:
    assignment_id = accepted(worker, hit["HITId"])
    worker.client.post("/mturk/externalSubmit", data={"assignmentId": assignment_id, "a": "1"})
    worker.get("/payouts")
    assert "Nothing was paid out yet." in worker.text()
    engine.call(account.requester_id, "ApproveAssignment", {"AssignmentId": assignment_id})
    clock.advance(seconds=1)
    run = engine.draft_payout_run(by=OLGA)

    worker.get("/payouts")
    assert "$0.30 on its way to you" in worker.text() or "on its way to you $0.30" in worker.text()
    engine.mark_payout_run_paid(run.run_id, "bank 7", by=OLGA)
    worker.get("/dashboard")
    worker.get("/payouts")

    assert "Paid out" in worker.text()
    assert "paid out $0.30" in worker.text() or "$0.30 paid out" in worker.text()


def test_how_to_be_paid_is_kept_and_shown_to_the_worker_only(worker: Visitor, engine: Marketplace) -> None:
    worker.get("/payouts")

    worker.post("/payouts", {"details": "IBAN DE00 <1234>", "old": PASSWORD})

    area = worker.page.find("textarea")
    assert area is not None
    assert area.get_text() == "IBAN DE00 <1234>"
    assert worker.post("/payouts", {"details": "x" * 1001, "old": PASSWORD}).status_code == 422
    worker.get("/payouts")
    assert "IBAN DE00 <1234>" in worker.text()


def test_where_the_money_goes_is_changed_with_the_password_only(worker: Visitor, engine: Marketplace) -> None:
    worker.get("/payouts")
    worker.post("/payouts", {"details": "IBAN DE00 1234", "old": PASSWORD})

    for old in ("", "not the password", PASSWORD + " "):
        response = worker.post("/payouts", {"details": "IBAN of a thief", "old": old})

        assert response.status_code == 422
        assert "This is not your present password. Nothing was changed." in worker.text()
        area = worker.page.find("textarea")
        assert area is not None
        assert area.get_text() == "IBAN of a thief"
        assert 'type="password"' in response.text
        assert f'value="{old}"' not in response.text or not old
    worker_id = engine.worker_called("ada").worker_id
    assert engine.payout_details(worker_id) == "IBAN DE00 1234"
    assert len(engine.audit_log(about=worker_id, action="payout details changed").entries) == 1


def test_passwords_are_not_guessed_there(worker: Visitor, engine: Marketplace) -> None:
    worker.get("/payouts")
    answers = [worker.post("/payouts", {"details": "x", "old": f"guess {number}"}).status_code for number in range(11)]

    assert answers == [422] * 10 + [429]
    assert worker.post("/payouts", {"details": "x", "old": PASSWORD}).status_code == 429
    assert engine.payout_details(engine.worker_called("ada").worker_id) == ""


def test_who_is_not_signed_in_sees_nothing(visitor: Visitor) -> None:
    assert visitor.get("/payouts").request.path == "/sign-in"
