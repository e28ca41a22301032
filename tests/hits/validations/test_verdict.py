"""The verdict tables for every multiset of votes under each policy."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations_with_replacement, permutations

import pytest

from hits.errors import InvalidInput
from hits.states import Moderation, Verdict
from hits.tasks import task
from hits.validations import Outcome, Override, Policy, outcome
from tests.launched import ROOT

TWO_OF_THREE = Policy()

# The writer aims at w, the model said m; a is a further label.
W, M, A = "negative", "positive", "neutral"
WRONG, RIGHT = Verdict.VALID_AND_MODEL_WRONG, Verdict.VALID_AND_MODEL_RIGHT
#: votes -> verdict, final label, votes wanted, writer confirmed; docs/verdicts.md shows the same table.
TABLE = {
    (): (Verdict.PENDING, None, 2, False),
    (W,): (Verdict.PENDING, None, 1, False),
    (M,): (Verdict.PENDING, None, 1, False),
    (A,): (Verdict.PENDING, None, 1, False),
    (W, W): (WRONG, W, 0, True),
    (M, M): (RIGHT, M, 0, False),
    (A, A): (WRONG, A, 0, False),
    (W, M): (Verdict.PENDING, None, 1, False),
    (W, A): (Verdict.PENDING, None, 1, False),
    (M, A): (Verdict.PENDING, None, 1, False),
    (W, W, W): (WRONG, W, 0, True),
    (W, W, M): (WRONG, W, 0, True),
    (W, W, A): (WRONG, W, 0, True),
    (M, M, W): (RIGHT, M, 0, False),
    (M, M, A): (RIGHT, M, 0, False),
    (M, M, M): (RIGHT, M, 0, False),
    (A, A, W): (WRONG, A, 0, False),
    (A, A, M): (WRONG, A, 0, False),
    (A, A, A): (WRONG, A, 0, False),
    (W, M, A): (Verdict.INVALID, None, 0, False),
}


def said(votes: tuple[str, ...], flags: int = 0, **options: object) -> tuple[Verdict, str | None, int, bool]:
    policy = options.pop("policy", TWO_OF_THREE)
    found = outcome(W, M, votes, flags, policy=policy, **options)  # type: ignore[arg-type]
    return found.verdict, found.final_label, found.votes_wanted, found.writer_confirmed


def test_the_table_covers_every_multiset_of_up_to_three_votes() -> None:
    every = {tuple(sorted(votes)) for n in range(4) for votes in combinations_with_replacement((W, M, A), n)}

    assert {tuple(sorted(votes)) for votes in TABLE} == every


@pytest.mark.parametrize("votes", TABLE, ids=lambda votes: "+".join(votes) or "none")
def test_a_multiset_of_votes_gives_its_verdict_in_any_order(votes: tuple[str, ...]) -> None:
    assert {said(order) for order in permutations(votes)} == {TABLE[votes]}


@pytest.mark.parametrize("votes", TABLE, ids=lambda votes: "+".join(votes) or "none")
def test_a_flag_stops_every_verdict_until_it_is_moderated(votes: tuple[str, ...]) -> None:
    assert said(votes, flags=1) == (Verdict.FLAGGED, None, 0, False)
    assert said(votes, flags=1, moderation=Moderation.DISMISSED) == (Verdict.FLAGGED, None, 0, False)
    assert said(votes, moderation=Moderation.DISMISSED) == TABLE[votes]
    assert said(votes, flags=1, moderation=Moderation.UPHELD) == (Verdict.INVALID, None, 0, False)


# Question answering: readers say whether the writer's marked answer is right (R) or wrong (N).
R, N = "right", "wrong"
QA_TABLE = {
    (): (Verdict.PENDING, None, 2, False),
    (R,): (Verdict.PENDING, None, 1, False),
    (N,): (Verdict.PENDING, None, 1, False),
    (R, R): (WRONG, R, 0, True),
    (R, N): (Verdict.PENDING, None, 1, False),
    (N, N): (Verdict.INVALID, N, 0, False),
    (R, R, R): (WRONG, R, 0, True),
    (R, R, N): (WRONG, R, 0, True),
    (R, N, N): (Verdict.INVALID, N, 0, False),
    (N, N, N): (Verdict.INVALID, N, 0, False),
}


def qa_said(votes: tuple[str, ...], flags: int = 0, **options: object) -> tuple[Verdict, str | None, int, bool]:
    policy = options.pop("policy", TWO_OF_THREE)
    rejecting = task("qa").rejecting_labels
    found = outcome(R, N, votes, flags, policy=policy, rejecting_labels=rejecting, **options)  # type: ignore[arg-type]
    return found.verdict, found.final_label, found.votes_wanted, found.writer_confirmed


def test_the_table_of_marked_answers_covers_every_multiset_of_up_to_three_votes() -> None:
    every = {tuple(sorted(votes)) for n in range(4) for votes in combinations_with_replacement((R, N), n)}

    assert {tuple(sorted(votes)) for votes in QA_TABLE} == every


@pytest.mark.parametrize("votes", QA_TABLE, ids=lambda votes: "+".join(votes) or "none")
def test_votes_about_a_marked_answer_give_their_verdict_in_any_order_and_flags_stop_it(votes: tuple[str, ...]) -> None:
    assert {qa_said(order) for order in permutations(votes)} == {QA_TABLE[votes]}
    assert qa_said(votes, flags=1) == (Verdict.FLAGGED, None, 0, False)
    assert qa_said(votes, moderation=Moderation.DISMISSED) == QA_TABLE[votes]
    assert qa_said(votes, flags=1, moderation=Moderation.UPHELD) == (Verdict.INVALID, None, 0, False)


def test_a_tie_about_a_marked_answer_is_unresolved() -> None:
    assert qa_said((R, R, N, N), policy=Policy(2, 4)) == (Verdict.UNRESOLVED, None, 0, False)
    assert qa_said((R, R, N, N), policy=Policy(2, 5)) == (Verdict.PENDING, None, 1, False)


def test_both_tables_are_the_ones_in_the_document() -> None:
    document = (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([rn ]+) \| (\w+) \| (right|wrong|)\s*\|", document, flags=re.MULTILINE)
    names = {"r": R, "n": N}

    written = {tuple(names[vote] for vote in votes.split()): (verdict, final or None) for votes, verdict, final in rows}
    assert written == {votes: (found[0].value, found[1]) for votes, found in QA_TABLE.items() if votes}


def test_a_tie_at_the_most_votes_is_unresolved_when_the_majority_is_not_against_the_writer() -> None:
    assert said((W, W, M, M), policy=Policy(2, 4)) == (Verdict.UNRESOLVED, None, 0, False)
    assert said((W, W, M, M), policy=Policy(2, 5)) == (Verdict.PENDING, None, 1, False)


def test_an_unvalidated_example_where_the_model_was_right_is_never_confirmed() -> None:
    found = outcome(W, W, [W, W], 0, policy=TWO_OF_THREE)

    assert (found.verdict, found.writer_confirmed) == (RIGHT, False)


#: Every policy that docs/validation.md names.
POLICIES = {
    "two of three": Policy(2, 3),
    "three of five": Policy(3, 5),
    "two, else three of five": Policy(2, 5, split_votes=3),
    "two, a senior breaks the tie": Policy(2, 3, senior_value=2),
    "two of four": Policy(2, 4),
    "one reader": Policy(1, 1),
}


def multisets(most: int) -> list[tuple[str, ...]]:
    return [votes for n in range(most + 1) for votes in combinations_with_replacement((W, M, A), n)]


def by_the_words(policy: Policy, votes: tuple[str, ...]) -> tuple[Verdict, str | None]:
    """The rule of docs/validation.md, written a second time: by trying each label instead of ranking them."""
    counts = Counter(votes)
    differ = len(counts) > 1
    needed = policy.split_votes if differ and policy.split_votes is not None else policy.agreeing_votes
    for label in (W, M, A):
        others = max((counts[other] for other in (W, M, A) if other != label), default=0)
        if counts[label] >= needed and counts[label] > others:
            return (RIGHT if label == M else WRONG), label
    if len(votes) < policy.max_votes:
        return Verdict.PENDING, None
    return (Verdict.INVALID if counts[M] + counts[A] > len(votes) / 2 else Verdict.UNRESOLVED), None


@pytest.mark.parametrize("name", POLICIES)
def test_every_multiset_up_to_the_most_votes_gives_what_the_rule_says(name: str) -> None:
    policy = POLICIES[name]
    every = multisets(policy.max_votes)
    assert len(every) == (policy.max_votes + 1) * (policy.max_votes + 2) * (policy.max_votes + 3) // 6

    for votes in every:
        found = {outcome(W, M, order, 0, policy=policy) for order in set(permutations(votes))}
        assert len(found) == 1, votes
        [one] = found
        assert (one.verdict, one.final_label) == by_the_words(policy, votes), votes
        assert one.writer_confirmed is (one.verdict is WRONG and one.final_label == W)


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_wanted_is_the_least_that_could_decide_and_never_beyond_the_most(name: str) -> None:
    policy = POLICIES[name]
    for votes in multisets(policy.max_votes):
        said_now = outcome(W, M, votes, 0, policy=policy)
        if said_now.verdict is not Verdict.PENDING:
            assert said_now.votes_wanted == 0
            continue
        left = policy.max_votes - len(votes)
        deciding = [
            n
            for n in range(1, left + 1)
            if any(
                outcome(W, M, votes + more, 0, policy=policy).final_label is not None
                for more in combinations_with_replacement((W, M, A), n)
            )
        ]
        assert said_now.votes_wanted == min(deciding, default=left), votes


def test_two_who_agree_are_enough_until_readers_differ() -> None:
    adaptive = Policy(2, 5, split_votes=3)

    assert said((W, W), policy=adaptive)[0] is WRONG
    assert said((W, M), policy=adaptive) == (Verdict.PENDING, None, 2, False)
    assert said((W, W, M), policy=adaptive) == (Verdict.PENDING, None, 1, False)
    assert said((W, W, M, M), policy=adaptive) == (Verdict.PENDING, None, 1, False)
    assert said((W, W, W, M, M), policy=adaptive)[:2] == (WRONG, W)
    assert said((W, W, M, M, A), policy=adaptive) == (Verdict.INVALID, None, 0, False)


def test_only_seniors_are_asked_once_readers_differ() -> None:
    policy = Policy(2, 3, senior_value=2)

    assert not outcome(W, M, (), 0, policy=policy).for_seniors
    assert not outcome(W, M, (W,), 0, policy=policy).for_seniors
    assert outcome(W, M, (W, M), 0, policy=policy).for_seniors
    assert not outcome(W, M, (W, M), 0, policy=TWO_OF_THREE).for_seniors
    assert not outcome(W, M, (W, M, W), 0, policy=policy).for_seniors


@pytest.mark.parametrize("votes", TABLE, ids=lambda votes: "+".join(votes) or "none")
def test_the_requesters_word_stands_above_the_votes_and_below_flags(votes: tuple[str, ...]) -> None:
    assert said(votes, override=Override(W)) == (WRONG, W, 0, True)
    assert said(votes, override=Override(A)) == (WRONG, A, 0, False)
    assert said(votes, override=Override(M)) == (RIGHT, M, 0, False)
    assert said(votes, override=Override(None)) == (Verdict.INVALID, None, 0, False)
    assert said(votes, flags=1, override=Override(W)) == (Verdict.FLAGGED, None, 0, False)
    assert said(votes, moderation=Moderation.UPHELD, override=Override(W)) == (Verdict.INVALID, None, 0, False)


def test_the_requester_may_find_a_marked_answer_wrong() -> None:
    assert qa_said((R, R), override=Override(N)) == (Verdict.INVALID, N, 0, False)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 3), "0 agreeing votes"),
        ((3, 2), "2 at most"),
        ((2, 26), "26 at most"),
        ((2, 5, 1), "1 once readers have differed"),
        ((2, 5, 6), "6 once readers have differed"),
        ((2, 3, None, 0), "value must be 1 or more, not 0"),
    ],
)
def test_a_policy_that_can_not_work_is_refused_with_its_numbers(numbers: tuple[int, ...], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Policy(*numbers)


def test_a_policy_says_in_words_what_it_does() -> None:
    assert str(Policy()) == "2 must agree, 3 are asked at most"
    assert "once readers have differed, 3 must agree" in str(Policy(2, 5, 3))
    assert "value 2 or more" in str(Policy(2, 3, None, 2))
    assert outcome(W, M, (W, W), 0, policy=Policy()) == Outcome(WRONG, W, 0, True)
