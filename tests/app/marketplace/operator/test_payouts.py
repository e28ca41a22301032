"""Payout runs in the operator console."""

from __future__ import annotations

import csv

from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from tests.app.marketplace.conftest import PASSWORD, Visitor
from tests.app.marketplace.operator.conftest import Submit, token_of


def drafted(operator: Visitor, engine: Marketplace) -> str:
    operator.get("/operator/payouts")
    today = f"{engine.clock.now():%Y-%m-%d}"
    response = operator.post("/operator/payouts", {"day": today, "token": token_of(operator)})
    assert response.status_code == 200, operator.text()
    return response.request.path.rsplit("/", 1)[-1]


def test_a_run_is_drafted_downloaded_and_paid(
    operator: Visitor, worker_id: str, engine: Marketplace, handed_in: Submit, clock: TestClock
) -> None:
    handed_in("ApproveAssignment")
    engine.set_payout_details(worker_id, PASSWORD, "IBAN DE00 <1234>")
    clock.advance(seconds=1)
    run_id = drafted(operator, engine)
    assert "IBAN DE00 <1234>" in operator.text()

    rows = list(csv.DictReader(operator.client.get(f"/operator/payouts/{run_id}.csv").text.splitlines()))
    operator.get(f"/operator/payouts/{run_id}")
    token = token_of(operator)
    missing = operator.post(f"/operator/payouts/{run_id}/paid", {"reference": "", "token": token})
    assert missing.status_code == 409
    for _ in range(2):
        operator.post(f"/operator/payouts/{run_id}/paid", {"reference": "bank 7", "token": token})

    assert [(row["worker_id"], row["amount_cents"]) for row in rows] == [(worker_id, "30")]
    assert "marked as paid" in operator.text()
    found = engine.payout_run(run_id)
    assert (found.state, found.ended_by, found.reference) == ("Paid", "olga", "bank 7")
    assert engine.audit_log(action="payout file downloaded").total == 1
    assert operator.post(f"/operator/payouts/{run_id}/cancel", {"token": "t" * 20}).status_code == 409
    assert "was paid by olga" in operator.text()


def test_a_form_that_arrives_twice_drafts_once(
    operator: Visitor, engine: Marketplace, handed_in: Submit, clock: TestClock
) -> None:
    handed_in("ApproveAssignment")
    clock.advance(seconds=1)
    operator.get("/operator/payouts")
    form = {"day": f"{engine.clock.now():%Y-%m-%d}", "token": token_of(operator)}

    first, second = (operator.post("/operator/payouts", form).request.path for _ in range(2))

    assert first == second
    assert engine.payout_runs().total == 1


def test_a_cancelled_run_gives_its_earnings_back(
    operator: Visitor, worker_id: str, engine: Marketplace, handed_in: Submit, clock: TestClock
) -> None:
    handed_in("ApproveAssignment")
    clock.advance(seconds=1)
    run_id = drafted(operator, engine)
    operator.get(f"/operator/payouts/{run_id}/cancel")
    assert "they would be paid twice" in operator.text()

    operator.post(f"/operator/payouts/{run_id}/cancel", {"token": token_of(operator)})

    assert f"{engine.worker_payouts(worker_id).open}" == "0.30"
    assert drafted(operator, engine) != run_id


def test_what_cannot_be_drafted_is_said(operator: Visitor, engine: Marketplace) -> None:
    operator.get("/operator/payouts")

    for day, says in (
        ("2999-01-01", "today at the latest"),
        ("soon", "a date such as"),
        ("", "a date such as"),
        (f"{engine.clock.now():%Y-%m-%d}", "left to pay out"),
    ):
        response = operator.post("/operator/payouts", {"day": day, "token": "t" * 20})
        assert response.status_code == 409
        assert says in operator.text()
