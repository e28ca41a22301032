"""Bootstrap intervals of figures that depend only on how often each outcome occurs.

Drawing rows with replacement is drawing the counts of their outcomes from a multinomial distribution. So a figure over
a million rows costs as much as one over a hundred, and no rows are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hits.rates import wilson

RESAMPLES: Final = 2000
LEVEL: Final = 0.95
#: Numbers that are worked on at a time, which bounds the memory.
_AT_ONCE: Final = 2_000_000
#: With more kinds of outcome than this the plain percentiles are taken, for the jackknife needs a table of its square.
_MOST_KINDS: Final = 2000

Floats = NDArray[np.float64]
#: Takes counts of shape (samples, kinds of outcome), returns one figure for each sample.
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval over ``rows`` rows; ``resamples`` is 0 where the interval is Wilson's."""

    value: float
    low: float
    high: float
    rows: int
    seed: int
    resamples: int

    def as_json(self) -> dict[str, Any]:
        """Return the figure as it is printed by ``--json``."""
        return asdict(self)

    @property
    def is_clear(self) -> bool:
        """Whether 0 lies outside of the interval, which tells of a difference."""
        return self.low > 0 or self.high < 0


def bootstrap(
    counts: Sequence[int],
    statistic: Statistic,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    least: float = 0.0,
    most: float = 1.0,
) -> Estimate:
    """Return the figure with its BCa interval (Efron 1987, bias-corrected and accelerated).

    ``counts`` tells how many rows had each kind of outcome, ``least`` and ``most`` what the figure can be. Where every
    sample gives the same figure, a bootstrap interval would claim certainty. There it holds what other rows might do,
    of which there are as many as Wilson's interval allows, each as far away as can be; ``resamples`` is 0 then.
    Raises ValueError when there are no rows.
    """
    seen = np.asarray(counts, dtype=np.float64)
    rows = int(seen.sum())
    if rows == 0:
        raise ValueError("there are no rows to measure")
    value = float(statistic(seen[None, :])[0])
    drawn = _drawn(seen, rows, statistic, seed, resamples)
    if drawn.min() == drawn.max():
        _, unseen = wilson(0, rows)
        return Estimate(value, value - unseen * (value - least), value + unseen * (most - value), rows, seed, 0)
    low, high = _bounds(drawn, value, seen, statistic, level)
    return Estimate(value, low, high, rows, seed, resamples)


def share(hits: int, of: int, *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Return a share of rows with its interval.

    Where all or none are hits, no sample differs from another, and a bootstrap interval would claim certainty: there it
    is Wilson's. Raises ValueError when there are no rows.
    """
    if of and hits in (0, of):
        low, high = wilson(hits, of)
        return Estimate(hits / of, low, high, of, seed, 0)
    return bootstrap([hits, of - hits], lambda counts: counts[:, 0] / of, seed=seed, resamples=resamples)


def mean(
    values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES, least: float = 0.0, most: float = 1.0
) -> Estimate:
    """Return the mean of values from ``least`` to ``most`` with its interval. Raises ValueError when there are none."""
    kinds, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    total = int(counts.sum())
    return bootstrap(
        counts.tolist(), lambda some: some @ kinds / total, seed=seed, resamples=resamples, least=least, most=most
    )


def _drawn(seen: Floats, rows: int, statistic: Statistic, seed: int, resamples: int) -> Floats:
    generator = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // len(seen))
    parts = [
        statistic(generator.multinomial(rows, seen / rows, size=min(at_once, resamples - start)).astype(np.float64))
        for start in range(0, resamples, at_once)
    ]
    return np.concatenate(parts)


def _bounds(drawn: Floats, value: float, seen: Floats, statistic: Statistic, level: float) -> tuple[float, float]:
    tails = ((1 - level) / 2, (1 + level) / 2)
    below = float(((drawn < value).mean() + (drawn <= value).mean()) / 2)
    if 0 < below < 1 and len(seen) <= _MOST_KINDS:
        normal = NormalDist()
        shift, bend = normal.inv_cdf(below), _acceleration(seen, statistic)
        moved = [shift + normal.inv_cdf(tail) for tail in tails]
        tails = (
            normal.cdf(shift + moved[0] / (1 - bend * moved[0])),
            normal.cdf(shift + moved[1] / (1 - bend * moved[1])),
        )
    low, high = np.quantile(drawn, tails)
    return float(low), float(high)


def _acceleration(seen: Floats, statistic: Statistic) -> float:
    """Return how the figure's spread changes with its value, by leaving out one row of each kind in turn."""
    there = np.flatnonzero(seen)
    # A row that is left out makes the counts one smaller; the figures divide by the rows that there were.
    scale = seen.sum() / (seen.sum() - 1) if seen.sum() > 1 else 1.0
    without = (seen[None, :] - np.eye(len(seen))[there]) * scale
    figures = statistic(without)
    weights = seen[there]
    apart = (weights @ figures) / weights.sum() - figures
    spread = float(weights @ apart**2)
    return float(weights @ apart**3) / (6 * spread**1.5) if spread > 0 else 0.0
