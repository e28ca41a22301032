"""Who is drawn for which arm: within a block of the shares, the same again, once for each person."""

from __future__ import annotations

import math
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session, sessionmaker

from hits.arms import Arm, arm_at, arm_of, block, check_arms, draw_arm, groups_of, read_arm, set_arms
from hits.errors import InvalidInput, Refused
from hits.models import ArmAssignment, ArmPlan, Round
from tests.factories import NOON, make_attempt, make_round, make_worker

PLAIN = Arm("plain", 1, explanations=False)
EXPLAINED = Arm("explained", 2)
CONTROL = Arm("control", 1, model_in_loop=False)

SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

shares = st.lists(st.integers(1, 12), min_size=1, max_size=5)


def arms_with(numbers: list[int]) -> list[Arm]:
    return [Arm(f"arm{place}", share, model=f"embedded:m{place}") for place, share in enumerate(numbers)]


def with_arms(session: Session, *arms: Arm, seed: int = 7) -> Round:
    round_ = make_round(session)
    set_arms(session, round_, arms or (EXPLAINED, PLAIN, CONTROL), seed=seed, by="ada", now=NOON)
    return round_


# The drawing


@settings(max_examples=30, deadline=None)
@given(numbers=shares, seed=st.integers(0, 2**31), people=st.integers(1, 120))
def test_no_arm_is_ever_further_from_its_share_than_one_block_allows(
    numbers: list[int], seed: int, people: int
) -> None:
    arms = arms_with(numbers)
    counts = Counter(arm_at(arms, seed, 1, place) for place in range(people))

    for arm in arms:
        exact = people * arm.share / sum(numbers)
        places_in_a_block = arm.share // math.gcd(*numbers)
        assert abs(counts[arm.name] - exact) < places_in_a_block


