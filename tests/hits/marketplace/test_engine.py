"""Random interleavings of everybody's actions and of time: counters, money and states stay right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from hits.marketplace.operations import OPERATIONS
from tests.hits.marketplace.interleavings import DRAWN, Interleavings

CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much]
STEPS: dict[str, Any] = {"stateful_step_count": 30, "deadline": None, "suppress_health_check": CHECKS}

#: What only reads, and what makes a HIT or a type in a way that CreateHIT does as well.
NOT_DRAWN = {name for name, operation in OPERATIONS.items() if not operation.writes} | {
    "CreateHITType",
    "CreateHITWithHITType",
}
ON_THE_SITE = {"accept", "accept next", "submit", "return", "request", "test"}
BY_OPERATORS = {"dispute", "overturn", "uphold", "draft", "pay", "cancel", "take down"}


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=8, **STEPS)


@pytest.mark.slow
def test_many_more_interleavings_do_everything_that_changes_something() -> None:
    DRAWN.clear()

    run_state_machine_as_test(Interleavings, settings=settings(max_examples=200, **STEPS))

    done = {name for name, outcome in DRAWN if outcome == "done"}
    assert done >= (set(OPERATIONS) - NOT_DRAWN) | ON_THE_SITE | BY_OPERATORS, sorted(DRAWN.items())
    refused = {name for name, outcome in DRAWN if outcome != "done"}
    assert refused >= {"CreateHIT", "ApproveAssignment", "SendBonus", "DeleteHIT", "accept", "return", "request"}
