"""A batch's status counts what there is, names what a person must look at, and no workers."""

from __future__ import annotations

import json
from datetime import timedelta

from sqlalchemy.orm import Session

from app.operations.status import batch_statuses
from hits.states import AssignmentState, HitState
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


def test_a_batch_is_counted_by_state(session: Session) -> None:
    batch = make_batch(session)
    hits = [make_hit(session, batch=batch, max_assignments=2) for _ in range(3)]
    hits[2].state = HitState.CLOSED
    worker = make_worker(session, mturk_worker_id="AWRITERWRITER")
    assignment = make_assignment(session, hit=hits[0], worker=worker, state=AssignmentState.APPROVED)
    make_example(session, attempt=make_attempt(session, assignment=assignment))
    right = make_attempt(session, assignment=assignment, predicted_label="negative", try_number=2)
    make_example(session, attempt=right)
    make_assignment(session, hit=hits[1], state=AssignmentState.SUBMITTED)
    make_assignment(
        session,
        hit=hits[1],
        state=AssignmentState.SUBMITTED,
        auto_approval_at=NOON + timedelta(hours=1),
        review_reason="never opened",
        mturk_assignment_id="3REVIEW",
    )
    session.commit()

    (status,) = batch_statuses(session)

    assert status.hits == {"planned": 0, "creating": 0, "created": 2, "closed": 1}
    assert status.assignments == {"opened": 0, "saved": 0, "submitted": 2, "approved": 1, "rejected": 0}
    assert (status.places, status.collected, status.examples, status.fooled) == (6, 3, 2, 1)
    assert (status.verdicts["pending"], status.verdicts["not_validated"]) == (1, 1)
    assert status.next_auto_approval == NOON + timedelta(hours=1)
    assert [(one.assignment_id, one.reason) for one in status.to_review] == [("3REVIEW", "never opened")]
    assert not status.unfinished
    assert "AWRITERWRITER" not in json.dumps(status.as_json())


def test_an_interrupted_launch_is_shown_as_unfinished(session: Session) -> None:
    make_hit(session, state=HitState.CREATING, mturk_hit_id=None)
    session.commit()

    (status,) = batch_statuses(session)

    assert status.unfinished
    assert status.as_json()["unfinished"] is True


def test_batches_are_chosen_by_task_and_round(session: Session) -> None:
    make_batch(session, round=make_round(session, number=1))
    make_batch(session, round=make_round(session, number=2))
    session.commit()

    assert [one.round_number for one in batch_statuses(session)] == [1, 2]
    assert [one.round_number for one in batch_statuses(session, task_code="sentiment", round_number=2)] == [2]
    assert batch_statuses(session, round_number=3) == []
