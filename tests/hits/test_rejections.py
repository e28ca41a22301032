"""On what grounds work may be rejected, and how much of it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy.orm import Session

from hits.errors import InvalidAnswer
from hits.models import Rejection
from hits.rejections import (
    GROUNDS,
    Share,
    checked_grounds,
    note_approved,
    note_rejected,
    rejection_of,
    share_of_batch,
    share_of_worker,
    undone_until,
)
from hits.states import AssignmentState, BadFaith, RejectionState
from tests.factories import NOON, make_assignment, make_batch, make_hit, make_worker


def rejection(session: Session, **fields: object) -> Rejection:
    assignment = make_assignment(session, state=AssignmentState.SUBMITTED)
    row = Rejection(
        assignment_id=assignment.id,
        worker_id=assignment.worker_id,
        batch_id=assignment.hit.batch_id,
        category=BadFaith.NONSENSE,
        words="Random letters in every field.",
        staff_name="robin",
        decided_at=NOON,
        **fields,
    )
    session.add(row)
    session.flush()
    return row


def test_every_ground_has_words_and_disagreement_is_none() -> None:
    assert set(GROUNDS) == set(BadFaith)
    assert checked_grounds("copied", "  Copied from the page, word by word. ") == (
        BadFaith.COPIED,
        "Copied from the page, word by word.",
    )
    with pytest.raises(InvalidAnswer, match="judged otherwise, is paid"):
        checked_grounds("wrong_label", "The readers did not agree with it.")


@pytest.mark.parametrize(("collected", "cap", "most"), [(1, "0.05", 1), (20, "0.05", 1), (40, "0.05", 2), (40, "0", 0)])
def test_the_cap_is_a_share_and_one_at_least(session: Session, collected: int, cap: str, most: int) -> None:
    batch, worker = make_batch(session), make_worker(session)
    for _ in range(collected):
        make_assignment(session, hit=make_hit(session, batch=batch), worker=worker, state=AssignmentState.APPROVED)
    make_assignment(session, hit=make_hit(session, batch=batch), worker=worker)  # open: nothing is handed in

    expected = Share(0, collected, most)
    assert share_of_batch(session, batch.id, Decimal(cap)) == expected
    assert share_of_worker(session, worker.id, Decimal(cap)) == expected
    assert expected.is_full is (most == 0)


def test_what_is_being_rejected_and_what_others_rejected_count(session: Session) -> None:
    sending = rejection(session)
    make_assignment(session, hit=sending.assignment.hit, state=AssignmentState.REJECTED)

    share = share_of_batch(session, sending.batch_id, Decimal(1))

    assert (share.rejected, share.collected) == (2, 2)


def test_what_the_marketplace_shows_finishes_a_rejection(session: Session) -> None:
    sent = rejection(session)
    note_rejected(session, sent.assignment, NOON)
    note_rejected(session, sent.assignment, NOON + timedelta(hours=1))
    assert (sent.state, sent.rejected_at) == (RejectionState.REJECTED, NOON)

    note_approved(session, sent.assignment, NOON + timedelta(hours=2))
    note_approved(session, sent.assignment, NOON + timedelta(hours=3), by="kim")
    assert (sent.state, sent.undone_at, sent.undone_by) == (
        RejectionState.UNDONE,
        NOON + timedelta(hours=2),
        "the marketplace",
    )

    never = rejection(session)
    note_approved(session, never.assignment, NOON)
    assert rejection_of(session, never.assignment) is None


def test_a_rejection_can_be_undone_for_thirty_days_from_the_submission(session: Session) -> None:
    done = make_assignment(session, state=AssignmentState.REJECTED)

    assert undone_until(done) == (done.submitted_at or NOON) + timedelta(days=30)
    assert undone_until(make_assignment(session)) is None
