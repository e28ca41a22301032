"""Differences between arms: known cases, simulated effects, and intervals that go by writers."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy.orm import Session

from hits.arm_effects import (
    LEAST_WRITERS,
    Difference,
    Figures,
    Writer,
    difference,
    more_writers,
    student,
    writers_by_arm,
)
from hits.arms import Arm, draw_arm, set_arms
from tests.factories import (
    NOON,
    make_assignment,
    make_attempt,
    make_batch,
    make_example,
    make_hit,
    make_round,
    make_worker,
)

SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def simulated(chance: np.random.Generator, writers: int, share: float, spread: float = 12.0) -> list[tuple[int, int]]:
    """Writers who differ: each one's own share is drawn around the arm's, and 1 to 20 texts of each."""
    own = chance.beta(share * spread, (1 - share) * spread, writers)
    texts = chance.integers(1, 21, writers)
    return [(int(chance.binomial(count, mine)), int(count)) for mine, count in zip(own, texts, strict=True)]


def test_the_difference_is_that_of_the_ratios_of_sums() -> None:
    found = difference([(1, 2), (3, 8)] * 3, [(1, 10)] * 6)

    assert found.estimate == pytest.approx(0.4 - 0.1)
    assert found.writers == (6, 6)
    assert found.low is not None
    assert found.high is not None
    assert found.estimate is not None
    assert found.low <= found.estimate <= found.high


def test_arms_without_any_spread_have_an_interval_of_no_width() -> None:
    found = difference([(1, 4)] * 9, [(2, 4)] * 9)

    assert found.low == pytest.approx(-0.25)
    assert found.high == pytest.approx(-0.25)


def test_arms_of_all_or_nothing_are_as_unsure_as_their_writers_are_few() -> None:
    none = difference([(0, 1)] * 5, [(0, 1)] * 5)
    many = difference([(0, 1)] * 500, [(0, 1)] * 500)
    apart = difference([(1, 1)] * 5, [(0, 1)] * 5)
    mixed = difference([(0, 4)] * 8, [(1, 4), (3, 4)] * 4)

    # Newcombe's method 10 of 0 in 5 and 0 in 5, and of 5 in 5 and 0 in 5.
    assert (none.low, none.high) == (pytest.approx(-0.4345, abs=1e-3), pytest.approx(0.4345, abs=1e-3))
    assert many.half == pytest.approx(0.0076, abs=1e-3)
    assert (apart.low, apart.high) == (pytest.approx(1 - 0.4345 * 2**0.5, abs=1e-3), 1)
    assert mixed.low is not None
    assert mixed.high is not None
    assert -0.75 < mixed.low < -0.5 < mixed.high < 0


def test_the_same_numbers_give_the_same_interval_and_another_seed_nearly_the_same() -> None:
    chance = np.random.default_rng(3)
    one, other = simulated(chance, 40, 0.3), simulated(chance, 40, 0.2)

    assert difference(one, other) == difference(one, other)
    again = difference(one, other, seed=8)
    assert again.low == pytest.approx(difference(one, other).low, abs=0.02)
    assert again.low != difference(one, other).low


def test_few_writers_have_an_estimate_and_no_interval() -> None:
    few = difference([(1, 2)] * (LEAST_WRITERS - 1), [(1, 4)] * 50)

    assert (few.estimate, few.low, few.half) == (0.25, None, None)
    assert more_writers(few, 0.05) == 1
    assert difference([], [(1, 4)]) == Difference(None, None, None, (0, 1))


def test_nineteen_of_twenty_intervals_hold_the_true_difference_though_texts_of_a_writer_are_alike() -> None:
    chance = np.random.default_rng(20261130)
    held = alone = 0
    for _ in range(300):
        one, other = simulated(chance, 25, 0.35), simulated(chance, 25, 0.20)
        found = difference(one, other, resamples=400)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.15 <= found.high
        # As if every text were a writer of its own.
        shares = [(sum(part for part, _ in some), sum(whole for _, whole in some)) for some in (one, other)]
        (a, n), (b, m) = shares
        width = 1.96 * float(np.sqrt(a / n * (1 - a / n) / n + b / m * (1 - b / m) / m))
        alone += abs(a / n - b / m - 0.15) <= width

    assert 0.92 <= held / 300 <= 0.985
    assert alone / 300 < 0.90


def test_where_there_is_no_effect_one_interval_in_twenty_says_so() -> None:
    chance = np.random.default_rng(5)
    false = 0
    for _ in range(200):
        found = difference(simulated(chance, 12, 0.25), simulated(chance, 12, 0.25), resamples=300)
        assert found.low is not None
        assert found.high is not None
        false += not found.low <= 0 <= found.high

    assert false / 200 <= 0.085


def test_more_writers_are_asked_for_until_the_interval_is_narrow_enough() -> None:
    wide = Difference(0.02, -0.08, 0.12, (20, 20))

    assert more_writers(wide, 0.05) == 120
    assert more_writers(wide, 0.10) == 0


@pytest.mark.parametrize(("freedom", "point"), [(4, 2.776), (9, 2.262), (29, 2.045), (1000, 1.962)])
def test_students_t_is_as_in_the_tables(freedom: int, point: float) -> None:
    assert student(freedom) == pytest.approx(point, abs=0.01)


def test_figures_are_sums_over_writers() -> None:
    found = Figures.of([Writer(2, 6, 3, 2, 1, 120), Writer(1, 2, 1, 0, 0, 40)])

    assert (found.writers, found.examples, found.tries, found.seconds_each) == (2, 8, 8 / 3, 20.0)
    assert (found.mer.hits, found.vmer.hits, found.vmer.of) == (4, 2, 8)
    assert Figures.of([]).tries is None


@SQLITE
def test_writers_are_summed_by_their_arm_and_seconds_by_hit(session: Session) -> None:
    round_ = make_round(session)
    set_arms(session, round_, [Arm("explained", 1)], seed=0, by="ada", now=NOON)
    inside, outside = make_worker(session), make_worker(session)
    draw_arm(session, round_, inside.id, NOON)
    for worker, texts in ((inside, ((30, False), (80, True))), (inside, ((50, False),)), (outside, ((20, True),))):
        hit = make_hit(session, batch=make_batch(session, round=round_))
        assignment = make_assignment(session, hit=hit, worker=worker)
        for number, (seconds, fooled) in enumerate(texts, start=1):
            said = {"predicted_label": "positive" if fooled else "negative", "fooled": fooled}
            attempt = make_attempt(session, assignment=assignment, try_number=number, seconds=seconds, **said)
            make_example(session, attempt=attempt)

    found = writers_by_arm(session, round_)

    assert found == {
        "explained": [Writer(hits=2, examples=3, fooled=1, verified=0, waiting=1, seconds=130)],
        "": [Writer(hits=1, examples=1, fooled=1, verified=0, waiting=1, seconds=20)],
    }
