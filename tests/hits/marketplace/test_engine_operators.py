"""Operators among everybody else: money stays right, and what they do is written down."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from hits.marketplace.console_views import Actor
from hits.marketplace.errors import OperatorError
from tests.hits.marketplace.interleavings import DRAWN
from tests.hits.marketplace.market import Market
from tests.hits.marketplace.operator_interleavings import OperatorInterleavings

CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much]
STEPS: dict[str, Any] = {"stateful_step_count": 30, "deadline": None, "suppress_health_check": CHECKS}
DONE_BY_OPERATORS = {"dispute", "overturn", "uphold", "take down", "draft", "pay", "cancel"}

TestOperatorInterleavings = OperatorInterleavings.TestCase
TestOperatorInterleavings.settings = settings(max_examples=8, **STEPS)


@pytest.mark.slow
def test_many_more_interleavings_do_everything_that_operators_do() -> None:
    DRAWN.clear()

    run_state_machine_as_test(OperatorInterleavings, settings=settings(max_examples=150, **STEPS))

    assert {name for name, outcome in DRAWN if outcome == "done"} >= DONE_BY_OPERATORS, sorted(DRAWN.items())
    assert {name for name, outcome in DRAWN if outcome == "refused"} >= {"overturn", "uphold", "draft", "pay", "cancel"}


def test_a_report_is_closed_once_and_in_the_log(market: Market) -> None:
    engine, worker_id = market.engine, market.worker()
    report_id = engine.report_hit(worker_id, market.create_hit(), "harmful", "Look.")

    engine.end_report(report_id, "It is gone.", by=Actor.operator("olga"))

    (line,) = engine.audit_log(action="report closed").entries
    assert (line.subject_id, line.details["note"]) == (report_id, "It is gone.")
    with pytest.raises(OperatorError):
        engine.end_report(report_id, "Again.", by=Actor.operator("olga"))
    assert engine.audit_log(action="report closed").total == 1
