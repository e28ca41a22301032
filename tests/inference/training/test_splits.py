"""Held-out rows: whole groups, the same on every machine."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inference.training.corpora import Row
from inference.training.splits import by_place, place_of, sample, within, without


def rows(*groups: str) -> list[Row]:
    return [Row((f"{number} {group}",), "x", (1.0,), group) for number, group in enumerate(groups)]


def test_a_groups_place_never_changes() -> None:
    assert [place_of(group) for group in ("", "Oil", "naïve 👍")] == [1652, 8076, 1676]


@given(st.lists(st.text(max_size=3)), st.integers(0, 10_000))
def test_parts_share_no_group_and_lose_no_row(groups: list[str], border: int) -> None:
    everything = rows(*groups)

    low, high = within(everything, 0, border), within(everything, border, 10_000)

    assert sorted([*low, *high], key=lambda row: row.texts) == sorted(everything, key=lambda row: row.texts)
    assert not {row.group for row in low} & {row.group for row in high}
    assert without(everything, low) == high


@given(st.integers(0, 50), st.integers(1, 60))
def test_a_sample_is_spread_evenly_and_in_order(count: int, wanted: int) -> None:
    everything = rows(*map(str, range(count)))

    chosen = [int(row.group) for row in sample(everything, wanted)]

    assert len(chosen) == min(count, wanted)
    assert chosen == sorted(set(chosen))
    steps = {second - first for first, second in pairwise(chosen)}
    assert not steps or max(steps) - min(steps) <= 1


def test_mixing_keeps_every_row_and_is_the_same_each_time() -> None:
    everything = rows("a", "a", "b", "c", "c", "c", "d")

    assert by_place(everything) == by_place(list(everything))
    assert sorted(row.texts for row in by_place(everything)) == sorted(row.texts for row in everything)
    assert by_place(everything) != everything
