"""How unequally much the writers of a round have written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hits.concentration import concentration, spread


def test_writers_who_write_alike_are_as_many_as_they_are() -> None:
    found = concentration([5] * 40)

    assert (found.writers, found.examples, found.top_5_writers, found.top_10_writers) == (40, 200, 2, 4)
    assert (found.top_5, found.top_10) == (0.05, 0.1)
    assert found.gini == pytest.approx(0)
    assert found.effective == pytest.approx(40)


def test_one_who_writes_nearly_everything_is_seen() -> None:
    found = concentration([1, 97, 1, 1])

    assert (found.top_5_writers, found.top_5) == (1, 0.97)
    # By hand: the mean absolute difference over twice the mean, (6 * 96 / 16) / 50.
    assert found.gini == pytest.approx(0.72)
    assert found.effective == pytest.approx(10_000 / (97 * 97 + 3))


def test_without_examples_nothing_is_said() -> None:
    found = concentration([0, 0])

    assert (found.writers, found.top_5, found.gini, found.effective) == (0, None, None, None)
    assert spread([]) == [(0.0, 0.0)]


@given(st.lists(st.integers(1, 500), min_size=1, max_size=80))
def test_the_figures_stay_within_what_they_mean(counts: list[int]) -> None:
    found = concentration(counts)
    curve = spread(counts)

    assert found.top_5 is not None
    assert found.top_10 is not None
    assert found.gini is not None
    assert found.effective is not None
    assert 0 < found.top_5 <= found.top_10 <= 1
    assert 0 <= found.gini < 1
    assert 1 <= found.effective <= len(counts) + 1e-9
    pairs = sum(abs(one - other) for one in counts for other in counts)
    assert found.gini == pytest.approx(pairs / (2 * len(counts) * sum(counts)), abs=1e-9)
    assert curve[0] == (0.0, 0.0)
    assert curve[-1] == (1.0, 1.0)
    assert curve == sorted(curve)
