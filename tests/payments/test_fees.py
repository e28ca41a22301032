"""The fee table: the published examples, and agreement with the marketplace's own table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.marketplace import fees as marketplace_fees
from hits.money import from_cents, to_cents, usd
from payments.errors import InvalidFees, NoFeeSchedule
from payments.fees import SCHEDULES, bonus_fee, for_masters, read_schedules, reward_fee, use_schedules, worst_case

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


@pytest.mark.parametrize("qualification", ["2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6"])
def test_only_hits_that_ask_for_masters_cost_more(qualification: str) -> None:
    other = {"qualification_type_id": "000000000000000000L0", "comparator": "Exists"}

    assert for_masters([other, {"qualification_type_id": qualification, "comparator": "Exists"}])
    assert not for_masters([other, {"qualification_type_id": qualification, "comparator": "DoesNotExist"}])
    assert not for_masters(None)


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


@pytest.fixture
def own_prices() -> Iterator[None]:
    """A marketplace of our own that charges 10 % from 2026 on, nothing more for many, and no least fee."""
    use_schedules(
        read_schedules(
            [
                {"valid_from": "2026-01-01", "base": "0.10", "many_assignments": "0", "least": "0.00"},
                {"valid_from": "2027-01-01", "base": "0", "many_assignments": "0", "least": "0.00"},
            ]
        )
    )
    yield
    use_schedules(())


@pytest.mark.usefixtures("own_prices")
def test_another_marketplace_s_prices_hold_for_plan_and_books() -> None:
    day, later = date(2026, 11, 15), date(2027, 1, 1)

    assert (reward_fee(usd("0.30"), 10, on=day), bonus_fee(usd("1.00"), on=day)) == (usd("0.03"), usd("0.10"))
    assert (reward_fee(usd("0.30"), 1, on=later), bonus_fee(usd("1.00"), on=later)) == (usd(0), usd(0))
    assert worst_case(2, 1, usd("0.30"), usd("1.00"), on=day).total == usd("2.86")
    with pytest.raises(NoFeeSchedule):
        reward_fee(usd("0.30"), 1, on=date(2025, 12, 31))


def test_mturk_s_prices_come_back(own_prices: None) -> None:
    use_schedules(())

    assert reward_fee(usd("0.30"), 1, on=date(2026, 11, 15)) == usd("0.06")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({}, "valid_from"),
        ({"valid_from": "soon"}, "no fee schedule"),
        ({"valid_from": "2026-01-01", "base": "20 %"}, "no fee schedule"),
        ({"valid_from": "2026-01-01", "base": "20"}, "from 0 to 1"),
        ({"valid_from": "2026-01-01", "base": "NaN"}, "from 0 to 1"),
        ({"valid_from": "2026-01-01", "least": "0.001"}, "no fee schedule"),
        ({"valid_from": "2026-01-01", "many_assignments_from": 0}, "assignments from 1"),
        ({"valid_from": "2026-01-01", "bonus": "0.1"}, "'bonus' is nothing"),
    ],
)
def test_prices_that_can_not_be_are_refused_with_the_value(row: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidFees, match=words):
        read_schedules([row])


def test_more_bonuses_are_part_of_the_worst_case() -> None:
    worst = worst_case(2, 1, usd("0.30"), usd("0.30"), on=date(2026, 11, 15), further=[(1, usd("1.00"))])

    assert (worst.bonuses, worst.bonus_fees, worst.total) == (usd("1.60"), usd("0.32"), usd("2.64"))
