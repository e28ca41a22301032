"""Rejecting takes bad faith, words, room under the cap, and can be interrupted anywhere."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry
from app.operations.approve import approve_submitted
from app.operations.collect import collect
from app.operations.reject import plan_rejection, reject_assignment
from app.operations.review import accept_reviewed
from app.operations.undo_rejection import undo_rejection
from hits.clock import FixedClock
from hits.errors import InvalidAnswer, NotFound, Refused
from hits.models import Rejection, Vote
from hits.mturk.errors import MTurkUnavailable
from hits.rejections import CapReached
from hits.states import AssignmentState, BadFaith, RejectionState
from payments.models import LedgerTransaction, TransactionKind
from tests.app.operations.people import Crowd, assignment_row
from tests.app.operations.test_collect import validation_hit
from tests.market import Market, failing

WORDS = "The form was handed in without a single text."
GROUNDS = {"category": "no_work", "words": WORDS}


def strangers(crowd: Crowd, hits: list[str], count: int = 1) -> list[str]:
    """Assignments of different people who never opened our page."""
    found = []
    for number, hit_id in enumerate(hits[:count]):
        assignment_id = crowd.market.accept(crowd.market.person(f"stranger-{number}"), hit_id)
        crowd.market.submit(assignment_id)
        found.append(assignment_id)
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    return found


@pytest.fixture
def waiting(crowd: Crowd, hits: list[str]) -> str:
    return strangers(crowd, hits)[0]


def reject(crowd: Crowd, assignment_id: str, *, by: str = "robin", **other: str) -> None:
    grounds = {**GROUNDS, **other}
    reject_assignment(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, assignment_id, by=by, **grounds)


def rejections(crowd: Crowd) -> list[RejectionState]:
    return [one.state for one in crowd.session.scalars(select(Rejection).execution_options(populate_existing=True))]


def rewards(crowd: Crowd) -> list[str]:
    """The assignments whose reward is booked."""
    of_kind = select(LedgerTransaction).where(LedgerTransaction.kind == TransactionKind.REWARD)
    return [one.reference for one in crowd.session.scalars(of_kind)]


def test_a_plan_says_what_the_worker_loses_and_reads_and_changes_nothing(crowd: Crowd, waiting: str) -> None:
    plan = plan_rejection(crowd.session, crowd.settings, waiting, **GROUNDS)

    assert (plan.reward, plan.category, plan.words) == (Decimal("0.30"), BadFaith.NO_WORK, WORDS)
    assert plan.feedback.startswith("No work was done")
    assert "we can undo this until 15 December 2026" in plan.feedback
    assert str(plan.batch) == "0 of 1 rejected, 1 at most"
    assert assignment_row(crowd.session, waiting).state is AssignmentState.SUBMITTED
    assert rejections(crowd) == []


def test_rejected_work_is_not_paid_and_says_who_did_it_and_why(crowd: Crowd, waiting: str) -> None:
    reject(crowd, waiting)

    row = assignment_row(crowd.session, waiting)
    assert (row.state, row.rejected_at) == (AssignmentState.REJECTED, crowd.clock.now())
    seen = crowd.market.call("GetAssignment", AssignmentId=waiting)["Assignment"]
    assert seen["AssignmentStatus"] == "Rejected"
    assert WORDS in seen["RequesterFeedback"]
    assert rewards(crowd) == []
    entry = crowd.session.scalars(select(AuditEntry).where(AuditEntry.action == "assignment.reject")).one()
    assert (entry.staff_name, entry.subject, entry.detail["category"]) == ("robin", waiting, "no_work")
    (rejection,) = crowd.session.scalars(select(Rejection))
    assert (rejection.staff_name, rejection.words) == ("robin", WORDS)
    with pytest.raises(Refused, match="it is rejected"):
        reject(crowd, waiting)
    assert rejections(crowd) == [RejectionState.REJECTED]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"category": "disagreed"}, "is paid"),
        ({"category": ""}, "Choose on what ground"),
        ({"words": ""}, "is empty"),
        ({"words": "bad work"}, "explains too little"),
        ({"words": "no " * 20}, "explains too little"),
        ({"words": "x" * 701}, "700 are the most"),
        ({"words": "a\x00b"}, "U\\+0000"),
    ],
)
def test_without_a_ground_and_words_nothing_is_rejected(
    crowd: Crowd, waiting: str, change: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidAnswer, match=says):
        reject(crowd, waiting, **change)

    assert assignment_row(crowd.session, waiting).state is AssignmentState.SUBMITTED
    assert "RejectAssignment" not in crowd.market.calls


def test_only_work_that_waits_for_a_person_can_be_rejected(crowd: Crowd, hits: list[str]) -> None:
    done = crowd.write(crowd.market.person("ada"), hits[0], {"The good old queue.": True})
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    with pytest.raises(Refused, match="does not wait for a person"):
        reject(crowd, done)
    with pytest.raises(NotFound):
        reject(crowd, "ANOTHER")


def test_the_cap_holds_for_a_batch(crowd: Crowd, hits: list[str]) -> None:
    first, second, _ = strangers(crowd, hits, 3)
    reject(crowd, first)

    with pytest.raises(CapReached, match=r"1 of 3 assignments are rejected.*0\.05.*allows 1"):
        reject(crowd, second)
    with pytest.raises(CapReached):
        plan_rejection(crowd.session, crowd.settings, second, **GROUNDS)

    assert assignment_row(crowd.session, second).state is AssignmentState.SUBMITTED
    raised = crowd.settings.model_copy(update={"rejection_cap": Decimal("0.67")})
    reject_assignment(crowd.session, crowd.market.mturk, raised, crowd.clock, second, by="robin", **GROUNDS)
    assert rejections(crowd) == [RejectionState.REJECTED] * 2


def test_the_cap_holds_for_a_person_and_zero_switches_rejecting_off(crowd: Crowd, hits: list[str]) -> None:
    person, other = crowd.market.person("stranger"), crowd.market.person("other")
    accepted = [crowd.market.accept(*who) for who in zip((person, person, other), hits, strict=True)]
    for one in accepted:
        crowd.market.submit(one)
    first, second, _ = accepted
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    crowd.settings = crowd.settings.model_copy(update={"rejection_cap": Decimal(0)})
    with pytest.raises(CapReached, match="allows 0"):
        reject(crowd, first)

    # Two of the batch's three, one of the person's two.
    crowd.settings = crowd.settings.model_copy(update={"rejection_cap": Decimal("0.67")})
    reject(crowd, first)
    with pytest.raises(CapReached, match="what w-"):
        reject(crowd, second)


def test_an_answer_that_never_came_is_asked_for_again_with_the_first_words(crowd: Crowd, waiting: str) -> None:
    crowd.market.after = failing("RejectAssignment")
    with pytest.raises(MTurkUnavailable):
        reject(crowd, waiting)
    assert rejections(crowd) == [RejectionState.SENDING]
    with pytest.raises(Refused, match="is being rejected"):
        accept_reviewed(crowd.session, crowd.clock, waiting, by="kim")
    approve_submitted(crowd.session, crowd.market.mturk, crowd.clock)
    assert assignment_row(crowd.session, waiting).state is AssignmentState.SUBMITTED

    crowd.market.after = None
    reject(crowd, waiting, by="kim", category="nonsense", words="Random letters in all of the fields.")

    assert rejections(crowd) == [RejectionState.REJECTED]
    (row,) = crowd.session.scalars(select(Rejection))
    assert (row.staff_name, row.words) == ("robin", WORDS)
    assert len(list(crowd.session.scalars(select(AuditEntry)))) == 1


def test_the_next_collection_finishes_a_rejection_that_died_half_way(crowd: Crowd, waiting: str) -> None:
    crowd.market.after = failing("RejectAssignment")
    with pytest.raises(MTurkUnavailable):
        reject(crowd, waiting)
    crowd.market.after = None

    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    assert assignment_row(crowd.session, waiting).state is AssignmentState.REJECTED
    assert rejections(crowd) == [RejectionState.REJECTED]


def test_work_that_the_marketplace_has_approved_by_itself_stays_approved_and_is_booked(
    crowd: Crowd, waiting: str, clock: FixedClock
) -> None:
    clock.advance(timedelta(days=31))
    crowd.market.call("GetAccountBalance")  # the engine's timers run with a call

    with pytest.raises(Refused, match=r"shows assignment \w+ as approved"):
        reject(crowd, waiting)

    assert assignment_row(crowd.session, waiting).state is AssignmentState.APPROVED
    assert rejections(crowd) == []
    assert rewards(crowd) == [waiting]


def test_two_people_at_the_cap_reject_one(
    session_factory: sessionmaker[Session], crowd: Crowd, hits: list[str]
) -> None:
    first, second, _ = strangers(crowd, hits, 3)
    crowd.session.rollback()
    together = threading.Barrier(2)
    outcomes: list[str] = []

    def person(assignment_id: str) -> None:
        with session_factory() as session:
            together.wait()
            try:
                reject_assignment(
                    session,
                    crowd.market.mturk,
                    crowd.settings,
                    crowd.clock,
                    assignment_id,
                    by="robin",
                    **GROUNDS,
                )
                outcomes.append("rejected")
            except CapReached:
                outcomes.append("cap")

    people = [threading.Thread(target=person, args=(one,)) for one in (first, second)]
    for one in people:
        one.start()
    for one in people:
        one.join()

    assert sorted(outcomes) == ["cap", "rejected"]
    assert rejections(crowd) == [RejectionState.REJECTED]


def test_markets_that_are_down_leave_a_rejection_to_go_on_with(crowd: Crowd, waiting: str, market: Market) -> None:
    market.before = failing("RejectAssignment")
    with pytest.raises(MTurkUnavailable):
        reject(crowd, waiting)

    market.before = None
    reject(crowd, waiting)
    assert assignment_row(crowd.session, waiting).state is AssignmentState.REJECTED


def test_votes_of_rejected_validation_work_are_withdrawn_and_come_back_when_it_is_undone(
    crowd: Crowd, hits: list[str]
) -> None:
    validation, validators = validation_hit(crowd, hits)
    half = crowd.judge(validators[0], validation, save=False)
    row = assignment_row(crowd.session, half)
    crowd.session.delete(crowd.session.scalars(select(Vote).where(Vote.assignment_id == row.id)).first())
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    vote = crowd.session.scalars(select(Vote).where(Vote.assignment_id == row.id)).one()
    assert vote.counted_at is not None
    assert plan_rejection(crowd.session, crowd.settings, half, **GROUNDS).votes == 1

    reject(crowd, half)
    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    crowd.session.refresh(vote)
    assert vote.counted_at is None

    undo_rejection(crowd.session, crowd.market.mturk, crowd.clock, half, reason="I was wrong about it.", by="kim")
    crowd.session.refresh(vote)
    assert vote.counted_at is not None
