"""What the work of a batch came to by the hour, from accepting to submitting. The rule is in docs/admission.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import select, true
from sqlalchemy.orm import Session

from hits.models import Assignment, Hit, HitBatch
from hits.money import rounded
from hits.states import COLLECTED

#: From this many assignments on, one that took more than so many times the median counts as left open.
LEFT_OPEN_FROM, LEFT_OPEN_TIMES = 5, 3
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class Worked:
    """How long one assignment took; ``counted`` is the median where it was left open."""

    assignment_id: int
    seconds: int
    counted: int

    @property
    def left_open(self) -> bool:
        return self.counted != self.seconds


@dataclass(frozen=True)
class Wage:
    """What the reward of a batch comes to by the hour. The measured figures are None until something was submitted."""

    stated: Decimal
    worked: tuple[Worked, ...]
    median_seconds: int | None
    mean_seconds: int | None
    median: Decimal | None
    mean: Decimal | None

    @property
    def left_open(self) -> int:
        """How many assignments counted with the median."""
        return sum(one.left_open for one in self.worked)

    def is_below(self, floor: Decimal | None) -> bool:
        """Tell whether half of the workers, or all together, earned less by the hour than the floor."""
        measured = [wage for wage in (self.median, self.mean) if wage is not None]
        return floor is not None and any(wage < floor for wage in measured)


def stated_wage(reward: Decimal, minutes: int) -> Decimal:
    """Return what the reward comes to by the hour if the HIT takes as long as workers are told."""
    return rounded(reward * 60 / minutes)


def batch_wage(session: Session, batch: HitBatch, *, first: int | None = None) -> Wage:
    """Return the wage of a batch's submitted work, or of that on its ``first`` HITs alone. Reads only."""
    rows = session.execute(
        select(Assignment.id, Assignment.accepted_at, Assignment.submitted_at)
        .join(Assignment.hit)
        .where(Hit.batch_id == batch.id, Assignment.state.in_(COLLECTED))
        .where(true() if first is None else Hit.position <= first)
        .where(Assignment.accepted_at.is_not(None), Assignment.submitted_at.is_not(None))
        .order_by(Assignment.id)
    )
    times = [(number, max(1, int((done - begun).total_seconds()))) for number, begun, done in rows if begun and done]
    worked = counted_times(times)
    stated = stated_wage(batch.reward, batch.minutes)
    if not worked:
        return Wage(stated, (), None, None, None, None)
    counted = [one.counted for one in worked]
    median, total = middle(counted), sum(counted)
    return Wage(
        stated=stated,
        worked=worked,
        median_seconds=median,
        mean_seconds=round(total / len(counted)),
        median=rounded(batch.reward * SECONDS_PER_HOUR / median),
        # All pay over all time: the mean of each one's own wage would hide the slow ones behind the quick ones.
        mean=rounded(batch.reward * len(counted) * SECONDS_PER_HOUR / total),
    )


def counted_times(times: Sequence[tuple[int, int]]) -> tuple[Worked, ...]:
    """Return how long each assignment (id, seconds) counts. With few of them each counts as it is."""
    if len(times) < LEFT_OPEN_FROM:
        return tuple(Worked(number, seconds, seconds) for number, seconds in times)
    median = middle([seconds for _, seconds in times])
    longest = median * LEFT_OPEN_TIMES
    return tuple(Worked(number, seconds, median if seconds > longest else seconds) for number, seconds in times)


def middle(seconds: Sequence[int]) -> int:
    """Return the median, in whole seconds; of two middle ones the longer, which makes the wage no better than it is."""
    return sorted(seconds)[len(seconds) // 2]
