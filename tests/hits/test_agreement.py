"""Krippendorff's alpha and its interval, against published values and the library's own."""

from __future__ import annotations

import random

import krippendorff
import numpy as np
import pytest
from sqlalchemy.orm import Session

from hits import validations
from hits.agreement import Agreement, agreement, alpha_of, alphas_of_samples
from hits.clock import FixedClock
from hits.states import AssignmentState
from tests import factories as make

#: Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section C: four observers, twelve units, 0.743.
OBSERVERS = ("1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3", ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 .")

LABELS = ("negative", "positive", "neutral")


def units() -> dict[int, list[str]]:
    columns = zip(*(line.split() for line in OBSERVERS), strict=True)
    return {number: [said for said in column if said != "."] for number, column in enumerate(columns)}


def made_up(examples: int, accuracy: float, *, readers: int = 3, seed: int = 1) -> dict[int, list[str]]:
    chance = random.Random(seed)
    found = {}
    for number in range(examples):
        truth = chance.choice(LABELS)
        others = [label for label in LABELS if label != truth]
        found[number] = [truth if chance.random() < accuracy else chance.choice(others) for _ in range(readers)]
    return found


def test_alpha_is_the_published_one() -> None:
    found = alpha_of(units())

    assert found.alpha == pytest.approx(0.743, abs=0.0005)
    assert (found.examples, found.votes) == (11, 40)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.alpha < found.high


def test_the_formula_of_the_samples_is_the_librarys() -> None:
    labels = made_up(40, 0.7)
    known = sorted({label for said in labels.values() for label in said})
    counts = np.array([[said.count(label) for label in known] for said in labels.values()], dtype=float)
    generator = np.random.default_rng(3)
    taken = generator.multinomial(40, np.full(40, 1 / 40), size=5)

    for weights, alpha in zip(taken, alphas_of_samples(counts, taken), strict=True):
        sample = np.repeat(counts, weights, axis=0)
        assert alpha == pytest.approx(krippendorff.alpha(value_counts=sample, level_of_measurement="nominal"))


@pytest.mark.parametrize(("examples", "accuracy", "readers"), [(80, 0.6, 2), (300, 0.9, 3)])
def test_drawing_patterns_gives_the_interval_of_drawing_examples(examples: int, accuracy: float, readers: int) -> None:
    labels = made_up(examples, accuracy, readers=readers)
    counts = np.array([[said.count(label) for label in LABELS] for said in labels.values()], dtype=float)
    taken = np.random.default_rng(5).multinomial(examples, np.full(examples, 1 / examples), size=4000)
    low, high = np.percentile(alphas_of_samples(counts, taken), [2.5, 97.5])

    found = alpha_of(labels)

    assert found.alpha == pytest.approx(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))
    assert found.low == pytest.approx(low, abs=0.03)
    assert found.high == pytest.approx(high, abs=0.03)


def test_the_interval_holds_the_truth_about_as_often_as_it_says_and_is_always_the_same() -> None:
    # The alpha of a very large number of such examples is what the samples of forty are to hold.
    truth = krippendorff.alpha(
        value_counts=np.array([[said.count(one) for one in LABELS] for said in made_up(50_000, 0.8, seed=99).values()]),
        level_of_measurement="nominal",
    )

    held = 0
    for seed in range(60):
        found = alpha_of(made_up(60, 0.8, seed=seed))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= truth <= found.high

    assert held >= 50
    assert alpha_of(made_up(60, 0.8)) == alpha_of(made_up(60, 0.8))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({}, Agreement(None, None, None, 0, 0)),
        ({1: ["a"], 2: ["b"]}, Agreement(None, None, None, 0, 0)),
        ({1: ["a", "a"], 2: ["a", "a", "a"]}, Agreement(None, None, None, 2, 5)),
    ],
)
def test_there_is_no_agreement_without_something_to_compare(labels: dict[int, list[str]], expected: Agreement) -> None:
    assert alpha_of(labels) == expected


def test_full_agreement_is_one() -> None:
    found = alpha_of({1: ["a", "a"], 2: ["b", "b"], 3: ["a", "a"]})

    assert (found.alpha, found.high) == (1.0, 1.0)


def test_the_votes_of_a_round_are_its_counted_labels(session: Session, clock: FixedClock) -> None:
    agreed, differed, dropped, flagged = (make.make_example(session) for _ in range(4))
    for example, labels in (
        (agreed, ("negative", "negative")),
        (differed, ("negative", "positive")),
        (dropped, ("positive", "neutral")),
        (flagged, ("positive",)),
    ):
        for label in labels:
            make.make_vote(session, example=example, label=label)
    make.make_vote(session, example=flagged, label=None, flag_reason="insult")
    make.make_vote(session, example=agreed, label="neutral", counted_at=None)
    validations.retract(session, dropped, reason="asked for", now=clock.now())
    other = make.make_round(session, number=2)
    hit = make.make_hit(session, batch=make.make_batch(session, round=other))
    attempt = make.make_attempt(
        session, assignment=make.make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
    )
    elsewhere = make.make_example(session, attempt=attempt)
    for _ in range(2):
        make.make_vote(session, example=elsewhere)

    found = agreement(session, [agreed.round_id])

    assert found == alpha_of({1: ["negative", "negative"], 2: ["negative", "positive"]})
    assert agreement(session, [agreed.round_id, other.id]).votes == 6
