"""How contexts are chosen, from what is known of them alone."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hits.contexts.selection import STRATEGIES, Candidate, choose, smoothed, strategy
from hits.errors import InvalidInput

FRESH = Candidate()


def chosen(name: str, known: list[Candidate], hits: int, *, per_context: int = 0, seed: int = 1) -> list[int]:
    order = list(range(len(known)))
    return choose(strategy(name, known), known, hits, order, random.Random(seed), per_context)


def test_the_least_used_come_first_and_all_evenly() -> None:
    known = [Candidate(used=2), FRESH, Candidate(held=1)]

    assert chosen("least-used", known, 4) == [1, 1, 2, 0]


def test_uniform_draws_are_the_seeds_and_as_likely_for_each() -> None:
    known = [Candidate(used=9), FRESH, FRESH, FRESH]

    drawn = chosen("uniform", known, 4000)

    assert drawn == chosen("uniform", known, 4000)
    assert drawn != chosen("uniform", known, 4000, seed=2)
    assert all(900 <= count <= 1100 for count in Counter(drawn).values())


def test_the_least_fooled_come_first_and_few_examples_say_little() -> None:
    known = [Candidate(asked=10, fooled=8), FRESH, Candidate(asked=1, fooled=0), Candidate(asked=20, fooled=1)]
    share = 9 / 31

    assert smoothed(known[3], share) == pytest.approx((1 + 2 * share) / 22)
    assert smoothed(known[1], share) == pytest.approx(share)
    assert chosen("least-fooled", known, 5) == [3, 2, 1, 0, 3]


def test_contexts_whose_validated_examples_all_failed_are_issued_again_once_each() -> None:
    known = [
        Candidate(used=1, failed=2),
        Candidate(used=1, failed=1, sound=1),
        Candidate(used=1, failed=1, waiting=1),
        Candidate(used=1, held=1, failed=1),
        Candidate(used=3, failed=1),
        FRESH,
    ]

    assert chosen("reissue", known, 2, per_context=1) == [4, 0]
    with pytest.raises(InvalidInput, match=r"2 HITs can be given a context by reissue .* and 3 are wanted"):
        chosen("reissue", known, 3)


def test_the_model_s_unsure_ones_come_first_and_those_without_a_score_in_the_middle() -> None:
    known = [Candidate(uncertainty=0.1), FRESH, Candidate(uncertainty=0.9), Candidate(uncertainty=0.2)]

    assert chosen("uncertainty", known, 4) == [2, 1, 3, 0]


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_a_retired_context_is_never_chosen(name: str) -> None:
    known = [Candidate(retired=True, failed=1, uncertainty=1.0), Candidate(failed=1, used=5)]

    assert chosen(name, known, 1) == [1]


def test_an_unknown_way_names_those_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"'best'.*least-used, uniform"):
        strategy("best")


facts = st.builds(
    Candidate,
    used=st.integers(0, 4),
    held=st.integers(0, 4),
    asked=st.integers(4, 9),
    fooled=st.integers(0, 4),
    failed=st.integers(0, 2),
    uncertainty=st.none() | st.floats(0, 1),
    retired=st.booleans(),
)


@given(
    st.lists(facts, min_size=1, max_size=12), st.sampled_from(list(STRATEGIES)), st.integers(1, 20), st.integers(0, 4)
)
@settings(max_examples=60, deadline=None)
def test_every_hit_gets_a_context_within_the_limit_or_none_gets_any(
    known: list[Candidate], name: str, hits: int, per_context: int
) -> None:
    try:
        found = chosen(name, known, hits, per_context=per_context)
    except InvalidInput:
        return

    assert len(found) == hits
    for index, count in Counter(found).items():
        assert not known[index].retired
        if per_context and name != "reissue":
            assert known[index].taken + count <= per_context
