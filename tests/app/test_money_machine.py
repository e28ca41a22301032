"""Whatever happens in whatever order: never paid twice, never lost, never over budget, books that sum to zero."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.app.money_machine import MoneyMachine


def told(examples: int, steps: int) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    run_state_machine_as_test(
        MoneyMachine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks
        ),
    )


def test_a_few_stories_of_money_keep_every_promise() -> None:
    told(6, 12)


@pytest.mark.slow
def test_many_long_stories_of_money_keep_every_promise() -> None:
    told(150, 40)
