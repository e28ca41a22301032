"""A novice's first examples wait for a reviewer; passing enough of them ends the practice and raises the level."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits import validations
from hits.errors import InvalidAnswer, Refused
from hits.models import Assignment, Example, HitBatch, Worker
from hits.states import AssignmentState, PracticeState, Verdict
from qualification import practice
from qualification.grants import level_of, raise_level
from qualification.limits_models import PracticeGrade
from qualification.models import Level
from tests.factories import (
    NOON,
    make_assignment,
    make_attempt,
    make_batch,
    make_example,
    make_hit,
    make_round,
    make_worker,
)


def written(
    session: Session, batch: HitBatch, writer: Worker, count: int = 1, *, label: str = "positive"
) -> list[Example]:
    """Examples of new HITs of the batch; they fool the model unless the label is "negative"."""
    found = []
    for _ in range(count):
        hit = make_hit(session, batch=batch)
        assignment = make_assignment(session, hit=hit, worker=writer, state=AssignmentState.SUBMITTED)
        attempt = make_attempt(session, assignment=assignment, predicted_label=label)
        found.append(make_example(session, attempt=attempt))
    return found


def states(examples: list[Example]) -> list[PracticeState | None]:
    return [example.practice_state for example in examples]


def graded(session: Session, example: Example, *, passed: bool = True, words: str = "Well done.") -> PracticeGrade:
    return practice.grade(session, example, passed=passed, words=words, by="robin", now=NOON)


def test_without_practice_nothing_waits(session: Session) -> None:
    batch, writer = make_batch(session), make_worker(session)
    examples = written(session, batch, writer)

    assert practice.begin(session, batch, examples) == 0
    assert practice.begin(session, batch, []) == 0
    assert states(examples) == [None]


def test_the_first_examples_of_a_novice_wait_and_the_next_do_not(session: Session) -> None:
    batch, writer = make_batch(session, practice=3), make_worker(session)
    first, second = written(session, batch, writer, 2), written(session, batch, writer, 2)

    assert practice.begin(session, batch, first) == 2
    assert practice.begin(session, batch, second) == 1

    assert states(first + second) == [PracticeState.WAITING] * 3 + [None]
    other = written(session, batch, make_worker(session))
    assert practice.begin(session, batch, other) == 1


def test_practice_is_counted_over_all_rounds_of_the_task(session: Session) -> None:
    writer = make_worker(session)
    batches = [
        make_batch(session, round=make_round(session, task_code="sentiment", number=number), practice=1)
        for number in (1, 2)
    ]

    begun = [practice.begin(session, batch, written(session, batch, writer)) for batch in batches]

    assert begun == [1, 0]


def test_who_is_no_novice_does_not_practise(session: Session) -> None:
    batch, writer = make_batch(session, practice=3), make_worker(session)
    raise_level(session, writer.id, "sentiment", Level.WRITER, by="robin", reason="for tests", now=NOON)

    assert practice.begin(session, batch, written(session, batch, writer)) == 0


def test_what_waits_goes_to_no_validator_until_it_passes(session: Session) -> None:
    batch, writer = make_batch(session, practice=3), make_worker(session)
    passes, fails = written(session, batch, writer, 2)
    practice.begin(session, batch, [passes, fails])
    session.flush()
    waiting = validations.shortages(session, batch.round, NOON + timedelta(days=1))

    graded(session, passes)
    graded(session, fails, passed=False, words="It says the opposite.")
    left = validations.shortages(session, batch.round, NOON + timedelta(days=1))

    assert waiting == []
    assert [one.example_id for one in left] == [passes.id]
    assert (passes.verdict, fails.verdict) == (Verdict.PENDING, Verdict.INVALID)
    assert (passes.votes_wanted, fails.votes_wanted) == (2, 0)


def test_what_failed_is_out_until_a_requester_lets_readers_judge_it(session: Session) -> None:
    batch, writer = make_batch(session, practice=3), make_worker(session)
    fooling, other = written(session, batch, writer)[0], written(session, batch, writer, label="negative")[0]
    practice.begin(session, batch, [fooling, other])
    for example in (fooling, other):
        graded(session, example, passed=False, words="It says the opposite.")
        assert validations.decide(session, example, NOON).verdict is Verdict.INVALID
        assert example.override_reason == practice.NOT_PASSED

        validations.lift_override(session, example, NOON)

    assert states([fooling, other]) == [None, None]
    assert (fooling.verdict, other.verdict) == (Verdict.PENDING, Verdict.NOT_VALIDATED)
    left = validations.shortages(session, batch.round, NOON + timedelta(days=1))
    assert [one.example_id for one in left] == [fooling.id]


def test_what_a_requester_has_decided_stands_whatever_the_grade(session: Session) -> None:
    batch, writer = make_batch(session, practice=3), make_worker(session)
    [example] = written(session, batch, writer)
    practice.begin(session, batch, [example])
    validations.override(session, example, label="negative", reason="Plainly so.", now=NOON)

    graded(session, example, passed=False)

    assert (example.override_label, example.override_reason) == ("negative", "Plainly so.")


def test_retracted_examples_and_frozen_rounds_are_not_graded(session: Session) -> None:
    batch, writer = make_batch(session, practice=2), make_worker(session)
    first, second = written(session, batch, writer, 2)
    practice.begin(session, batch, [first, second])
    validations.retract(session, first, reason="Asked for.", now=NOON)

    assert practice.waiting(session) == [second]
    with pytest.raises(Refused, match="was retracted"):
        graded(session, first)
    # It counts for nothing, so that another one is asked for.
    assert practice.begin(session, batch, written(session, batch, writer)) == 1
    batch.round.frozen_at, batch.round.manifest_sha256 = NOON, "0" * 64
    session.flush()
    with pytest.raises(Refused, match="was frozen"):
        graded(session, second)


def test_passing_raises_the_level_and_failing_asks_for_another_example(session: Session) -> None:
    batch, writer = make_batch(session, practice=2), make_worker(session)
    first, second = written(session, batch, writer, 2)
    practice.begin(session, batch, [first, second])

    graded(session, first)
    graded(session, second, passed=False)
    assert level_of(session, writer.id, "sentiment") is Level.NOVICE
    [third] = written(session, batch, writer)
    assert practice.begin(session, batch, [third]) == 1
    graded(session, third)

    assert level_of(session, writer.id, "sentiment") is Level.WRITER
    assert practice.begin(session, batch, written(session, batch, writer)) == 0


def test_an_example_that_did_not_fool_the_model_is_graded_and_not_validated(session: Session) -> None:
    batch, writer = make_batch(session, practice=1), make_worker(session)
    [example] = written(session, batch, writer, label="negative")
    practice.begin(session, batch, [example])

    graded(session, example)

    assert (example.practice_state, example.verdict) == (PracticeState.PASSED, Verdict.NOT_VALIDATED)


def test_an_example_is_graded_once(session: Session) -> None:
    batch, writer = make_batch(session, practice=1), make_worker(session)
    [example] = written(session, batch, writer)
    with pytest.raises(Refused, match="waits for no grade"):
        graded(session, example)
    practice.begin(session, batch, [example])
    graded(session, example)

    with pytest.raises(Refused, match="graded it already"):
        graded(session, example, passed=False)

    assert [one.passed for one in session.scalars(select(PracticeGrade))] == [True]


def test_the_database_keeps_one_grade_for_an_example(session: Session) -> None:
    batch, writer = make_batch(session, practice=1), make_worker(session)
    [example] = written(session, batch, writer)
    practice.begin(session, batch, [example])
    graded(session, example)
    again = PracticeGrade(example_id=example.id, passed=False, words="no", graded_at=NOON, graded_by="sam")

    with pytest.raises(IntegrityError), session.begin_nested():
        session.add(again)


@pytest.mark.parametrize(
    ("words", "cause"),
    [("  \n", "Say in words"), ("a" * 2001, "2,001 characters; at most 2,000"), ("a\x00b", "can't be stored")],
)
def test_words_that_can_not_be_sent_are_refused_and_nothing_changes(session: Session, words: str, cause: str) -> None:
    batch, writer = make_batch(session, practice=1), make_worker(session)
    [example] = written(session, batch, writer)
    practice.begin(session, batch, [example])

    with pytest.raises(InvalidAnswer, match=cause):
        graded(session, example, words=words)

    assert example.practice_state is PracticeState.WAITING


def test_what_waits_is_listed_the_oldest_first(session: Session) -> None:
    batch, writer = make_batch(session, practice=5), make_worker(session)
    examples = written(session, batch, writer, 3)
    practice.begin(session, batch, examples)
    examples[0].collected_at = NOON + timedelta(days=1)
    graded(session, examples[1])

    assert practice.waiting(session) == [examples[2], examples[0]]


def test_grades_are_shown_on_the_next_page_of_their_writer_and_task(session: Session) -> None:
    batch, writer = make_batch(session, practice=5), make_worker(session)
    examples = written(session, batch, writer, 2)
    practice.begin(session, batch, examples)
    page = make_assignment(session, hit=make_hit(session, batch=batch), worker=writer)
    other_writer = make_assignment(session, hit=make_hit(session, batch=batch))
    other_task = make_batch(session, round=make_round(session, task_code="hate", number=1))
    elsewhere = make_assignment(session, hit=make_hit(session, batch=other_task, context_id=None), worker=writer)
    next_page = make_assignment(session, hit=make_hit(session, batch=batch), worker=writer)

    def shown(assignment: Assignment) -> list[PracticeGrade]:
        practice.show(session, assignment)
        return list(practice.shown_on(session, assignment))

    first = graded(session, examples[0])
    assert shown(other_writer) == shown(elsewhere) == []
    assert shown(page) == [first]
    second = graded(session, examples[1])
    # A reload shows what was there before.
    assert shown(page) == [first, second]
    assert shown(next_page) == []
    assert shown(page) == [first, second]
