"""Arms are set for those who come, their figures add up, and questions are answered in a sentence."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.round_arms import checked_arms, compare, round_arms, set_round_arms
from hits.arm_effects import Writer
from hits.arms import Arm, draw_arm
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound
from hits.models import ArmPlan, Round
from hits.money import usd
from payments.ledger import record_reward
from tests.factories import NOON, make_worker
from tests.rounds import finished

SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

MODELS = {"sentiment": "ensemble:mean(embedded:sentiment, served:other)"}
ARMS = [Arm("explained", 1), Arm("plain", 1, explanations=False), Arm("control", 1, model_in_loop=False)]


def writers(count: int, verified: int, examples: int = 10, **fields: int) -> list[Writer]:
    more = {"hits": 4, "fooled": verified, "waiting": 0, "seconds": 200} | fields
    return [Writer(examples=examples, verified=verified + place % 2, **more) for place in range(count)]


@SQLITE
def test_arms_make_a_new_round_and_every_change_is_kept(session: Session, clock: FixedClock) -> None:
    first = set_round_arms(session, clock, MODELS, "sentiment", 3, ARMS, seed=5, by="ada")
    same = set_round_arms(session, clock, MODELS, "sentiment", 3, ARMS, by="ada")
    other = set_round_arms(session, clock, MODELS, "sentiment", 3, ARMS[:2], by="bob")

    assert (first, same, other) == (True, False, True)
    assert [(one.version, one.seed) for one in session.query(ArmPlan)] == [(1, 5), (2, 5)]
    assert session.query(Round).one().arms_version == 2
    entries = session.query(AuditEntry).order_by(AuditEntry.id).all()
    assert [(one.action, one.staff_name, len(one.detail["after"])) for one in entries] == [
        ("round.arms", "ada", 3),
        ("round.arms", "bob", 2),
    ]


def test_an_arm_s_model_is_the_configured_one_or_a_member_of_it() -> None:
    alone = Arm("alone", 1, model="embedded:sentiment")

    assert checked_arms(MODELS, "sentiment", [alone]) == [alone]
    assert (
        checked_arms(MODELS, "sentiment", [Arm("all", 1, model="ensemble:mean(embedded:sentiment,served:other)")])[
            0
        ].model
        == MODELS["sentiment"]
    )
    with pytest.raises(InvalidInput, match="The arm far asks for served:far, but for sentiment DYNAHIT_MODELS names"):
        checked_arms(MODELS, "sentiment", [Arm("far", 1, model="served:far")])


@SQLITE
def test_figures_of_each_arm_hold_writers_texts_rates_and_cost(session: Session, clock: FixedClock) -> None:
    set_round_arms(session, clock, MODELS, "sentiment", 1, ARMS, seed=5, by="ada")
    round_ = session.query(Round).one()
    readers = [make_worker(session) for _ in range(2)]
    people = [make_worker(session) for _ in range(6)]
    for place, one in enumerate(people):
        draw_arm(session, round_, one.id, NOON)
        example = finished(session, round=round_, writer=one, readers=readers, fooled=place % 2 == 0)
        record_reward(session, example.attempt.assignment, NOON)
    session.commit()

    found = round_arms(session, "sentiment", 1)

    assert [(one.name, one.drawn, one.figures.writers, one.figures.examples) for one in found.arms] == [
        ("explained", 2, 2, 2),
        ("plain", 2, 2, 2),
        ("control", 2, 2, 2),
    ]
    assert sum(one.figures.verified for one in found.arms) == 3
    reward = example.attempt.hit.batch.reward
    assert all(2 * reward < one.cost.writing < 3 * reward for one in found.arms)
    assert all(one.cost.reading == usd("0.00") for one in found.arms)
    assert [one.question for one in found.comparisons] == ["Do explanations help?", "Does a model in the loop help?"]
    assert {one.answer for one in found.comparisons} == {"open"}
    assert "at least 6 more writers" in found.comparisons[0].sentence
    assert found.as_json()["arms"][0]["vmer"]["of"] == 2


@SQLITE
def test_a_round_without_arms_has_none_and_one_that_is_not_there_is_said(session: Session, clock: FixedClock) -> None:
    set_round_arms(session, clock, MODELS, "sentiment", 1, ARMS, by="ada")
    with pytest.raises(NotFound):
        round_arms(session, "sentiment", 2)
    with pytest.raises(InvalidInput, match=r"0\.1 to 50 points, not 0"):
        round_arms(session, "sentiment", 1, margin=0)


@pytest.mark.parametrize(
    ("explained", "plain", "answer", "words"),
    [
        (writers(30, 4), writers(30, 1), "yes", "Yes: +30.0 points (95% interval"),
        (writers(30, 1), writers(30, 4), "no", "No, the other way round: -30.0 points"),
        (writers(40, 3), writers(40, 3), "alike", "Hardly: +0.0 points"),
        (writers(6, 0, 3), writers(6, 0, 3), "open", "Not enough data: +0.0 points"),
        (writers(2, 4), writers(9, 1), "open", "Not enough data: at least 3 more writers"),
        ([], [], "open", "Not enough data: at least 10 more writers"),
    ],
)
def test_whether_explanations_help_is_said_in_a_sentence_with_numbers(
    explained: list[Writer], plain: list[Writer], answer: str, words: str
) -> None:
    found = compare("Do explanations help?", "explained", "plain", {"explained": explained, "plain": plain})

    assert found.answer == answer
    assert found.sentence.startswith(f"Do explanations help? {words}")


def test_no_answer_is_given_that_the_texts_not_read_yet_can_turn() -> None:
    unread = {"one": writers(30, 4), "other": writers(30, 1, waiting=4)}
    few = {"one": writers(30, 4), "other": [*writers(29, 1), *writers(1, 1, waiting=1)]}

    found = compare("?", "one", "other", unread)

    assert found.answer == "open"
    assert found.sentence.startswith("? Too early to say: +30.0 points (95% interval")
    assert compare("?", "one", "other", few).answer == "yes"


def test_nothing_is_said_of_arms_in_which_nobody_fooled_the_model_yet() -> None:
    found = compare("?", "one", "other", {"one": writers(5, 0, 1), "other": writers(5, 0, 1)})

    assert (found.answer, found.vmer.low) != ("alike", 0.0)
    assert found.sentence.startswith("? Not enough data: +0.0 points")


def test_texts_that_wait_for_readers_are_told_of() -> None:
    found = compare("?", "one", "other", {"one": writers(9, 2, waiting=1), "other": writers(9, 2)})

    assert found.sentence.endswith("9 texts still wait for readers.")
