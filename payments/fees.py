"""What a marketplace charges on top of rewards and bonuses: a dated table, and the sums that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from typing import Any, Final

from hits.money import CENT, ZERO, MoneyError, rounded, usd
from payments.errors import InvalidFees, NoFeeSchedule


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


#: The qualification of Masters, whose HITs cost more: MTurk's own and that of its sandbox.
MASTERS: Final = frozenset({"2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6"})

#: What the marketplace that this process talks to charges. There is one for each process.
_in_use: tuple[FeeSchedule, ...] = SCHEDULES


def use_schedules(schedules: Sequence[FeeSchedule]) -> None:
    """Reckon with another marketplace's prices in this process; with none, with MTurk's own."""
    global _in_use
    _in_use = tuple(schedules) or SCHEDULES


def read_schedules(rows: Sequence[Mapping[str, Any]]) -> tuple[FeeSchedule, ...]:
    """Return the schedules that a configuration names; what a row leaves out is as with MTurk. Raises InvalidFees."""
    return tuple(_schedule(row) for row in rows)


def _schedule(row: Mapping[str, Any]) -> FeeSchedule:
    names = {field.name for field in fields(FeeSchedule)}
    if unknown := sorted(set(row) - names):
        raise InvalidFees(f"{unknown[0]!r} is nothing that a fee schedule has; it has {', '.join(sorted(names))}.")
    default = SCHEDULES[0]
    try:
        read = FeeSchedule(
            valid_from=date.fromisoformat(str(row["valid_from"])),
            base=Decimal(str(row.get("base", default.base))),
            many_assignments=Decimal(str(row.get("many_assignments", default.many_assignments))),
            many_assignments_from=int(row.get("many_assignments_from", default.many_assignments_from)),
            masters=Decimal(str(row.get("masters", default.masters))),
            least=usd(row.get("least", default.least)),
        )
    except KeyError:
        raise InvalidFees("A fee schedule needs the day from which it is valid: valid_from.") from None
    except (ArithmeticError, TypeError, ValueError, MoneyError) as error:
        raise InvalidFees(f"{dict(row)} is no fee schedule: {error}") from error
    shares = (read.base, read.many_assignments, read.masters)
    if not all(share.is_finite() and 0 <= share <= 1 for share in shares) or read.many_assignments_from < 1:
        raise InvalidFees(f"{dict(row)} is no fee schedule: shares are from 0 to 1, assignments from 1.")
    return read


def schedule_on(day: date, schedules: Sequence[FeeSchedule] | None = None) -> FeeSchedule:
    """Return the schedule in force on ``day``. Raises NoFeeSchedule for a day before the first one."""
    in_force = [schedule for schedule in schedules or _in_use if schedule.valid_from <= day]
    if not in_force:
        raise NoFeeSchedule(day)
    return max(in_force, key=lambda schedule: schedule.valid_from)


def for_masters(requirements: Sequence[Mapping[str, Any]] | None) -> bool:
    """Tell whether HITs with these requirements, as a batch keeps them, are reserved for Masters."""
    return any(one["qualification_type_id"] in MASTERS and one["comparator"] == "Exists" for one in requirements or ())


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
