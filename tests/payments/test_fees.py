"""The fee table: the published examples, and agreement with the marketplace's own table."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.marketplace import fees as marketplace_fees
from hits.money import from_cents, to_cents, usd
from payments.errors import NoFeeSchedule
from payments.fees import SCHEDULES, bonus_fee, reward_fee, worst_case

DAY = date(2026, 11, 30)
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reward", "max_assignments", "masters", "fee"),
    [
        ("0.00", 1, False, "0.01"),
        ("0.01", 1, False, "0.01"),
        ("0.05", 1, False, "0.01"),
        ("0.12", 1, False, "0.02"),
        ("0.13", 1, False, "0.03"),
        ("0.30", 9, False, "0.06"),
        ("0.30", 10, False, "0.12"),
        ("1.00", 10, False, "0.40"),
        ("1.00", 1, True, "0.25"),
        ("1.00", 10, True, "0.45"),
        ("0.10", 1, True, "0.03"),
    ],
)
def test_the_fee_of_a_reward_is_the_published_one(reward: str, max_assignments: int, masters: bool, fee: str) -> None:
    assert reward_fee(usd(reward), max_assignments, masters=masters, on=DAY) == Decimal(fee)


@pytest.mark.parametrize(("bonus", "fee"), [("0.01", "0.01"), ("0.12", "0.02"), ("0.13", "0.03"), ("0.30", "0.06")])
def test_the_fee_of_a_bonus_is_the_published_one(bonus: str, fee: str) -> None:
    assert bonus_fee(usd(bonus), on=DAY) == Decimal(fee)


def test_a_bonus_of_nothing_is_no_payment_and_has_no_fee() -> None:
    assert bonus_fee(usd(0), on=DAY) == 0


@given(cents=st.integers(0, 1_000_000), max_assignments=st.integers(1, 40), masters=st.booleans())
def test_rewards_cost_here_what_the_marketplace_charges(cents: int, max_assignments: int, masters: bool) -> None:
    charged = marketplace_fees.assignment_fee(cents, max_assignments=max_assignments, masters=masters, at=NOON)

    assert to_cents(reward_fee(from_cents(cents), max_assignments, masters=masters, on=DAY)) == charged


@given(cents=st.integers(1, 1_000_000))
def test_bonuses_cost_here_what_the_marketplace_charges(cents: int) -> None:
    assert to_cents(bonus_fee(from_cents(cents), on=DAY)) == marketplace_fees.bonus_fee(cents, at=NOON)


def test_the_fee_tables_have_the_same_rows() -> None:
    theirs = [
        (row.valid_from, row.base, row.many_assignments, row.many_assignments_from, row.masters, row.least_cents)
        for row in marketplace_fees.SCHEDULES
    ]

    assert theirs == [
        (row.valid_from, row.base, row.many_assignments, row.many_assignments_from, row.masters, to_cents(row.least))
        for row in SCHEDULES
    ]


def test_a_day_without_a_schedule_is_refused_with_the_day() -> None:
    with pytest.raises(NoFeeSchedule, match="2015-07-21"):
        reward_fee(usd("0.30"), 1, on=date(2015, 7, 21))


def test_the_worst_case_counts_every_assignment_and_one_bonus_for_each() -> None:
    worst = worst_case(20, 1, usd("0.30"), usd("0.30"), on=DAY)

    assert (worst.assignments, worst.rewards, worst.bonuses) == (20, usd("6.00"), usd("6.00"))
    assert (worst.hold, worst.fees, worst.total) == (usd("7.20"), usd("2.40"), usd("14.40"))


def test_the_worst_case_of_ten_assignments_a_hit_has_the_surcharge_on_the_reward_only() -> None:
    worst = worst_case(1, 10, usd("1.00"), usd("1.00"), on=DAY)

    assert (worst.reward_fees, worst.bonus_fees) == (usd("4.00"), usd("2.00"))
