"""The amounts and the sentences that explain them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session

from hits.errors import InvalidInput
from hits.models import HitBatch
from hits.money import MoneyError, usd
from hits.states import HitKind
from payments.rules import (
    VERIFIED_FOOLING_EXAMPLE,
    Bonus,
    Extras,
    ReaderTerms,
    base_reward,
    bonus_owed,
    certainty,
    compensation,
    difficulty_owed,
    gold_bonus,
    streak_owed,
    streaks_completed,
    validation_bonus,
    wage_topup,
)
from tests import factories
from tests.payments.builders import fooling_example, verified_example


@pytest.mark.parametrize(
    ("readers", "words"), [(0, "it was confirmed"), (1, "1 reader agreed"), (2, "2 readers agreed")]
)
def test_the_sentence_says_what_was_done_who_agreed_and_how_much(session: Session, readers: int, words: str) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    example = verified_example(session, batch=batch)

    owed = bonus_owed(example, batch, readers=readers)

    assert owed == Bonus(
        VERIFIED_FOOLING_EXAMPLE,
        usd("0.30"),
        f"Your statement of 15 Nov fooled the model and {words}: $0.30.",
    )


def test_the_sentence_names_no_worker(session: Session) -> None:
    batch = factories.make_batch(session)
    example = verified_example(session, batch=batch)

    owed = bonus_owed(example, batch, readers=2)

    assert owed is not None
    assert example.writer.mturk_worker_id not in owed.reason
    assert example.writer.pseudonym not in owed.reason


def test_an_example_that_is_not_verified_earns_nothing(session: Session) -> None:
    batch = factories.make_batch(session)

    assert bonus_owed(fooling_example(session, batch=batch), batch, readers=1) is None


def test_a_batch_without_a_bonus_owes_nothing(session: Session) -> None:
    batch: HitBatch = factories.make_batch(session, bonus=usd(0))

    assert bonus_owed(verified_example(session, batch=batch), batch, readers=2) is None


@pytest.mark.parametrize(
    ("outcomes", "length", "places"),
    [
        ([], 2, []),
        ([True], 2, []),
        ([True, True], 2, [1]),
        ([True, False, True, True], 2, [3]),
        ([True] * 5, 2, [1, 3]),
        ([True, None, True, True], 2, []),
        ([True, True, None, True, True], 2, [1]),
        ([False, True, True, True], 3, [3]),
    ],
)
def test_a_hit_belongs_to_one_streak_and_an_open_one_holds_up_the_rest(
    outcomes: list[bool | None], length: int, places: list[int]
) -> None:
    assert streaks_completed(outcomes, length) == places


@given(st.lists(st.sampled_from([True, False, None]), max_size=40), st.integers(2, 5))
def test_a_decision_that_comes_later_takes_no_streak_away(outcomes: list[bool | None], length: int) -> None:
    before = streaks_completed(outcomes, length)
    decided = [True if outcome is None else outcome for outcome in outcomes]

    assert streaks_completed(decided, length)[: len(before)] == before
    assert len(before) * length <= outcomes.count(True)


def test_what_a_batch_pays_besides_is_told_to_workers_and_counted_in_its_worst_case() -> None:
    extras = Extras(streak_length=3, streak_bonus=usd("1.00"), sure_percent=90, sure_bonus=usd("0.10"))

    assert extras.sentences == [
        "You get $0.10 more if the model was at least 90 % sure of its wrong answer.",
        "You get $1.00 more for every 3 of these HITs in a row in which you fooled the model.",
    ]
    assert extras.most(10) == [(10, usd("0.10")), (3, usd("1.00"))]
    assert Extras.of(HitBatch(extras=extras.as_json())) == extras
    assert (Extras().sentences, Extras().most(10), Extras().as_json()) == ([], [], None)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"streak_length": 1, "streak_bonus": "0.10"}, "1 HITs long"),
        ({"streak_length": 101, "streak_bonus": "0.10"}, "101 HITs long"),
        ({"sure_percent": 0, "sure_bonus": "0.10"}, "0 %"),
        ({"sure_percent": 101, "sure_bonus": "0.10"}, "101 %"),
        ({"sure_percent": 90, "sure_bonus": "0.001"}, "fraction of a cent"),
        ({"sure_percent": 90, "sure_bonus": "-0.10"}, "negative"),
    ],
)
def test_what_can_not_be_paid_besides_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidInput, MoneyError), match=words):
        Extras(**values)


@pytest.mark.parametrize(("confidence", "percent"), [(0.8, 80), (0.29, 29), (0.7999, 79), (1.0, 100)])
def test_certainty_is_rounded_down_and_never_by_a_float(session: Session, confidence: float, percent: int) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    example.attempt.confidence = confidence

    assert certainty(example) == percent


def test_without_a_figure_nobody_was_sure(session: Session) -> None:
    batch = factories.make_batch(session, extras=Extras(sure_percent=1, sure_bonus=usd("0.10")).as_json())
    example = verified_example(session, batch=batch)
    example.attempt.probabilities = None

    assert certainty(example) is None
    assert difficulty_owed(example, batch) is None


def test_every_amount_says_what_it_is_for(session: Session) -> None:
    batch = factories.make_batch(
        session, reward=usd("0.30"), extras=Extras(streak_length=3, streak_bonus=usd("1.00")).as_json()
    )
    streak = streak_owed(batch, 2)
    judged, gold = validation_bonus(10, usd("0.05")), gold_bonus(9, 10, 90, usd("0.20"))

    assert base_reward(batch).reason == "For this HIT, whatever others say about your work: $0.30."
    quiz = factories.make_batch(session, round=batch.round, kind=HitKind.QUALIFICATION, reward=usd("0.30"))
    assert base_reward(quiz).reason == "For answering the quiz, passed or not: $0.30."
    own = factories.make_batch(session, round=batch.round, kind=HitKind.COMPENSATION, description="What we owe you.")
    assert base_reward(own).reason == "What we owe you."
    assert streak is not None
    assert streak.reason == "You fooled the model in 3 HITs in a row (streak 2 of this batch): $1.00."
    assert judged is not None
    assert judged.reason == "You judged 10 items of a HIT: $0.05."
    assert gold is not None
    assert gold.reason == "9 of 10 items whose answer was known were right: $0.20."
    assert compensation(usd("0.30"), "a fault. ").reason == (
        "You could not hand in your work through our fault (a fault): $0.30."
    )


@pytest.mark.parametrize(
    ("right", "gold", "percent", "earned"),
    [(9, 10, 90, True), (8, 10, 90, False), (2, 3, 67, False), (2, 3, 66, True), (0, 0, 0, False), (3, 3, 100, True)],
)
def test_gold_pays_from_the_share_on_that_was_asked_for(right: int, gold: int, percent: int, earned: bool) -> None:
    assert (gold_bonus(right, gold, percent, usd("0.20")) is not None) is earned
    assert gold_bonus(right, gold, percent, usd(0)) is None


def test_terms_for_readers_are_kept_with_their_batch_and_said_beforehand(session: Session) -> None:
    terms = ReaderTerms(90, usd("0.20"), usd("0.05"))
    batch = factories.make_batch(session, kind=HitKind.VALIDATION, extras=terms.as_json())

    assert ReaderTerms.of(batch) == terms
    assert terms.sentences == [
        "You get $0.05 more for each of these HITs in which you judge every item.",
        "You get $0.20 more, once for all HITs that were opened with this one, if at least 90 % of those items are"
        " right whose answer is known.",
    ]
    assert terms.most(3) == [(3, usd("0.05")), (3, usd("0.20"))]
    assert ReaderTerms().as_json() is None
    assert (ReaderTerms().sentences, ReaderTerms().most(3)) == ([], [])


def test_nothing_judged_or_no_bonus_is_nothing() -> None:
    assert validation_bonus(0, usd("0.05")) is None
    assert validation_bonus(10, usd(0)) is None


@pytest.mark.parametrize(
    ("paid", "seconds", "hourly", "due"),
    [
        ("1.00", 360, "10.00", None),
        ("1.00", 361, "10.00", "0.01"),
        ("1.00", 720, "10.00", "1.00"),
        ("1.00", 1, "10.00", None),
        ("0.30", 600, "9.00", "1.20"),
    ],
)
def test_a_top_up_lifts_to_the_wage_and_rounds_up(paid: str, seconds: int, hourly: str, due: str | None) -> None:
    bonus = wage_topup(seconds, usd(paid), usd(hourly))

    assert (None if bonus is None else bonus.amount) == (None if due is None else usd(due))


@settings(max_examples=50)
@given(st.integers(1, 10_000), st.integers(1, 100_000), st.integers(1, 5_000))
def test_reward_and_top_up_together_reach_the_wage(cents: int, seconds: int, hourly_cents: int) -> None:
    reward, hourly = Decimal(cents) / 100, Decimal(hourly_cents) / 100

    bonus = wage_topup(seconds, reward, hourly)

    paid = reward + (bonus.amount if bonus is not None else 0)
    assert paid * 3600 >= hourly * seconds
    assert paid - Decimal("0.01") < max(reward, hourly * seconds / 3600)
