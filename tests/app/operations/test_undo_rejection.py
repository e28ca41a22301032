"""A rejection can be undone for 30 days, and the reward is booked once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from app.models import AuditEntry
from app.operations.collect import collect
from app.operations.reject import reject_assignment
from app.operations.undo_rejection import undo_rejection
from hits.clock import FixedClock
from hits.errors import InvalidAnswer, NotFound, Refused
from hits.models import Rejection
from hits.mturk.errors import MTurkUnavailable
from hits.states import AssignmentState, RejectionState
from payments.models import Posting
from tests.app.operations.people import Crowd, assignment_row
from tests.app.operations.test_reject import GROUNDS, rewards, strangers
from tests.market import failing


@pytest.fixture
def rejected(crowd: Crowd, hits: list[str]) -> str:
    (assignment_id,) = strangers(crowd, hits)
    reject_assignment(
        crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, assignment_id, by="robin", **GROUNDS
    )
    return assignment_id


def undo(crowd: Crowd, assignment_id: str, reason: str = "I took another one for it.") -> None:
    undo_rejection(crowd.session, crowd.market.mturk, crowd.clock, assignment_id, reason=reason, by="kim")


def test_an_undone_rejection_pays_once_and_says_who_and_why(crowd: Crowd, rejected: str) -> None:
    undo(crowd, rejected)

    row = assignment_row(crowd.session, rejected)
    assert (row.state, row.approved_at) == (AssignmentState.APPROVED, crowd.clock.now())
    assert crowd.market.call("GetAssignment", AssignmentId=rejected)["Assignment"]["AssignmentStatus"] == "Approved"
    assert rewards(crowd) == [rejected]
    assert sum(one.cents for one in crowd.session.scalars(select(Posting))) == 0
    (rejection,) = crowd.session.scalars(select(Rejection))
    assert (rejection.state, rejection.undone_by) == (RejectionState.UNDONE, "kim")
    assert rejection.undone_reason == "I took another one for it."
    entry = crowd.session.scalars(select(AuditEntry).where(AuditEntry.action == "assignment.undo-rejection")).one()
    assert (entry.staff_name, entry.detail) == ("kim", {})
    with pytest.raises(Refused, match="not rejected but approved"):
        undo(crowd, rejected)
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    assert rewards(crowd) == [rejected]


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501])
def test_an_undoing_has_a_reason(crowd: Crowd, rejected: str, reason: str) -> None:
    with pytest.raises(InvalidAnswer):
        undo(crowd, rejected, reason)

    assert assignment_row(crowd.session, rejected).state is AssignmentState.REJECTED


def test_after_thirty_days_it_is_too_late(crowd: Crowd, rejected: str, clock: FixedClock) -> None:
    clock.advance(timedelta(days=30))

    with pytest.raises(Refused, match="Pay the worker by a bonus instead"):
        undo(crowd, rejected)
    assert rewards(crowd) == []


def test_an_answer_that_never_came_is_asked_for_again(crowd: Crowd, rejected: str) -> None:
    crowd.market.after = failing("ApproveAssignment")
    with pytest.raises(MTurkUnavailable):
        undo(crowd, rejected)
    assert rewards(crowd) == []

    crowd.market.after = None
    undo(crowd, rejected)

    assert rewards(crowd) == [rejected]
    assert assignment_row(crowd.session, rejected).state is AssignmentState.APPROVED


def test_the_collection_finds_an_undoing_that_died_half_way(crowd: Crowd, rejected: str) -> None:
    crowd.market.after = failing("ApproveAssignment")
    with pytest.raises(MTurkUnavailable):
        undo(crowd, rejected)
    crowd.market.after = None

    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    assert rewards(crowd) == [rejected]
    assert [one.state for one in crowd.session.scalars(select(Rejection))] == [RejectionState.UNDONE]


def test_what_is_not_rejected_is_not_undone(crowd: Crowd, hits: list[str]) -> None:
    (waiting,) = strangers(crowd, hits)

    with pytest.raises(Refused, match="not rejected but submitted"):
        undo(crowd, waiting)
    with pytest.raises(NotFound):
        undo(crowd, "ANOTHER")
