"""When a round will have as many verified examples as are wanted, at the rate of the last days."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean, variance

#: How far one looks back, and in how many parts, whose differences tell how even the rate is.
LOOKED_BACK, PARTS = timedelta(days=7), 7
#: How far ahead a date still says something.
FARTHEST_DAYS = 3650
#: Of the standard normal distribution: 95 of 100 lie within.
Z = 1.96


@dataclass(frozen=True)
class Forecast:
    """When the target is reached. ``latest`` is None when the rate may as well be nothing.

    ``per_day`` is the present rate, over ``days`` of 24 hours. All times are None when nothing came in these days;
    ``reached`` tells that there is nothing to wait for.
    """

    target: int
    missing: int
    per_day: float
    days: float
    at: datetime | None
    earliest: datetime | None
    latest: datetime | None

    @property
    def reached(self) -> bool:
        return self.missing == 0


def forecast(target: int, have: int, counts: Sequence[int], part: timedelta, now: datetime) -> Forecast:
    """Return when ``target`` is reached if it goes on as in the time before ``now`` that ``counts`` cuts in parts.

    The rule: R = target - have are missing, N came in T days, so the rate is N/T and the expected wait R T/N. The range
    holds 95 of 100 if the parts go on to differ as these did: a part's count varies by f times its mean, where f is the
    variance of the counts over their mean, at least 1 (1 is a Poisson process, which two parts or fewer are taken for).
    What comes in t days then differs from t N/T by f N/T (t + t^2/T) in variance: its own chance, and that of the rate,
    which T days tell no better. The ends are the two t at which R lies Z deviations off (the argument of Fieller, Some
    problems in interval estimation, 1954); while N <= Z^2 f there is no later end. Nothing is known of trends, weekends
    or an end of the money: the date says what the present rate means, no more.
    """
    days, came, missing = len(counts) * (part / timedelta(days=1)), sum(counts), max(target - have, 0)
    if missing == 0 or came == 0:
        return Forecast(target, missing, came / days if days else 0.0, days, None, None, None)
    rate = came / days
    uneven = max(1.0, variance(counts) / fmean(counts)) if len(counts) > 2 else 1.0
    # (rate t - R)^2 = Z^2 uneven rate (t + t^2 / days), as a t^2 - 2 b t + c = 0.
    spread = Z * Z * uneven * rate
    a, b, c = rate * rate - spread / days, rate * missing + spread / 2, float(missing * missing)
    root = math.sqrt(max(b * b - a * c, 0.0))
    # The smaller root, written so that it holds for any sign of a.
    soonest, last = c / (b + root), (b + root) / a if a > 0 else math.inf
    return Forecast(
        target=target,
        missing=missing,
        per_day=rate,
        days=days,
        at=_after(now, missing / rate),
        earliest=_after(now, soonest),
        latest=_after(now, last),
    )


def _after(now: datetime, days: float) -> datetime | None:
    return now + timedelta(days=days) if days <= FARTHEST_DAYS else None
