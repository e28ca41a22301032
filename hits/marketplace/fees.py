"""What the marketplace charges a requester on top of rewards and bonuses: a dated table, and two sums."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from hits.marketplace.money import round_half_up


@dataclass(frozen=True)
class FeeSchedule:
    """The shares of reward or bonus that are charged from a day on."""

    valid_from: date
    base: Decimal
    many_assignments: Decimal
    many_assignments_from: int
    masters: Decimal
    least_cents: int


# MTurk's last published prices (www.mturk.com/pricing, harvested 2026-10-07); add a row to change them.
SCHEDULES: Final = (
    FeeSchedule(
        valid_from=date(2015, 7, 22),
        base=Decimal("0.20"),
        many_assignments=Decimal("0.20"),
        many_assignments_from=10,
        masters=Decimal("0.05"),
        least_cents=1,
    ),
)


def schedule_at(moment: datetime) -> FeeSchedule:
    """Return the schedule in force."""
    in_force = [schedule for schedule in SCHEDULES if schedule.valid_from <= moment.date()]
    return max(in_force, key=lambda schedule: schedule.valid_from) if in_force else SCHEDULES[0]


def assignment_fee(reward_cents: int, *, max_assignments: int, masters: bool, at: datetime) -> int:
    """Return the fee in cents for one approved assignment of a HIT created at `at`."""
    schedule = schedule_at(at)
    share = schedule.base
    if max_assignments >= schedule.many_assignments_from:
        share += schedule.many_assignments
    if masters:
        share += schedule.masters
    return max(schedule.least_cents, round_half_up(reward_cents * share))


def bonus_fee(amount_cents: int, *, at: datetime) -> int:
    """Return the fee in cents for one bonus payment."""
    schedule = schedule_at(at)
    return max(schedule.least_cents, round_half_up(amount_cents * schedule.base))
