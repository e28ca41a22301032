"""The marketplace's list decides what counts: taken over once, whoever submitted how."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.operations import collect as collection
from app.operations.approve import approve_submitted
from app.operations.collect import Collected, collect
from app.operations.launch import launch_batch
from app.operations.validation_hits import open_validation_hits
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Assignment, Example, Hit, HitBatch, Round, Vote, Worker
from hits.mturk.errors import MTurkUnavailable
from hits.states import AssignmentState, HitKind, HitState, Verdict
from payments.models import LedgerTransaction, TransactionKind
from tests.app.operations.conftest import CONTEXTS, terms
from tests.app.operations.people import Crowd, assignment_row, hit_row
from tests.market import Market, failing

#: What was booked for approved work; launches book what they set aside besides.
REWARDS = select(LedgerTransaction).where(LedgerTransaction.kind == TransactionKind.REWARD)


def collected(crowd: Crowd) -> Collected:
    return collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)


def verdicts(session: Session) -> list[Verdict]:
    return list(session.scalars(select(Example.verdict).order_by(Example.id)))


def test_a_submission_becomes_examples(crowd: Crowd, hits: list[str]) -> None:
    writer = crowd.market.person("writer")
    assignment_id = crowd.write(writer, hits[0], {"Nice, a bill.": False, "What a treat, cold soup.": True})

    found = collected(crowd)

    row = assignment_row(crowd.session, assignment_id)
    assert (found.submitted, found.examples, found.to_review, found.findings) == (1, 2, 0, [])
    assert row.state is AssignmentState.SUBMITTED
    assert row.submitted_at == crowd.clock.now()
    assert row.auto_approval_at == crowd.clock.now() + timedelta(hours=72)
    assert verdicts(crowd.session) == [Verdict.NOT_VALIDATED, Verdict.PENDING]
    examples = crowd.session.scalars(select(Example)).all()
    assert {example.context_id for example in examples} == {hit_row(crowd.session, hits[0]).context_id}
    assert {example.writer_id for example in examples} == {row.worker_id}


def test_a_share_of_what_did_not_fool_the_model_goes_to_readers_as_well(crowd: Crowd, hits: list[str]) -> None:
    crowd.session.execute(update(Round).values(non_fooling_percent=100))
    crowd.session.commit()
    texts = {"The soup was cold.": False, "What a treat, cold soup.": True}
    crowd.write(crowd.market.person("ada"), hits[0], texts)

    collect(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)

    found = crowd.session.scalars(select(Example).order_by(Example.id)).all()
    assert [(one.fooled, one.verdict, one.votes_wanted) for one in found] == [
        (False, Verdict.PENDING, 2),
        (True, Verdict.PENDING, 2),
    ]


def test_collecting_twice_gives_the_same_rows(crowd: Crowd, hits: list[str]) -> None:
    crowd.write(crowd.market.person("writer"), hits[0], {"What a treat, cold soup.": True})
    collected(crowd)

    again = collected(crowd)

    assert (again.submitted, again.examples, again.closed) == (0, 0, 0)
    assert crowd.session.scalar(select(func.count()).select_from(Example)) == 1
    assert crowd.session.scalar(select(func.count()).select_from(Assignment)) == 1


def test_work_that_is_saved_here_but_not_submitted_there_does_not_count(crowd: Crowd, hits: list[str]) -> None:
    writer = crowd.market.person("writer")
    assignment_id = crowd.open(writer, hits[0])
    crowd.ask(assignment_id, "What a treat, cold soup.", fools=True)
    crowd.save(assignment_id)

    found = collected(crowd)

    assert found.submitted == 0
    assert assignment_row(crowd.session, assignment_id).state is AssignmentState.SAVED
    assert verdicts(crowd.session) == []


def test_work_posted_past_our_button_counts_when_the_model_was_asked(crowd: Crowd, hits: list[str]) -> None:
    writer = crowd.market.person("writer")
    assignment_id = crowd.open(writer, hits[0])
    crowd.ask(assignment_id, "What a treat, cold soup.", fools=True)
    crowd.market.submit(assignment_id)

    found = collected(crowd)

    assert (found.submitted, found.examples, found.to_review) == (1, 1, 0)
    assert assignment_row(crowd.session, assignment_id).review_reason is None


def test_a_stranger_who_never_opened_our_page_waits_for_a_person(crowd: Crowd, hits: list[str]) -> None:
    stranger = crowd.market.person("stranger")
    assignment_id = crowd.market.accept(stranger, hits[0])
    crowd.market.submit(assignment_id)

    found = collected(crowd)
    approve_submitted(crowd.session, crowd.market.mturk, crowd.clock)

    row = assignment_row(crowd.session, assignment_id)
    assert (found.submitted, found.to_review, found.examples) == (1, 1, 0)
    assert row.review_reason == collection.NEVER_OPENED
    assert row.state is AssignmentState.SUBMITTED
    assert "ApproveAssignment" not in crowd.market.calls


def test_an_opened_page_without_work_waits_for_a_person(crowd: Crowd, hits: list[str]) -> None:
    assignment_id = crowd.open(crowd.market.person("idle"), hits[0])
    crowd.market.submit(assignment_id)

    collected(crowd)

    assert assignment_row(crowd.session, assignment_id).review_reason == collection.NO_WORK


def test_a_hit_left_half_way_past_our_button_counts_its_attempts_and_waits_for_a_person(
    crowd: Crowd, hits: list[str]
) -> None:
    assignment_id = crowd.open(crowd.market.person("hasty"), hits[0])
    crowd.ask(assignment_id, "Nice, a bill.", fools=False)
    crowd.market.submit(assignment_id)

    found = collected(crowd)
    approve_submitted(crowd.session, crowd.market.mturk, crowd.clock)

    assert (found.submitted, found.examples, found.to_review) == (1, 1, 1)
    assert assignment_row(crowd.session, assignment_id).review_reason == collection.NOT_FINISHED
    assert "ApproveAssignment" not in crowd.market.calls


def test_all_tries_used_are_finished_work_also_past_our_button(crowd: Crowd, hits: list[str]) -> None:
    assignment_id = crowd.open(crowd.market.person("writer"), hits[0])
    for number in range(5):
        crowd.ask(assignment_id, f"Nice, bill number {number}.", fools=False)
    crowd.market.submit(assignment_id)

    collected(crowd)

    assert assignment_row(crowd.session, assignment_id).review_reason is None


def test_a_worker_who_returned_and_took_the_hit_again_keeps_the_attempts(crowd: Crowd, hits: list[str]) -> None:
    writer = crowd.market.person("writer")
    first = crowd.open(writer, hits[0])
    crowd.ask(first, "What a treat, cold soup.", fools=True)
    crowd.market.engine.return_assignment(writer, first)
    second = crowd.open(writer, hits[0])
    crowd.save(second)
    crowd.market.submit(second)

    found = collected(crowd)

    assert (found.submitted, found.examples) == (1, 1)
    assert assignment_row(crowd.session, first).state is AssignmentState.OPENED
    assert assignment_row(crowd.session, second).state is AssignmentState.SUBMITTED


def test_a_page_opened_under_another_workers_name_counts_for_nobody(crowd: Crowd, hits: list[str]) -> None:
    thief, victim = crowd.market.person("thief"), crowd.market.person("victim")
    assignment_id = crowd.open(thief, hits[0], as_worker=victim)
    crowd.ask(assignment_id, "What a treat, cold soup.", fools=True)
    crowd.save(assignment_id)
    crowd.market.submit(assignment_id)

    found = collected(crowd)
    collected(crowd)

    row = assignment_row(crowd.session, assignment_id)
    assert (found.examples, found.to_review) == (0, 1)
    assert row.review_reason == collection.OTHER_WORKER
    assert row.worker.mturk_worker_id == thief
    assert verdicts(crowd.session) == []


def test_an_assignment_claimed_for_another_hit_counts_for_nothing(crowd: Crowd, hits: list[str]) -> None:
    writer = crowd.market.person("writer")
    assignment_id = crowd.open(writer, hits[0])
    row = assignment_row(crowd.session, assignment_id)
    row.hit_id = hit_row(crowd.session, hits[1]).id
    crowd.session.commit()
    crowd.ask(assignment_id, "What a treat, cold soup.", fools=True)
    crowd.save(assignment_id)
    crowd.market.submit(assignment_id)

    found = collected(crowd)

    row = assignment_row(crowd.session, assignment_id)
    assert (found.examples, row.review_reason) == (0, collection.OTHER_HIT)
    assert row.hit.mturk_hit_id == hits[0]


def test_work_that_the_marketplace_approved_by_itself_is_collected_and_booked_once(
    crowd: Crowd, hits: list[str]
) -> None:
    assignment_id = crowd.write(crowd.market.person("writer"), hits[0], {"What a treat, cold soup.": True})
    crowd.clock.advance(timedelta(hours=73))

    found = collected(crowd)
    collected(crowd)

    row = assignment_row(crowd.session, assignment_id)
    assert (found.submitted, found.examples) == (1, 1)
    assert row.state is AssignmentState.APPROVED
    assert row.approved_at == crowd.clock.now() - timedelta(hours=1)
    rewards = crowd.session.scalars(REWARDS).all()
    assert [reward.reference for reward in rewards] == [assignment_id]
    assert hit_row(crowd.session, hits[0]).state is HitState.CLOSED


def test_a_stranger_who_is_approved_by_the_clock_is_booked_too(crowd: Crowd, hits: list[str]) -> None:
    assignment_id = crowd.market.accept(crowd.market.person("stranger"), hits[0])
    crowd.market.submit(assignment_id)
    collected(crowd)
    crowd.clock.advance(timedelta(hours=73))

    collected(crowd)

    assert assignment_row(crowd.session, assignment_id).state is AssignmentState.APPROVED
    assert len(crowd.session.scalars(REWARDS).all()) == 1
    assert verdicts(crowd.session) == []


def test_rejected_work_is_noted_and_asks_nobody_to_validate_it(crowd: Crowd, hits: list[str]) -> None:
    assignment_id = crowd.write(crowd.market.person("writer"), hits[0], {"What a treat, cold soup.": True})
    crowd.market.mturk.reject(assignment_id, "Rejected by hand elsewhere.")

    collected(crowd)

    assert assignment_row(crowd.session, assignment_id).state is AssignmentState.REJECTED
    assert verdicts(crowd.session) == []
    assert crowd.session.scalars(REWARDS).all() == []


def test_a_rejection_that_is_taken_back_counts_after_all(
    session: Session, market: Market, settings: Settings, clock: FixedClock, crowd: Crowd
) -> None:
    launch_batch(session, market.mturk, settings, clock, terms(hits=1, assignments=2), CONTEXTS)
    hit_id = market.hits()[0]["HITId"]
    assignment_id = crowd.write(market.person("writer"), hit_id, {"What a treat, cold soup.": True})
    market.mturk.reject(assignment_id, "Rejected by hand elsewhere.")
    collected(crowd)
    market.call("ApproveAssignment", AssignmentId=assignment_id, OverrideRejection=True)
    market.submit(market.accept(market.person("another"), hit_id))

    found = collected(crowd)

    row = assignment_row(session, assignment_id)
    assert (row.state, found.examples) == (AssignmentState.APPROVED, 1)
    assert [one.reference for one in session.scalars(REWARDS)] == [assignment_id]


def test_every_page_of_assignments_is_read(
    session: Session, market: Market, settings: Settings, clock: FixedClock, crowd: Crowd
) -> None:
    launch_batch(session, market.mturk, settings, clock, terms(hits=1, assignments=230), CONTEXTS)
    hit_id = market.hits()[0]["HITId"]
    for number in range(230):
        market.submit(market.accept(market.person(f"person{number}"), hit_id))

    found = collected(crowd)

    assert (found.submitted, found.to_review) == (230, 230)
    assert market.calls.count("ListAssignmentsForHIT") >= 3
    assert session.scalar(select(func.count()).select_from(Worker)) == 230


def test_an_expired_hit_without_work_is_closed(crowd: Crowd, hits: list[str]) -> None:
    crowd.clock.advance(timedelta(hours=169))

    assert collected(crowd).closed == 3
    assert crowd.session.scalar(select(func.count()).select_from(Hit).where(Hit.state == HitState.CLOSED)) == 3


def test_an_expired_hit_that_somebody_still_holds_stays_open(crowd: Crowd, hits: list[str]) -> None:
    crowd.clock.advance(timedelta(hours=167, minutes=59))
    assignment_id = crowd.open(crowd.market.person("late"), hits[0])
    crowd.clock.advance(timedelta(minutes=30))

    assert collected(crowd).closed == 2
    crowd.ask(assignment_id, "What a treat, cold soup.", fools=True)
    crowd.market.submit(assignment_id)
    assert collected(crowd).examples == 1


def test_a_hit_that_the_marketplace_does_not_know_is_a_finding_and_holds_up_nobody(
    crowd: Crowd, hits: list[str]
) -> None:
    hit_row(crowd.session, hits[0]).mturk_hit_id = "3UNKNOWNHIT"
    crowd.session.commit()
    crowd.write(crowd.market.person("writer"), hits[1], {"What a treat, cold soup.": True})

    found = collected(crowd)

    assert found.submitted == 1
    assert ["3UNKNOWNHIT" in finding for finding in found.findings] == [True]


def test_hits_of_another_marketplace_are_left_alone(crowd: Crowd, hits: list[str]) -> None:
    for batch in crowd.session.scalars(select(HitBatch)):
        batch.endpoint = "https://elsewhere.example.org"
    crowd.session.commit()
    crowd.market.calls.clear()

    assert collected(crowd) == Collected()
    assert crowd.market.calls == []


def test_hits_without_news_cost_no_call_of_their_own(crowd: Crowd, hits: list[str]) -> None:
    crowd.market.calls.clear()
    collected(crowd)
    assert set(crowd.market.calls) == {"ListHITs"}

    crowd.write(crowd.market.person("writer"), hits[0], {"What a treat, cold soup.": True})
    crowd.open(crowd.market.person("slow"), hits[1])
    crowd.market.calls.clear()

    assert collected(crowd).submitted == 1
    # One HIT's page and the empty one after it.
    assert crowd.market.calls.count("ListAssignmentsForHIT") == 2


def test_a_place_that_was_reviewed_does_not_hide_the_next_submission(
    session: Session, market: Market, settings: Settings, clock: FixedClock, crowd: Crowd
) -> None:
    launch_batch(session, market.mturk, settings, clock, terms(hits=1, assignments=3), CONTEXTS)
    hit_id = market.hits()[0]["HITId"]
    for number in range(3):
        crowd.write(market.person(f"writer{number}"), hit_id, {"What a treat, cold soup.": True})
        assert collected(crowd).submitted == 1
        approve_submitted(session, market.mturk, clock)
        assert collected(crowd).closed == (number == 2)


def test_a_marketplace_that_is_away_is_said(crowd: Crowd, hits: list[str]) -> None:
    crowd.write(crowd.market.person("writer"), hits[0], {"What a treat, cold soup.": True})
    crowd.market.before = failing("ListAssignmentsForHIT")

    with pytest.raises(MTurkUnavailable):
        collected(crowd)


def test_votes_count_when_the_marketplace_shows_their_assignment(crowd: Crowd, hits: list[str]) -> None:
    validation, validators = validation_hit(crowd, hits)
    assignment_id = crowd.judge(validators[0], validation)
    assert crowd.session.scalar(select(func.count()).select_from(Vote).where(Vote.counted_at.is_not(None))) == 0

    found = collected(crowd)

    assert found.votes == 2
    assert assignment_row(crowd.session, assignment_id).review_reason is None
    assert collected(crowd).votes == 0


def test_votes_posted_past_our_button_count_when_all_are_given(crowd: Crowd, hits: list[str]) -> None:
    validation, validators = validation_hit(crowd, hits)
    assignment_id = crowd.judge(validators[0], validation, save=False)

    assert collected(crowd).votes == 2
    assert assignment_row(crowd.session, assignment_id).review_reason is None


def test_a_half_done_validation_counts_its_votes_and_waits_for_a_person(crowd: Crowd, hits: list[str]) -> None:
    validation, validators = validation_hit(crowd, hits)
    assignment_id = crowd.judge(validators[0], validation, save=False)
    vote = crowd.session.scalars(select(Vote)).first()
    crowd.session.delete(vote)
    crowd.session.commit()

    assert collected(crowd).votes == 1
    assert assignment_row(crowd.session, assignment_id).review_reason == collection.NOT_ALL_JUDGED


def test_votes_under_another_validators_name_do_not_count(crowd: Crowd, hits: list[str]) -> None:
    validation, validators = validation_hit(crowd, hits)
    assignment_id = crowd.judge(validators[0], validation)
    row = assignment_row(crowd.session, assignment_id)
    other = crowd.open(validators[1], validation)
    row.worker_id = assignment_row(crowd.session, other).worker_id
    crowd.session.commit()

    found = collected(crowd)

    assert (found.votes, found.to_review) == (0, 1)
    assert assignment_row(crowd.session, assignment_id).review_reason == collection.OTHER_WORKER


def validation_hit(crowd: Crowd, hits: list[str]) -> tuple[str, list[str]]:
    """Two fooling examples in one validation HIT, and two people who may judge them."""
    for number, hit in enumerate(hits[:2]):
        crowd.write(crowd.market.person(f"writer{number}"), hit, {"What a treat, cold soup.": True})
    collected(crowd)
    crowd.clock.advance(timedelta(seconds=61))
    open_validation_hits(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock)
    row = crowd.session.execute(select(Hit).join(Hit.batch).where(HitBatch.kind == HitKind.VALIDATION)).scalar_one()
    qualification = row.batch.qualification_type_id
    assert qualification is not None
    assert row.mturk_hit_id is not None
    people = [crowd.market.person(f"validator{number}", grants={qualification: 1}) for number in range(2)]
    return row.mturk_hit_id, people
