"""What arms did: sums by writer, and differences between two arms whose intervals go by writers, not by texts.

The texts of one person are alike, so that an interval that takes them for independent is too narrow. Whole writers are
drawn again instead, in each arm by itself, as arms were drawn by people (C. A. Field and A. H. Welsh 2007,
"Bootstrapping clustered data"; A. C. Cameron, J. B. Gelbach and D. L. Miller 2008). A percentile interval of few
writers is still too narrow; it is widened as T. C. Hesterberg 2015, "What Teachers Should Know about the Bootstrap",
says: by Student's t for the smaller arm, and by the root of n / (n - 1). An arm in which all texts are counted, or
none, looks the same however it is drawn: Wilson's interval of as many cases as it has writers stands for it, and both
arms' intervals are joined as in R. G. Newcombe 1998, Statistics in Medicine 17:873-890.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from hits.models import ArmAssignment, Attempt, Example, Round
from hits.rates import Rate, wilson
from hits.states import Verdict

#: Writers of an arm below which no interval is given: so few can be drawn again in too few ways.
LEAST_WRITERS: Final = 5
RESAMPLES: Final = 2000
SEED: Final = 20260701
#: Resamples at a time are as many as keep the numbers drawn below this count, whatever the number of writers.
_MOST_DRAWN: Final = 2_000_000
_WAITING: Final = (Verdict.PENDING, Verdict.FLAGGED)


@dataclass(frozen=True)
class Writer:
    """One person's work in an arm, without what was retracted.

    ``examples`` are texts with a model's answer, ``waiting`` those of them that readers still decide about. ``seconds``
    go from the opening of each HIT's page to its last text.
    """

    hits: int
    examples: int
    fooled: int
    verified: int
    waiting: int
    seconds: int


@dataclass(frozen=True)
class Figures:
    """The sums of an arm. The intervals of ``mer`` and ``vmer`` are Wilson's, which take texts for independent."""

    writers: int
    hits: int
    examples: int
    fooled: int
    verified: int
    waiting: int
    seconds: int

    @classmethod
    def of(cls, writers: Sequence[Writer]) -> Figures:
        """Return the sums of these people."""
        names = ("hits", "examples", "fooled", "verified", "waiting", "seconds")
        return cls(len(writers), *(sum(getattr(one, name) for one in writers) for name in names))

    @property
    def mer(self) -> Rate:
        """Model error rate: fooled / examples."""
        return Rate(self.fooled, self.examples)

    @property
    def vmer(self) -> Rate:
        """Verified model error rate: valid_and_model_wrong / examples."""
        return Rate(self.verified, self.examples)

    @property
    def tries(self) -> float | None:
        """Texts that a model answered for each HIT; None before the first."""
        return self.examples / self.hits if self.hits else None

    @property
    def seconds_each(self) -> float | None:
        """Seconds for each text; None before the first."""
        return self.seconds / self.examples if self.examples else None


