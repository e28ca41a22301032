"""Quizzes: their versions, whose turn it is, which items they get, and that the key stays where it is."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections import Counter
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from hits.errors import AlreadySubmitted, InvalidAnswer, InvalidInput, NotFound, Refused
from hits.models import Assignment, Worker
from hits.states import AssignmentState
from hits.tasks import TASKS, task
from qualification import grants
from qualification.errors import NoSuchQuiz, QuizNotOpen
from qualification.models import GrantState, QualificationGrant, QuizResult, QuizVersion
from qualification.quizzes import (
    DRAWN,
    NEEDED,
    QuizFor,
    answer_quiz,
    as_json,
    current_version,
    digest_of_quiz,
    draw,
    from_json,
    marked,
    open_quiz,
    quiz_for,
    quiz_of,
    result_of,
    stored_version,
    version_of_batch,
)
from tests import factories as make
from tests.factories import NOON
from tests.qualification.quiz_hits import DAY, answers, opened, quiz_hit

every_quiz = pytest.mark.parametrize(
    "quiz", [quiz_for(code, audience.value) for code in TASKS for audience in QuizFor], ids=lambda quiz: quiz.kind
)


@every_quiz
def test_every_quiz_has_fresh_items_for_a_second_try_and_asks_for_every_answer(quiz) -> None:  # type: ignore[no-untyped-def]
    assert len(quiz.items) >= 12
    assert quiz.tries >= 2
    assert quiz.drawn == DRAWN >= 7
    assert {item.right for item in quiz.items} == set(quiz.choice_codes)
    assert all(item.feedback and item.parts for item in quiz.items)
    assert quiz.rules
    assert quiz.examples


@every_quiz
def test_no_single_answer_given_to_everything_passes(quiz) -> None:  # type: ignore[no-untyped-def]
    assert all(
        sum(quiz.item(item_id).right == code for item_id in draw(quiz, f"w{seed}", number)) < quiz.needed
        for code in quiz.choice_codes
        for seed in range(40)
        for number in (1, 2)
    )


@every_quiz
def test_a_quiz_is_the_same_after_it_was_stored(quiz) -> None:  # type: ignore[no-untyped-def]
    again = from_json(json.loads(json.dumps(as_json(quiz))))

    assert again == quiz
    assert digest_of_quiz(again) == digest_of_quiz(quiz)


@every_quiz
def test_marked_stretches_are_where_the_text_says(quiz) -> None:  # type: ignore[no-untyped-def]
    for item in quiz.items:
        texts = {part.label: part for part in item.parts}
        if "Marked answer" in texts:
            [passage] = [part for part in item.parts if part.end]
            assert passage.text[passage.start : passage.end].casefold() == texts["Marked answer"].text.casefold()


def test_a_task_with_too_few_items_has_no_quiz() -> None:
    spec = dataclasses.replace(task("nli"), quiz=task("nli").quiz[:13])

    with pytest.raises(NoSuchQuiz, match="has 13 items; 14 are needed"):
        quiz_of(spec, QuizFor.VALIDATOR)
    with pytest.raises(NoSuchQuiz, match="same thing twice"):
        quiz_of(dataclasses.replace(spec, quiz=task("nli").quiz + task("nli").quiz[:1]), QuizFor.VALIDATOR)


def test_a_quiz_for_nobody_is_refused_with_whom_there_are() -> None:
    with pytest.raises(NotFound, match="writer or validator"):
        quiz_for("nli", "reader")


@given(seed=st.text(max_size=20))
@settings(max_examples=40)
def test_no_item_comes_twice_before_the_pool_is_used_up(seed: str) -> None:
    quiz = quiz_for("qa", "writer")
    tries = [draw(quiz, seed, number) for number in range(1, quiz.tries + 1)]

    asked = [item_id for one in tries for item_id in one]
    assert len(set(asked)) == len(asked) == quiz.tries * DRAWN
    assert draw(quiz, seed, 1) == tries[0]
    assert len(set(draw(quiz, seed, quiz.tries + 1))) == DRAWN


def test_people_get_different_questions() -> None:
    quiz = quiz_for("hate", "validator")
    seen = Counter(item_id for person in range(200) for item_id in draw(quiz, f"w-{person}", 1))

    assert set(seen) == {item.id for item in quiz.items}
    assert max(seen.values()) < 2 * min(seen.values())


def test_what_is_asked_does_not_depend_on_the_key() -> None:
    quiz = quiz_for("sentiment", "validator")
    codes = quiz.choice_codes
    turned = dataclasses.replace(
        quiz,
        items=tuple(
            dataclasses.replace(
                item, right=codes[(codes.index(item.right) + 1) % len(codes)], feedback="Something else."
            )
            for item in quiz.items
        ),
    )

    assert [item.asked for item in turned.items] == [item.asked for item in quiz.items]
    assert draw(turned, "w-1", 1) == draw(quiz, "w-1", 1)
    assert digest_of_quiz(turned) != digest_of_quiz(quiz)


def test_an_unchanged_quiz_keeps_its_version_and_a_changed_one_is_the_next(session: Session) -> None:
    quiz = quiz_for("nli", "writer")
    changed = dataclasses.replace(quiz, needed=quiz.needed + 1)

    first, again = current_version(session, quiz, NOON), current_version(session, quiz, NOON)
    second = current_version(session, changed, NOON)

    assert first.id == again.id
    assert (first.number, second.number) == (1, 2)
    assert stored_version(session, quiz.kind).number == 2
    assert from_json(stored_version(session, quiz.kind, 1).content) == quiz
    with pytest.raises(NotFound, match="versions: 1, 2"):
        stored_version(session, quiz.kind, 3)
    with pytest.raises(NotFound, match="none yet"):
        stored_version(session, "writer:poetry")


def test_a_batch_that_asks_no_quiz_says_so(session: Session) -> None:
    with pytest.raises(NotFound, match="asks no quiz"):
        version_of_batch(session, make.make_hit(session).batch_id)


def test_two_processes_store_the_same_version_once(session_factory: sessionmaker[Session]) -> None:
    quiz = quiz_for("nli", "writer")
    barrier, numbers = Barrier(4), []

    def store() -> None:
        with session_factory() as session:
            barrier.wait(60)
            number = current_version(session, quiz, NOON).number
            session.commit()
            numbers.append(number)

    threads = [Thread(daemon=True, target=store) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert numbers == [1, 1, 1, 1]


def test_a_try_keeps_its_items_however_often_and_wherever_it_is_opened(session: Session) -> None:
    ada = make.make_worker(session)
    first, result = opened(session, quiz_hit(session), ada)
    again = open_quiz(session, first, retry_delay=DAY, now=NOON + timedelta(minutes=5))
    items = list(result.items)

    second, moved = opened(session, quiz_hit(session), ada, after=timedelta(minutes=6))

    assert again.id == result.id == moved.id
    assert moved.items == items
    assert moved.number == 1
    with pytest.raises(Refused, match="opened it in another HIT"):
        answer_quiz(session, first, answers(moved), NOON + timedelta(minutes=7))
    assert result_of(session, first) is None
    assert answer_quiz(session, second, answers(moved), NOON + timedelta(minutes=7)).passed


def test_the_score_counts_right_answers_and_the_pass_mark_decides(session: Session) -> None:
    for right, passes in ((NEEDED, True), (NEEDED - 1, False), (0, False), (DRAWN, True)):
        assignment, result = opened(session, quiz_hit(session), make.make_worker(session))

        answer_quiz(session, assignment, answers(result, right), NOON + timedelta(minutes=3))

        assert (result.score, result.passed) == (right, passes)
        assert assignment.state is AssignmentState.SAVED
        assert [one.is_right for one in marked(result)] == [place < right for place in range(DRAWN)]


def test_there_is_no_feedback_before_the_answers(session: Session) -> None:
    _, result = opened(session, quiz_hit(session), make.make_worker(session))

    with pytest.raises(InvalidInput, match="no feedback"):
        marked(result)


def test_who_failed_waits_and_gets_other_items_and_then_has_used_all_tries(session: Session) -> None:
    ada = make.make_worker(session)
    assignment, first = opened(session, quiz_hit(session), ada)
    answer_quiz(session, assignment, answers(first, 2), NOON + timedelta(minutes=2))

    with pytest.raises(QuizNotOpen, match="too soon") as caught:
        opened(session, quiz_hit(session), ada, after=DAY)
    assert caught.value.again_at == NOON + timedelta(minutes=2) + DAY

    assignment, second = opened(session, quiz_hit(session), ada, after=DAY + timedelta(minutes=2))
    assert second.number == 2
    assert not set(first.items) & set(second.items)
    answer_quiz(session, assignment, answers(second, 5), NOON + DAY + timedelta(minutes=9))
    with pytest.raises(QuizNotOpen, match="all 2 tries"):
        opened(session, quiz_hit(session), ada, after=DAY * 9)

    grants.reset(session, ada.id, "writer:sentiment", NOON + DAY * 9)
    assignment, third = opened(session, quiz_hit(session), ada, after=DAY * 9)
    assert third.number == 3


def test_who_passed_or_holds_it_does_not_take_it_again(session: Session) -> None:
    ada, bea = make.make_worker(session), make.make_worker(session)
    assignment, result = opened(session, quiz_hit(session), ada)
    answer_quiz(session, assignment, answers(result), NOON)
    assignment.state = AssignmentState.SUBMITTED
    with pytest.raises(QuizNotOpen, match="passed this quiz already"):
        opened(session, quiz_hit(session), ada, after=DAY * 2)

    number = result.version.number
    plan = {"version": number, "value": number, "endpoint": "http://127.0.0.1:8000", "reason": "", "by": "robin"}
    grants.plan_grant(session, bea.id, "writer:sentiment", now=NOON, **plan)
    with pytest.raises(QuizNotOpen, match="hold this qualification already"):
        opened(session, quiz_hit(session), bea)


def test_a_passed_quiz_that_was_never_submitted_is_handed_in_with_the_next_hit(session: Session) -> None:
    ada = make.make_worker(session)
    left, result = opened(session, quiz_hit(session), ada)
    answer_quiz(session, left, answers(result), NOON)
    assert left.deadline_at is not None
    soon = left.deadline_at - NOON + timedelta(minutes=59)
    with pytest.raises(QuizNotOpen, match="passed this quiz already"):
        opened(session, quiz_hit(session), ada, after=soon)

    again, same = opened(session, quiz_hit(session), ada, after=soon + timedelta(minutes=1))

    assert same is result
    assert (again.state, result_of(session, again)) == (AssignmentState.SAVED, result)
    assert result_of(session, left) is None
    assert grants.count_result(session, again.id, ada.id, months=0, now=NOON + DAY)
    assert grants.latest_grant(session, ada.id, "writer:sentiment", "http://127.0.0.1:8000") is not None
    with pytest.raises(QuizNotOpen):
        opened(session, quiz_hit(session), ada, after=DAY * 2)


def test_whose_qualification_was_taken_away_can_not_earn_it_again_without_a_reset(session: Session) -> None:
    ada = make.make_worker(session)
    endpoint = "http://127.0.0.1:8000"
    grants.plan_grant(
        session, ada.id, "writer:sentiment", version=1, value=1, endpoint=endpoint, reason="", by="robin", now=NOON
    )
    grants.end_grant(session, ada.id, "writer:sentiment", endpoint, reason="Copied texts.", by="robin", now=NOON)

    with pytest.raises(QuizNotOpen, match=r"taken back.*Copied texts\."):
        opened(session, quiz_hit(session), ada)
    grants.reset(session, ada.id, "writer:sentiment", NOON)
    assert opened(session, quiz_hit(session), ada)[1].number == 1


FORGERIES = {
    "an item that was not drawn": lambda given, other: {**given, other: next(iter(given.values()))},
    "only foreign items": lambda given, other: {other: "fits"},
    "an invented item": lambda given, other: {**given, "0" * 12: "fits"},
    "a choice that there is not": lambda given, other: {**given, next(iter(given)): "perfect"},
    "the key's own words": lambda given, other: {**given, next(iter(given)): "right"},
    "an empty choice": lambda given, other: {**given, next(iter(given)): ""},
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_answers_are_refused_and_logged_and_nothing_changes(
    session: Session, forgery: str, caplog: pytest.LogCaptureFixture
) -> None:
    ada = make.make_worker(session)
    assignment, result = opened(session, quiz_hit(session), ada)
    other = next(item.id for item in from_json(result.version.content).items if item.id not in result.items)

    with caplog.at_level(logging.WARNING), pytest.raises(Refused, match="Nothing was stored"):
        answer_quiz(session, assignment, FORGERIES[forgery](answers(result), other), NOON)

    assert (result.answers, result.answered_at, assignment.state) == (None, None, AssignmentState.OPENED)
    assert ada.pseudonym in caplog.text
    assert ada.mturk_worker_id not in caplog.text


def test_another_workers_quiz_can_not_be_answered(session: Session) -> None:
    ada, bea = make.make_worker(session), make.make_worker(session)
    hit = quiz_hit(session)
    _, of_ada = opened(session, hit, ada)
    assignment, of_bea = opened(session, hit, bea)
    assert set(of_ada.items) != set(of_bea.items)

    with pytest.raises(Refused, match="not asked"):
        answer_quiz(session, assignment, answers(of_ada), NOON)
    assert of_ada.answered_at is None


def test_a_missing_answer_names_its_question_and_stores_nothing(session: Session) -> None:
    assignment, result = opened(session, quiz_hit(session), make.make_worker(session))
    given = answers(result)
    del given[result.items[3]]

    with pytest.raises(InvalidAnswer, match="Question 4 has no answer") as caught:
        answer_quiz(session, assignment, given, NOON)
    assert caught.value.field == result.items[3]
    assert result.answers is None


def test_answers_after_the_deadline_are_refused_and_use_no_try(session: Session) -> None:
    assignment, result = opened(session, quiz_hit(session), make.make_worker(session))

    with pytest.raises(Refused, match="time for this HIT is over"):
        answer_quiz(session, assignment, answers(result), NOON + timedelta(minutes=30))
    assert result.answered_at is None


def test_a_second_answer_changes_nothing(session: Session) -> None:
    assignment, result = opened(session, quiz_hit(session), make.make_worker(session))
    answer_quiz(session, assignment, answers(result, 3), NOON)

    with pytest.raises(AlreadySubmitted):
        answer_quiz(session, assignment, answers(result, 7), NOON + timedelta(minutes=1))
    assert (result.score, result.passed) == (3, False)
    assert open_quiz(session, assignment, retry_delay=DAY, now=NOON).id == result.id


def test_a_hit_without_a_quiz_takes_no_answers(session: Session) -> None:
    with pytest.raises(Refused, match="not asked in this HIT"):
        answer_quiz(session, make.make_assignment(session), {"a": "fits"}, NOON)


def test_an_assignment_that_is_handed_in_opens_no_quiz(session: Session) -> None:
    saved = make.make_assignment(session, hit=quiz_hit(session), state=AssignmentState.SAVED)

    with pytest.raises(AlreadySubmitted):
        open_quiz(session, saved, retry_delay=DAY, now=NOON)


def test_two_tabs_that_answer_at_once_are_scored_once(session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        assignment, result = opened(session, quiz_hit(session), make.make_worker(session))
        forms = [answers(result, right) for right in (7, 2, 5, 0)]
        assignment_id = assignment.id
        session.commit()
    barrier, outcomes = Barrier(len(forms)), []

    def send(form: dict[str, str]) -> None:
        with session_factory() as session:
            barrier.wait(60)
            mine = session.get_one(Assignment, assignment_id)
            try:
                score = answer_quiz(session, mine, form, NOON).score
                session.commit()
                outcomes.append(score)
            except AlreadySubmitted:
                session.rollback()
                outcomes.append("refused")

    threads = [Thread(daemon=True, target=send, args=(form,)) for form in forms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(map(str, outcomes))[1:] == ["refused"] * 3
    with session_factory() as session:
        assert str(session.scalars(select(QuizResult.score)).one()) == sorted(map(str, outcomes))[0]


def test_two_hits_of_a_quiz_that_are_opened_at_once_draw_one_try(session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        ada = make.make_worker(session)
        ids = [make.make_assignment(session, hit=quiz_hit(session), worker=ada).id for _ in range(4)]
        session.commit()
    barrier = Barrier(len(ids))

    def open_one(assignment_id: int) -> None:
        with session_factory() as session:
            barrier.wait(60)
            mine = session.get_one(Assignment, assignment_id)
            open_quiz(session, mine, retry_delay=DAY, now=NOON)
            session.commit()

    threads = [Thread(daemon=True, target=open_one, args=(one,)) for one in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    with session_factory() as session:
        assert session.scalar(select(func.count()).select_from(QuizResult)) == 1


def test_the_database_itself_refuses_a_second_row_for_a_try(session: Session) -> None:
    ada = make.make_worker(session)
    assignment, result = opened(session, quiz_hit(session), ada)
    other = make.make_assignment(session, hit=assignment.hit, worker=ada)
    row = {"version_id": result.version_id, "worker_id": ada.id, "items": [], "opened_at": NOON}

    for fields in (
        {"assignment_id": other.id, "number": 1},
        {"assignment_id": assignment.id, "number": 2},
        {"assignment_id": other.id, "number": 2, "score": 7},
        {"assignment_id": other.id, "number": 0},
    ):
        with pytest.raises(IntegrityError), session.begin_nested():
            session.execute(insert(QuizResult).values(**row, **fields))


def test_nothing_is_granted_by_answering_alone(session: Session) -> None:
    assignment, result = opened(session, quiz_hit(session), make.make_worker(session))

    answer_quiz(session, assignment, answers(result), NOON)

    assert session.scalars(select(QualificationGrant)).all() == []
    assert session.scalar(select(func.count()).select_from(Worker)) == 1
    assert session.scalar(select(func.count()).select_from(QuizVersion)) == 1
    assert GrantState.PLANNED.value == "planned"
