"""Each rule stops when it is fulfilled and not before; a rate has settled when it is known and no longer moves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy.orm import Session

from hits.errors import InvalidInput
from hits.rates import Rate
from hits.rounds.stop_rules import (
    Facts,
    Series,
    StopRules,
    difference,
    is_plateau,
    rules_of,
    series_of,
    standing,
    store_rules,
    validated_of,
)
from hits.states import Verdict
from tests import factories as make
from tests.factories import NOON

FACTS = Facts(validated=99, spent=Decimal("49.99"), now=NOON)


def fired(rules: StopRules, facts: Facts) -> list[str]:
    return [rule.name for rule in standing(rules, facts) if rule.fired]


@pytest.mark.parametrize(
    ("rules", "reached"),
    [
        (StopRules(validated=100), {"validated": 100}),
        (StopRules(spent=Decimal("50.00")), {"spent": Decimal("50.00")}),
        (StopRules(at=NOON + timedelta(minutes=1)), {"now": NOON + timedelta(minutes=1)}),
    ],
)
def test_a_rule_fires_when_it_is_reached_and_not_before(rules: StopRules, reached: dict[str, Any]) -> None:
    assert fired(rules, FACTS) == []
    assert len(fired(rules, replace(FACTS, **reached))) == 1


def test_without_rules_nothing_ever_fires() -> None:
    assert StopRules().is_empty
    assert standing(StopRules(), replace(FACTS, validated=10**6, spent=Decimal(10**6))) == []


@pytest.mark.parametrize(
    "values",
    [
        {"validated": 0},
        {"spent": Decimal("0.00")},
        {"at": datetime(2026, 12, 24, 18)},
        {"window": 19},
        {"points": 0},
        {"points": 51},
    ],
)
def test_values_that_cannot_be_meant_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        StopRules(**values)


def test_the_difference_of_two_shares_is_that_of_newcombe() -> None:
    # Newcombe 1998, table II, example (a): 56/70 and 48/80.
    low, high = difference(Rate(48, 80), Rate(56, 70))

    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


SETTLED = Series(Rate(300, 1000), Rate(30, 100), Rate(31, 100))


@pytest.mark.parametrize(
    ("series", "settled"),
    [
        (SETTLED, True),
        # Known, but the newest examples fool the model less often than those before.
        (replace(SETTLED, newest=Rate(12, 100)), False),
        # The same in both windows, but too few to know the rate.
        (replace(SETTLED, whole=Rate(60, 200)), False),
        # A window is not full.
        (replace(SETTLED, earlier=Rate(20, 60)), False),
    ],
)
def test_a_rate_has_settled_when_it_is_known_and_the_newest_do_not_differ(series: Series, settled: bool) -> None:
    assert is_plateau(series, window=100, points=5) is settled
    rules = StopRules(window=100, points=5)
    assert bool(fired(rules, replace(FACTS, series=series))) is settled


def test_only_examples_before_the_oldest_waiting_one_count(session: Session) -> None:
    round_ = make.make_round(session)
    wrong, right = Verdict.VALID_AND_MODEL_WRONG, Verdict.NOT_VALIDATED
    for verdict in (wrong, right, wrong, Verdict.INVALID, Verdict.PENDING, right, right, wrong):
        make.make_example(session).verdict = verdict
    session.flush()

    series = series_of(session, round_.id, window=2)

    assert series == Series(Rate(2, 4), earlier=Rate(1, 2), newest=Rate(1, 2))
    assert validated_of(session, round_.id) == 3


def test_rules_are_stored_with_the_round(session: Session) -> None:
    round_ = make.make_round(session)
    rules = StopRules(validated=10, spent=Decimal("12.50"), at=NOON, window=50, points=4)

    store_rules(round_, rules)
    session.commit()
    session.expire_all()

    assert rules_of(round_) == rules
