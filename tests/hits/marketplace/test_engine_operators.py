"""The operators' side of the engine: reports, and what a run that dies half-way leaves; see also `interleavings`."""

from __future__ import annotations

import pytest

from hits.marketplace import payout_runs
from hits.marketplace.console_views import Actor
from hits.marketplace.errors import OperatorError
from tests.hits.marketplace.market import Market

OLGA = Actor.operator("olga")


def test_a_report_is_closed_once_and_in_the_log(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    report_id = engine.report_hit(worker_id, market.create_hit(), "harmful", "Look.")

    engine.end_report(report_id, "It is gone.", by=OLGA)

    (line,) = engine.audit_log(action="report closed").entries
    assert (line.subject_id, line.details["note"]) == (report_id, "It is gone.")
    with pytest.raises(OperatorError):
        engine.end_report(report_id, "Again.", by=OLGA)
    assert engine.audit_log(action="report closed").total == 1


def test_a_run_that_fails_half_way_takes_nothing(stored_market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, worker_id = stored_market.engine, stored_market.worker()
    stored_market.client.approve_assignment(AssignmentId=stored_market.submitted(stored_market.create_hit(), worker_id))
    stored_market.clock.advance(seconds=1)

    def dies(*arguments: object, **details: object) -> None:
        raise RuntimeError("The machine lost power.")

    with monkeypatch.context() as broken:
        broken.setattr(payout_runs.audit, "record", dies)
        with pytest.raises(RuntimeError):
            engine.draft_payout_run(by=OLGA)

    assert engine.payout_runs().total == 0
    assert f"{engine.worker_payouts(worker_id).open}" == "0.30"
    assert engine.draft_payout_run(by=OLGA).earnings == 1
