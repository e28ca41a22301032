"""Simulated validators give the verdicts and the cost that theory says; the table in docs/validation.md is computed."""

from __future__ import annotations

import math
import random
import re
import sys
from functools import cache

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.models import Example, Worker
from hits.states import Verdict
from hits.validations import Policy, outcome
from tests import factories as make
from tests.hits.validations.playing import Text, empty_session, play, round_with
from tests.launched import ROOT

LABELS = ("negative", "positive", "neutral")
#: As docs/validation.md names them.
POLICIES = {
    "one reader": Policy(1, 1),
    "two of three": Policy(2, 3),
    "two, a senior breaks the tie": Policy(2, 3, senior_value=2),
    "two, else three of five": Policy(2, 5, split_votes=3),
    "three of five": Policy(3, 5),
}
ACCURACIES = (0.60, 0.70, 0.80, 0.90, 0.95)
#: Of seniors, who break ties.
SENIOR_ACCURACY = 0.97


@cache
def theory(policy: Policy, accuracy: float, votes: tuple[int, int, int] = (0, 0, 0)) -> tuple[float, float, float]:
    """The chance that the final label is right, that it is wrong, and the expected number of further votes.

    Each reader is right by ``accuracy`` and else says either other label alike; the true label comes first.
    """
    labels = [label for label, count in zip(LABELS, votes, strict=True) for _ in range(count)]
    said = outcome(LABELS[0], LABELS[1], labels, 0, policy=policy)
    if said.verdict is not Verdict.PENDING:
        return float(said.final_label == LABELS[0]), float(said.final_label in LABELS[1:]), 0.0
    right = SENIOR_ACCURACY if said.for_seniors else accuracy
    found = [0.0, 0.0, 1.0]
    for place, chance in enumerate((right, (1 - right) / 2, (1 - right) / 2)):
        after = tuple(count + (at == place) for at, count in enumerate(votes))
        for at, value in enumerate(theory(policy, accuracy, after)):  # type: ignore[arg-type]
            found[at] += chance * value
    return found[0], found[1], found[2]


def simulated(session: Session, policy: Policy, accuracy: float, examples: int, *, seed: int) -> tuple[int, int, int]:
    """How many final labels were right, how many wrong, and how many votes were given, through the real queue."""
    chance = random.Random(seed)
    people = [make.make_worker(session) for _ in range(20)]
    writers = [make.make_worker(session) for _ in range(5)]
    seniors = set(people[-4:])
    truths = [chance.choice(LABELS) for _ in range(examples)]
    texts = [
        Text(truth, chance.choice([label for label in LABELS if label != truth]), writers[number % 5])
        for number, truth in enumerate(truths)
    ]
    round_, rows = round_with(session, policy, texts)
    truth_of = dict(zip((row.id for row in rows), truths, strict=True))

    def judge(example_id: int, nth: int, who: Worker) -> str:
        tie = policy.senior_value is not None and nth > policy.agreeing_votes
        assert not tie or who in seniors
        truth = truth_of[example_id]
        if chance.random() < (SENIOR_ACCURACY if tie else accuracy):
            return truth
        return chance.choice([label for label in LABELS if label != truth])

    votes = play(session, round_, people, judge)
    final = session.execute(select(Example.id, Example.final_label, Example.verdict)).all()
    assert Verdict.PENDING not in {row.verdict for row in final}
    right = sum(row.final_label == truth_of[row.id] for row in final)
    wrong = sum(row.final_label is not None and row.final_label != truth_of[row.id] for row in final)
    return right, wrong, votes


def check(policy: Policy, accuracy: float, examples: int, *, seed: int) -> None:
    expected_right, expected_wrong, expected_votes = theory(policy, accuracy)
    with empty_session() as session:
        right, wrong, votes = simulated(session, policy, accuracy, examples, seed=seed)

    for count, chance in ((right, expected_right), (wrong, expected_wrong)):
        spread = math.sqrt(examples * chance * (1 - chance))
        assert abs(count - examples * chance) <= 4 * spread + 1e-9, (policy, accuracy, count)
    most_spread = (policy.max_votes - policy.agreeing_votes) / 2
    assert abs(votes / examples - expected_votes) <= 4 * most_spread / math.sqrt(examples) + 1e-9


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("two of three", 0.80), ("two, else three of five", 0.70), ("two, a senior breaks the tie", 0.6)],
)
def test_simulated_readers_decide_and_cost_as_theory_says(name: str, accuracy: float) -> None:
    check(POLICIES[name], accuracy, 60, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("accuracy", ACCURACIES)
@pytest.mark.parametrize("name", POLICIES)
def test_many_simulated_readers_decide_and_cost_as_theory_says(name: str, accuracy: float) -> None:
    check(POLICIES[name], accuracy, 1000, seed=11)


def test_theory_agrees_with_what_can_be_worked_out_by_hand() -> None:
    assert theory(Policy(1, 1), 0.7) == pytest.approx((0.7, 0.3, 1))
    right, wrong, votes = theory(Policy(2, 3), 0.8)
    # Two right at once, or one of the first two and then the third.
    assert right == pytest.approx(0.8**2 + 2 * 0.8 * 0.2 * 0.8)
    assert votes == pytest.approx(2 + (1 - 0.8**2 - 2 * 0.1**2))
    # The same wrong label twice: at once, or one of the first two and then the third.
    assert wrong == pytest.approx(2 * (0.1**2 + 2 * 0.1 * 0.9 * 0.1))


def table() -> list[str]:
    """The table's rows as docs/validation.md has them; this module run by itself writes them."""
    rows = []
    for name, policy in POLICIES.items():
        cells = []
        for accuracy in ACCURACIES:
            right, wrong, votes = theory(policy, accuracy)
            cells.append(f"{100 * right:.1f} / {100 * wrong:.1f} / {votes:.2f}")
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return rows


def test_the_table_in_the_document_is_what_theory_says() -> None:
    document = (ROOT / "docs/validation.md").read_text(encoding="utf-8")

    written = re.findall(r"^\| (?:one reader|two|three).*\d / .*\|$", document, flags=re.MULTILINE)

    assert written == table()


def test_more_readers_are_not_always_better_than_a_better_one() -> None:
    found = {name: theory(policy, 0.8) for name, policy in POLICIES.items()}

    assert found["two, a senior breaks the tie"][0] > found["two of three"][0]
    assert found["two, else three of five"][2] < found["three of five"][2]


if __name__ == "__main__":
    sys.stdout.write("\n".join(table()) + "\n")
