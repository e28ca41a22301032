"""Base pay never waits: approved once, booked once, whatever the marketplace answers on the way."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.operations.approve import Approvals, approve_submitted
from app.operations.collect import collect
from hits.mturk.errors import MTurkUnavailable
from hits.states import AssignmentState
from payments.models import LedgerTransaction, TransactionKind
from tests.app.operations.crashes import Killed
from tests.app.operations.people import Crowd, assignment_row
from tests.market import failing

REWARDS = select(LedgerTransaction).where(LedgerTransaction.kind == TransactionKind.REWARD)


@pytest.fixture
def submitted(crowd: Crowd, hits: list[str]) -> str:
    """An assignment that was collected and waits for approval."""
    assignment_id = crowd.write(crowd.market.person("writer"), hits[0], {"What a treat, cold soup.": True})
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    return assignment_id


def approved(crowd: Crowd) -> Approvals:
    return approve_submitted(crowd.session, crowd.market.mturk, crowd.clock)


def rewards(session: Session) -> list[str]:
    return [one.reference for one in session.scalars(REWARDS)]


def test_submitted_work_is_approved_and_its_reward_is_booked(crowd: Crowd, submitted: str) -> None:
    before = crowd.market.mturk.balance()

    assert approved(crowd) == Approvals(approved=1)

    row = assignment_row(crowd.session, submitted)
    assert row.state is AssignmentState.APPROVED
    assert row.approved_at == crowd.clock.now()
    assert rewards(crowd.session) == [submitted]
    seen = crowd.market.call("GetAssignment", AssignmentId=submitted)["Assignment"]
    assert seen["AssignmentStatus"] == "Approved"
    # The sentence that finance reads in the worker's statement.
    assert seen["RequesterFeedback"] == "For this HIT, whatever others say about your work: $0.30."
    # The reward and its fee were held since the launch.
    assert crowd.market.mturk.balance() == before


def test_approving_twice_is_approving_once(crowd: Crowd, submitted: str) -> None:
    approved(crowd)

    assert approved(crowd) == Approvals()
    assert rewards(crowd.session) == [submitted]


def test_an_approval_that_was_not_stored_is_repeated_without_harm(crowd: Crowd, submitted: str) -> None:
    def die(operation: str) -> None:
        if operation == "ApproveAssignment":
            raise Killed

    crowd.market.after = die
    with pytest.raises(Killed):
        approved(crowd)
    crowd.session.rollback()
    crowd.market.after = None
    approved_then = crowd.clock.now()
    crowd.clock.advance(timedelta(hours=1))

    assert approved(crowd) == Approvals(approved=1)
    assert assignment_row(crowd.session, submitted).approved_at == approved_then
    assert rewards(crowd.session) == [submitted]


def test_work_that_the_marketplace_approved_meanwhile_is_a_success(crowd: Crowd, submitted: str) -> None:
    crowd.clock.advance(timedelta(hours=80))

    assert approved(crowd) == Approvals(approved=1)
    assert assignment_row(crowd.session, submitted).approved_at == crowd.clock.now() - timedelta(hours=8)


def test_work_that_was_rejected_meanwhile_is_noted_and_not_booked(crowd: Crowd, submitted: str) -> None:
    crowd.market.mturk.reject(submitted, "Rejected by hand elsewhere.")

    assert approved(crowd) == Approvals()
    assert assignment_row(crowd.session, submitted).state is AssignmentState.REJECTED
    assert rewards(crowd.session) == []


@pytest.mark.parametrize(
    "answer",
    [
        (
            b'{"__type":"RequestError","TurkErrorCode":"AWS.MechanicalTurk.InvalidAssignmentState",'
            b'"Message":"This operation can be called with a status of: null (1624047673908)"}'
        ),
        (
            b'{"__type":"RequestError","TurkErrorCode":"AWS.MechanicalTurk.AssignmentDoesNotExist",'
            b'"Message":"Assignment X does not exist. (1624047673908)"}'
        ),
    ],
)
def test_a_marketplace_that_does_not_know_its_own_submission_yet_is_asked_again(
    crowd: Crowd, submitted: str, answer: bytes
) -> None:
    lagging = ("ApproveAssignment", "GetAssignment")
    crowd.market.before = lambda operation: (400, {}, answer) if operation in lagging else None

    first = approved(crowd)
    crowd.market.before = None
    second = approved(crowd)

    assert (first.approved, second.approved) == (0, 1)
    assert "next pass tries again" in first.findings[0]
    assert "1624047673908" not in first.findings[0]


def test_one_refused_assignment_does_not_hold_up_the_next(crowd: Crowd, submitted: str, hits: list[str]) -> None:
    other = crowd.write(crowd.market.person("other"), hits[1], {"What a treat, cold soup.": True})
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    refusal = failing("ApproveAssignment", 400, "AccessDeniedException", times=1)
    crowd.market.before = refusal

    done = approved(crowd)

    assert (done.approved, len(done.findings)) == (1, 1)
    assert submitted in done.findings[0]
    assert assignment_row(crowd.session, other).state is AssignmentState.APPROVED


def test_a_marketplace_that_is_away_is_said(crowd: Crowd, submitted: str) -> None:
    crowd.market.before = failing("ApproveAssignment")

    with pytest.raises(MTurkUnavailable):
        approved(crowd)

    assert rewards(crowd.session) == []


def test_the_id_that_is_collected_is_the_id_that_is_approved(crowd: Crowd, hits: list[str]) -> None:
    stranger = crowd.market.accept(crowd.market.person("stranger"), hits[0])
    crowd.market.submit(stranger)
    writer = crowd.write(crowd.market.person("writer"), hits[1], {"What a treat, cold soup.": True})
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    approved(crowd)

    assert crowd.market.mturk.assignment(stranger).status == "Submitted"
    assert crowd.market.mturk.assignment(writer).status == "Approved"
    transaction = crowd.session.scalars(REWARDS).one()
    assert sum((posting.cents for posting in transaction.postings), 0) == 0
    assert Decimal(-min(posting.cents for posting in transaction.postings)) == 36
