"""Intervals: known answers, the same as scipy's, and no claim of certainty where nothing varies."""

from __future__ import annotations

import numpy as np
import pytest

from hits.measures.intervals import Estimate, bootstrap, mean, share
from hits.rates import wilson

MANY = 20_000
#: Bounds of scipy.stats.bootstrap (1.17.1, BCa, 40,000 samples) for the same rows.
SCIPY = [
    pytest.param(lambda: share(84, 120, resamples=MANY), 0.7, 0.6167, 0.7750, id="share"),
    pytest.param(
        lambda: mean([0] * 10 + [0.25] * 6 + [0.5] * 8 + [0.8] * 5 + [1] * 31, resamples=MANY),
        0.675,
        0.5700,
        0.7683,
        id="mean",
    ),
    pytest.param(
        lambda: mean([-1] * 6 + [0] * 80 + [1] * 19, resamples=MANY), 0.12381, 0.0381, 0.2190, id="paired difference"
    ),
]


@pytest.mark.parametrize(("made", "value", "low", "high"), SCIPY)
def test_the_bounds_are_those_of_scipy(made: object, value: float, low: float, high: float) -> None:
    found: Estimate = made()  # type: ignore[operator]  # a lambda above

    assert found.value == pytest.approx(value, abs=1e-4)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)


def test_the_same_seed_gives_the_same_bounds_and_another_one_others() -> None:
    values = [number / 97 for number in range(97)]

    assert mean(values, seed=3) == mean(values, seed=3)
    assert mean(values, seed=3).low != mean(values, seed=4).low


def test_where_all_rows_are_right_the_interval_is_wilsons() -> None:
    found = share(0, 40)

    assert (found.value, found.low, found.high, found.resamples) == (0, *wilson(0, 40), 0)
    assert share(40, 40).low == pytest.approx(wilson(40, 40)[0])


def test_a_figure_that_never_varies_claims_no_certainty() -> None:
    low, high = wilson(30, 30)
    assert mean([1.0] * 30) == Estimate(1.0, pytest.approx(low), high, 30, 0, 0)
    assert mean([0.0] * 30, least=-1.0) == Estimate(0.0, pytest.approx(low - 1), pytest.approx(1 - low), 30, 0, 0)
    assert mean([0.5] * 30) == Estimate(0.5, pytest.approx(low / 2), pytest.approx(1 - low / 2), 30, 0, 0)
    assert not mean([0.0] * 30, least=-1.0).is_clear
    assert mean([1, 1, 1, 0, 1, 1]).is_clear


def test_nothing_is_measured_on_no_rows() -> None:
    with pytest.raises(ValueError, match="no rows"):
        share(0, 0)
    with pytest.raises(ValueError, match="no rows"):
        bootstrap([], lambda counts: counts[:, 0])


def test_about_95_of_100_intervals_hold_the_true_share() -> None:
    generator = np.random.default_rng(1)
    found = [
        share(int(hits), 200, seed=hits, resamples=500) for hits in generator.binomial(200, 0.3, size=200).tolist()
    ]

    held = sum(one.low <= 0.3 <= one.high for one in found)

    assert 180 <= held <= 198