@dataclass(frozen=True)
class Difference:
    """One arm's ratio less the other's, with its 95 % interval; None where there are too few writers for it."""

    estimate: float | None
    low: float | None
    high: float | None
    writers: tuple[int, int]

    @property
    def half(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def writers_by_arm(session: Session, round_: Round) -> dict[str, list[Writer]]:
    """Return every writer's sums by arm, "" for those who are in none. Reads only, in one statement."""
    of_hit = (
        select(
            Example.writer_id,
            func.count().label("examples"),
            func.sum(case((Example.fooled, 1), else_=0)).label("fooled"),
            func.sum(case((Example.verdict == Verdict.VALID_AND_MODEL_WRONG, 1), else_=0)).label("verified"),
            func.sum(case((Example.verdict.in_(_WAITING), 1), else_=0)).label("waiting"),
            func.max(Attempt.seconds).label("seconds"),
        )
        .join(Attempt, Attempt.id == Example.attempt_id)
        .where(Example.round_id == round_.id, Example.retracted_at.is_(None))
        .group_by(Example.writer_id, Attempt.hit_id)
        .subquery()
    )
    names = ("examples", "fooled", "verified", "waiting", "seconds")
    rows = session.execute(
        select(
            of_hit.c.writer_id,
            func.max(ArmAssignment.arm),
            func.count(),
            *(func.sum(of_hit.c[name]) for name in names),
        )
        .outerjoin(
            ArmAssignment,
            (ArmAssignment.worker_id == of_hit.c.writer_id) & (ArmAssignment.round_id == round_.id),
        )
        .group_by(of_hit.c.writer_id)
        .order_by(of_hit.c.writer_id)
    )
    found: dict[str, list[Writer]] = {}
    for row in rows:
        found.setdefault(row[1] or "", []).append(Writer(*(int(value) for value in row[2:])))
    return found


def difference(
    one: Sequence[tuple[float, float]],
    other: Sequence[tuple[float, float]],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Difference:
    """Return how much the ratio of sums of ``one`` is above that of ``other``; each item is (part, whole) of a writer.

    Wholes are above 0. The same numbers and seed give the same interval.
    """
    sizes = (len(one), len(other))
    if not one or not other:
        return Difference(None, None, None, sizes)
    estimate = _ratio(one) - _ratio(other)
    fewest = min(sizes)
    if fewest < LEAST_WRITERS:
        return Difference(estimate, None, None, sizes)
    chance = np.random.default_rng(seed)
    drawn = _drawn_ratios(one, chance, resamples) - _drawn_ratios(other, chance, resamples)
    tail = NormalDist().cdf(-math.sqrt(fewest / (fewest - 1)) * student(fewest - 1))
    if _all_or_none(one) or _all_or_none(other):
        (least, most), (least_other, most_other) = (_bounds(some, seed, resamples, tail) for some in (one, other))
        mine, theirs = _ratio(one), _ratio(other)
        low = estimate - math.hypot(mine - least, most_other - theirs)
        high = estimate + math.hypot(most - mine, theirs - least_other)
    else:
        low, high = np.quantile(drawn, [tail, 1 - tail])
    return Difference(estimate, float(low), float(high), sizes)


def student(freedom: int) -> float:
    """Return the 97.5 % point of Student's t from four degrees of freedom on.

    By the expansion of Abramowitz and Stegun, 26.7.5; off by less than 0.01.
    """
    z = NormalDist().inv_cdf(0.975)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(freedom**power) for power, term in enumerate(terms, start=1))


def more_writers(found: Difference, margin: float) -> int:
    """Return how many more writers, of both arms together, narrow the interval to ``margin`` on either side.

    Reckoned as if those to come were like those who are there: the width falls with the root of their number. Without
    an interval, how many are missing for one.
    """
    if found.half is None:
        return sum(max(LEAST_WRITERS - count, 0) for count in found.writers)
    there = sum(found.writers)
    return max(math.ceil(there * (found.half / margin) ** 2) - there, 0)


def _ratio(items: Sequence[tuple[float, float]]) -> float:
    return sum(part for part, _ in items) / sum(whole for _, whole in items)


def _all_or_none(items: Sequence[tuple[float, float]]) -> bool:
    return all(part == 0 for part, _ in items) or all(part == whole for part, whole in items)


def _bounds(items: Sequence[tuple[float, float]], seed: int, resamples: int, tail: float) -> tuple[float, float]:
    """Return the interval of one arm's ratio."""
    if _all_or_none(items):
        return wilson(len(items) if items[0][0] else 0, len(items))
    low, high = np.quantile(_drawn_ratios(items, np.random.default_rng(seed), resamples), [tail, 1 - tail])
    return float(low), float(high)


def _drawn_ratios(items: Sequence[tuple[float, float]], chance: np.random.Generator, resamples: int) -> Any:
    sums = np.asarray(items, dtype=float)
    ratios = []
    at_once = max(1, _MOST_DRAWN // len(items))
    for start in range(0, resamples, at_once):
        picked = chance.integers(0, len(items), size=(min(at_once, resamples - start), len(items)))
        parts, wholes = sums[picked, 0].sum(axis=1), sums[picked, 1].sum(axis=1)
        ratios.append(parts / wholes)
    return np.concatenate(ratios)
