"""What a marketplace charges on top of rewards and bonuses: a dated table, and the sums that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from hits.money import CENT, ZERO, rounded
from payments.errors import NoFeeSchedule


@dataclass(frozen=True)
class FeeSchedule:
    """The shares that are charged from a day on."""

    valid_from: date
    #: Of reward and of bonus.
    base: Decimal
    #: More, of the reward, for HITs with this many assignments or more.
    many_assignments: Decimal
    many_assignments_from: int
    #: More, of the reward, for HITs reserved for Masters.
    masters: Decimal
    #: The least that one payment is charged, a reward of $0.00 included.
    least: Decimal


#: MTurk's published prices (https://www.mturk.com/pricing); a change of prices is a new row, never an edit.
SCHEDULES: Final = (
    FeeSchedule(
        valid_from=date(2015, 7, 22),
        base=Decimal("0.20"),
        many_assignments=Decimal("0.20"),
        many_assignments_from=10,
        masters=Decimal("0.05"),
        least=CENT,
    ),
)


def schedule_on(day: date, schedules: Sequence[FeeSchedule] = SCHEDULES) -> FeeSchedule:
    """Return the schedule in force on ``day``. Raises NoFeeSchedule for a day before the first one."""
    in_force = [schedule for schedule in schedules if schedule.valid_from <= day]
    if not in_force:
        raise NoFeeSchedule(day)
    return max(in_force, key=lambda schedule: schedule.valid_from)


def reward_fee(reward: Decimal, max_assignments: int, *, on: date, masters: bool = False) -> Decimal:
    """Return the fee for one approved assignment of a HIT that was created on the day ``on``."""
    schedule = schedule_on(on)
    share = schedule.base
    if max_assignments >= schedule.many_assignments_from:
        share += schedule.many_assignments
    if masters:
        share += schedule.masters
    return max(schedule.least, rounded(reward * share))


def bonus_fee(bonus: Decimal, *, on: date) -> Decimal:
    """Return the fee for one bonus paid on the day ``on``; a bonus of $0.00 is no payment and costs nothing."""
    if not bonus:
        return ZERO
    schedule = schedule_on(on)
    return max(schedule.least, rounded(bonus * schedule.base))


@dataclass(frozen=True)
class WorstCase:
    """The most that HITs can cost: every assignment approved, every one of them earning the bonus."""

    assignments: int
    rewards: Decimal
    reward_fees: Decimal
    bonuses: Decimal
    bonus_fees: Decimal

    @property
    def fees(self) -> Decimal:
        return self.reward_fees + self.bonus_fees

    @property
    def hold(self) -> Decimal:
        """What the marketplace holds back the moment the HITs exist: rewards with their fees."""
        return self.rewards + self.reward_fees

    @property
    def total(self) -> Decimal:
        return self.rewards + self.bonuses + self.fees


def worst_case(
    hits: int,
    max_assignments: int,
    reward: Decimal,
    bonus: Decimal,
    *,
    on: date,
    masters: bool = False,
    further: Sequence[tuple[int, Decimal]] = (),
) -> WorstCase:
    """Return the most that ``hits`` HITs of ``max_assignments`` can cost; one assignment earns at most one bonus.

    ``further``: how many bonuses of which amount can be earned besides.
    """
    assignments = hits * max_assignments
    bonuses = ((assignments, bonus), *further)
    return WorstCase(
        assignments=assignments,
        rewards=assignments * reward,
        reward_fees=assignments * reward_fee(reward, max_assignments, on=on, masters=masters),
        bonuses=sum((count * amount for count, amount in bonuses), ZERO),
        bonus_fees=sum((count * bonus_fee(amount, on=on) for count, amount in bonuses), ZERO),
    )
