"""What leaves the house, and what must not."""

from __future__ import annotations

import json

import pytest
from sqlalchemy.orm import Session

from hits import export, validations
from hits.clock import FixedClock
from hits.errors import NotFound
from hits.states import AssignmentState, PracticeState, Verdict
from tests import factories as make


def test_a_row_tells_the_whole_story_without_naming_the_worker(session: Session, clock: FixedClock) -> None:
    example = make.make_example(session)
    votes = [make.make_vote(session, example=example) for _ in range(2)]
    make.make_vote(session, example=example, counted_at=None)
    validations.decide(session, example, clock.now())

    (row,) = export.export_round(session, "sentiment", 1)

    assert row["verdict"] == "valid_and_model_wrong"
    assert row["final_label"] == row["goal_label"] == "negative"
    assert row["model"]["label"] == example.model_label
    assert row["model"]["revision"] == "test"
    assert row["tries"] == 1
    assert row["answer"] == example.attempt.answer
    assert [vote["label"] for vote in row["votes"]] == ["negative", "negative"]
    text = json.dumps(row)
    for person in (example.writer, *(vote.validator for vote in votes)):
        assert person.mturk_worker_id not in text
    assert example.attempt.assignment.mturk_assignment_id not in text


def test_practice_is_exported_once_a_reviewer_has_graded_it(session: Session) -> None:
    waits = make.make_example(session, fooled=False, verdict=Verdict.NOT_VALIDATED)
    waits.practice_state = PracticeState.WAITING
    session.flush()
    assert list(export.export_round(session, "sentiment", 1)) == []

    waits.practice_state = PracticeState.PASSED
    session.flush()

    assert [row["id"] for row in export.export_round(session, "sentiment", 1)] == [waits.attempt.public_id]


def test_only_collected_attempts_are_exported_in_the_order_they_were_asked(session: Session) -> None:
    make.make_attempt(session, assignment=make.make_assignment(session))
    later = make.make_example(session)
    assignment = make.make_assignment(session, state=AssignmentState.APPROVED)
    earlier_attempt = make.make_attempt(session, assignment=assignment, asked_at=make.NOON, predicted_label="negative")
    earlier = make.make_example(session, attempt=earlier_attempt)

    rows = list(export.export_round(session, "sentiment", 1))

    assert [row["id"] for row in rows] == [earlier.attempt.public_id, later.attempt.public_id]
    assert [row["verdict"] for row in rows] == ["not_validated", "pending"]


def test_the_remark_of_a_hit_that_was_returned_and_finished_later_is_exported(session: Session) -> None:
    returned = make.make_assignment(session)
    attempt = make.make_attempt(session, assignment=returned)
    make.make_example(session, attempt=attempt)
    make.make_assignment(
        session,
        hit=returned.hit,
        worker=returned.worker,
        state=AssignmentState.APPROVED,
        why="It is irony.",
    )

    (row,) = export.export_round(session, "sentiment", 1)

    assert row["why"] == "It is irony."


def test_an_unknown_round_or_task_is_named_with_those_there_are(session: Session) -> None:
    make.make_round(session)

    with pytest.raises(NotFound, match="Its rounds are 1"):
        export.find_round(session, "sentiment", 2)
    with pytest.raises(NotFound, match="sentiment"):
        export.find_round(session, "poetry", 1)