@settings(max_examples=30, deadline=None)
@given(numbers=shares, seed=st.integers(0, 2**31), number=st.integers(0, 50))
def test_a_block_holds_every_arm_as_often_as_its_share_says(numbers: list[int], seed: int, number: int) -> None:
    arms = arms_with(numbers)

    assert Counter(block(arms, seed, 1, number)) == {arm.name: arm.share // math.gcd(*numbers) for arm in arms}


def test_the_same_seed_draws_the_same_arms_and_another_one_others() -> None:
    arms = (EXPLAINED, PLAIN, CONTROL)

    def drawn(seed: int, version: int) -> list[str]:
        return [arm_at(arms, seed, version, place) for place in range(40)]

    assert drawn(7, 1) == drawn(7, 1)
    assert drawn(7, 1) != drawn(8, 1)
    assert drawn(7, 1) != drawn(7, 2)
    # As it was when rounds were first drawn so: a running round must go on with the same order.
    assert drawn(7, 1)[:4] == ["explained", "explained", "plain", "control"]
    assert drawn(7, 1)[4:8] == ["control", "explained", "explained", "plain"]


@SQLITE
def test_a_person_keeps_the_arm_and_the_next_one_takes_the_next_place(session: Session) -> None:
    round_ = with_arms(session)
    people = [make_worker(session) for _ in range(8)]

    first = [draw_arm(session, round_, one.id, NOON) for one in people]
    again = [draw_arm(session, round_, one.id, NOON) for one in reversed(people)]

    assert again[::-1] == first
    assert Counter(arm.name for arm in first if arm) == {"explained": 4, "plain": 2, "control": 2}
    assert [row.place for row in session.query(ArmAssignment).order_by(ArmAssignment.id)] == list(range(8))


@SQLITE
def test_other_shares_are_for_new_people_only_and_both_plans_are_kept(session: Session) -> None:
    round_ = with_arms(session)
    early = [make_worker(session) for _ in range(4)]
    before = [draw_arm(session, round_, one.id, NOON) for one in early]

    assert set_arms(session, round_, [CONTROL], seed=7, by="bob", now=NOON)
    late = [draw_arm(session, round_, make_worker(session).id, NOON) for _ in range(5)]

    assert [draw_arm(session, round_, one.id, NOON) for one in early] == before
    assert {arm.name for arm in late if arm} == {"control"}
    assert [(plan.version, plan.created_by, len(plan.arms)) for plan in session.query(ArmPlan)] == [
        (1, "ada", 3),
        (2, "bob", 1),
    ]


@SQLITE
def test_who_wrote_before_the_round_had_arms_goes_on_as_before(session: Session) -> None:
    attempt = make_attempt(session)
    round_ = attempt.hit.batch.round
    set_arms(session, round_, [CONTROL], seed=0, by="ada", now=NOON)

    assert draw_arm(session, round_, attempt.worker_id, NOON) is None
    assert session.query(ArmAssignment).count() == 0


@SQLITE
def test_without_arms_nobody_is_drawn_and_before_the_first_page_nobody_is_known(session: Session) -> None:
    worker = make_worker(session)

    assert draw_arm(session, make_round(session, number=8), worker.id, NOON) is None
    assert arm_of(session, with_arms(session), worker.id) is None


def test_two_first_pages_at_once_give_one_arm_and_two_people_two_places(
    session_factory: sessionmaker[Session],
) -> None:
    with session_factory() as session:
        round_id = with_arms(session).id
        people = [make_worker(session).id for _ in range(2)]
        session.commit()
    start = threading.Barrier(4)
    found: list[tuple[int, str]] = []

    def open_page(worker_id: int) -> None:
        start.wait()
        with session_factory() as session:
            arm = draw_arm(session, session.get_one(Round, round_id), worker_id, NOON)
            session.commit()
            found.append((worker_id, arm.name if arm else ""))

    threads = [threading.Thread(target=open_page, args=(one,)) for one in people * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with session_factory() as session:
        stored = [(row.worker_id, row.arm, row.place) for row in session.query(ArmAssignment)]
    assert len(found) == 4
    assert set(found) == {(worker_id, arm) for worker_id, arm, _ in stored}
    assert sorted(place for _, _, place in stored) == [0, 1]


@pytest.mark.parametrize("statement", ["UPDATE arm_assignment SET arm = 'other'", "DELETE FROM arm_plan"])
def test_neither_plans_nor_who_was_drawn_can_be_changed(session: Session, statement: str) -> None:
    draw_arm(session, with_arms(session), make_worker(session).id, NOON)

    with pytest.raises(DatabaseError, match="append-only"):
        session.execute(text(statement))


# What can be an arm


@pytest.mark.parametrize(
    ("written", "arm"),
    [
        ("plain=1 no-explanations", PLAIN),
        ("control=1 no-model", CONTROL),
        ("one=3 model=embedded:nli", Arm("one", 3, model="embedded:nli")),
        ("all=1 no-explanations model=ensemble:mean(a:b, c:d)",
         Arm("all", 1, explanations=False, model="ensemble:mean(a:b, c:d)")),
    ],
)  # fmt: skip
def test_an_arm_is_written_as_a_name_a_share_and_options(written: str, arm: Arm) -> None:
    assert read_arm(written) == arm
    assert Arm.of(arm.as_json()) == arm


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("control", "NAME=SHARE"),
        ("Control=1", "can't name an arm"),
        ("control=0", "1 to 1000, not 0"),
        ("control=1 no-pay", "'no-pay', which is not known"),
        ("one=1 model=", "names no model"),
    ],
)
def test_what_is_no_arm_is_refused_with_its_form(written: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_arm(written)


def test_arms_must_differ_in_name_and_conditions() -> None:
    with pytest.raises(InvalidInput, match="plain is there twice"):
        check_arms([PLAIN, Arm("plain", 1)])
    with pytest.raises(InvalidInput, match="explained and same are the same"):
        check_arms([EXPLAINED, Arm("same", 9)])
    with pytest.raises(InvalidInput, match="There are 0 arms"):
        check_arms([])


@SQLITE
def test_a_name_stands_for_the_same_conditions_for_ever(session: Session) -> None:
    round_ = with_arms(session)

    with pytest.raises(Refused, match="The arm plain of this round was: all that is configured answers, without"):
        set_arms(session, round_, [Arm("plain", 1)], seed=7, by="ada", now=NOON)
    assert not set_arms(session, round_, [EXPLAINED, PLAIN, CONTROL], seed=7, by="ada", now=NOON)


@SQLITE
def test_a_preview_tells_of_groups_only_where_people_meet_different_things(session: Session) -> None:
    assert groups_of(session, with_arms(session)) == [(True, True), (True, False), (False, False)]
    models = [Arm("one", 1, model="embedded:nli"), Arm("all", 1)]
    assert groups_of(session, make_round(session, number=9)) == []
    other = make_round(session, number=10)
    set_arms(session, other, models, seed=0, by="ada", now=NOON)
    assert groups_of(session, other) == []
