"""Splits: nothing shared between two of them, verified examples only in dev and test, the same for the same seed."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hits.errors import InvalidInput, Refused
from hits.splits import Candidate, assign, normalised
from hits.states import Split

USED = (Split.TRAIN, Split.DEV, Split.TEST)


def leaks(examples: Sequence[Candidate], splits: Mapping[str, Split]) -> list[str]:
    """What stands in two splits: the definition itself, told apart from how the splits are made."""
    seen: dict[tuple[str, str], set[Split]] = defaultdict(set)
    for example in examples:
        if splits[example.key] is Split.WITHHELD:
            continue
        shared = [("words", normalised(example.text)), ("words", normalised(example.context or ""))]
        shared += [("writer", example.writer or ""), ("family", example.family or "")]
        for kind, value in shared:
            if value:
                seen[kind, value].add(splits[example.key])
    return [f"{kind} {value!r} in {sorted(found)}" for (kind, value), found in seen.items() if len(found) > 1]


def few(prefix: str, most: int) -> st.SearchStrategy[str | None]:
    return st.none() | st.integers(0, most).map(lambda number: f"{prefix}{number}")


@st.composite
def collections(draw: st.DrawFn) -> list[Candidate]:
    count = draw(st.integers(0, 60))
    most = draw(st.sampled_from([2, 8, 60]))
    return [
        Candidate(
            key=f"e{number}",
            writer=draw(few("w", most)),
            text=draw(few("text ", 2 * most)) or f"own {number}",
            context=draw(few("context ", most) | few("text ", most)),
            label=draw(st.sampled_from(["yes", "no", None])),
            model_label=draw(st.sampled_from(["yes", "no"])),
            verified=draw(st.booleans()),
            family=draw(few("f", most)),
        )
        for number in range(count)
    ]


@settings(max_examples=40, deadline=None)
@given(examples=collections(), seed=st.integers(0, 5), only=st.sets(st.sampled_from(["w0", "w1"]), max_size=1))
def test_nothing_is_shared_between_splits(examples: list[Candidate], seed: int, only: set[str]) -> None:
    splits = assign(examples, seed=seed, exclusive_writers=only)

    assert set(splits) == {example.key for example in examples}
    assert leaks(examples, splits) == []
    for example in examples:
        if splits[example.key] in (Split.DEV, Split.TEST):
            assert example.verified
        if example.label is None:
            assert splits[example.key] is Split.WITHHELD
        if example.writer in only:
            assert splits[example.key] in (Split.TEST, Split.WITHHELD)
        elif only:
            assert splits[example.key] is not Split.TEST


@settings(max_examples=20, deadline=None)
@given(first=collections(), second=collections(), seed=st.integers(0, 3))
def test_a_later_round_keeps_what_an_earlier_one_has_and_leaks_nothing_into_it(
    first: list[Candidate], second: list[Candidate], seed: int
) -> None:
    before = assign(first, seed=seed)
    earlier = [replace(example, fixed=before[example.key]) for example in first]
    later = [replace(example, key=f"second {example.key}") for example in second]

    splits = assign([*earlier, *later], seed=seed + 1)

    assert {example.key: splits[example.key] for example in earlier} == before
    assert leaks([*earlier, *later], splits) == []


@settings(max_examples=20, deadline=None)
@given(examples=collections(), seed=st.integers(0, 3), order=st.randoms(use_true_random=False))
def test_the_order_of_the_examples_does_not_matter(examples: list[Candidate], seed: int, order: random.Random) -> None:
    shuffled = list(examples)
    order.shuffle(shuffled)

    assert assign(shuffled, seed=seed) == assign(examples, seed=seed)


def test_examples_of_nobody_known_are_cut_in_an_order_of_their_own() -> None:
    one_context = [Candidate(f"e{number}", None, f"own {number}", "context", "yes", True) for number in range(40)]

    assert assign(one_context[::-1], seed=0) == assign(one_context, seed=0)


def separate(count: int) -> list[Candidate]:
    return [Candidate(f"e{n}", f"w{n % (count // 10)}", f"text {n}", f"context {n}", "yes", True) for n in range(count)]


def test_examples_that_do_not_hang_together_get_their_shares() -> None:
    found = Counter(assign(separate(2000), seed=3, shares=(0.7, 0.2, 0.1)).values())

    assert found[Split.TRAIN] == pytest.approx(1400, abs=20)
    assert found[Split.DEV] == pytest.approx(400, abs=20)
    assert found[Split.TEST] == pytest.approx(200, abs=20)


def test_another_seed_chooses_others() -> None:
    examples = separate(400)

    assert assign(examples, seed=1) == assign(examples, seed=1) != assign(examples, seed=2)


def crowd(writers: int, contexts: int, each: int) -> list[Candidate]:
    """Everybody writes about several of the contexts, so that all hang together."""
    chance = random.Random(7)
    return [
        Candidate(f"{w}-{n}", f"w{w}", f"text {w} {n}", f"context {chance.randrange(contexts)}", "yes", True)
        for w in range(writers)
        for n in range(each)
    ]


@pytest.mark.parametrize(("writers", "contexts", "each"), [(40, 24, 12), (40, 300, 12), (200, 2000, 20), (12, 12, 20)])
def test_where_all_hang_together_test_and_dev_are_cut_out(writers: int, contexts: int, each: int) -> None:
    examples = crowd(writers, contexts, each)

    splits = assign(examples, seed=1)

    found = Counter(splits.values())
    total = len(examples)
    assert leaks(examples, splits) == []
    assert found[Split.TEST] >= 0.03 * total, found
    assert found[Split.DEV] >= 0.03 * total, found
    assert found[Split.TRAIN] >= 0.2 * total, found


def test_exclusive_writers_fill_the_test_split_alone() -> None:
    examples = separate(1000)

    splits = assign(examples, seed=1, exclusive_writers={"w3", "w4"})

    in_test = {example.writer for example in examples if splits[example.key] is Split.TEST}
    assert in_test == {"w3", "w4"}


def test_a_pair_of_opposites_stays_in_one_split() -> None:
    pairs = [
        Candidate(f"{n}-{which}", None, f"text {n} {which}", None, which, True, family=f"pair {n}")
        for n in range(300)
        for which in ("hateful", "harmless")
    ]

    splits = assign(pairs, seed=0)

    assert all(splits[f"{n}-hateful"] is splits[f"{n}-harmless"] for n in range(300))
    assert Counter(splits.values())[Split.TEST] == pytest.approx(60, abs=4)


def answered(count: int) -> list[Candidate]:
    chance = random.Random(5)
    labels = ["negative", "positive", "neutral"]
    return [
        Candidate(
            f"e{n}",
            None,
            f"text {n}",
            None,
            chance.choice(labels),
            True,
            model_label=chance.choice([*labels, "positive"]),
        )
        for n in range(count)
    ]


def test_balanced_splits_leave_the_target_at_chance() -> None:
    examples = answered(3000)
    labels = ["negative", "positive", "neutral"]

    splits = assign(examples, seed=2, balanced=labels)

    for split in (Split.DEV, Split.TEST):
        cells = Counter((one.label, one.model_label) for one in examples if splits[one.key] is split)
        assert len(cells) == 9
        assert len(set(cells.values())) == 1
        assert min(cells.values()) > 10


def test_what_can_not_be_balanced_is_said() -> None:
    examples = [replace(example, model_label="positive") for example in answered(300) if example.label != "positive"]

    with pytest.raises(Refused, match="no verified example of positive that the model took for positive"):
        assign(examples, seed=2, balanced=["negative", "positive", "neutral"])


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.8, 0.3, -0.1), (0.8, 0.1, 0.2)])
def test_shares_that_are_none_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match="three numbers that sum to 1"):
        assign(separate(20), seed=1, shares=shares)
