"""Planning: one row for each bonus that is owed, none for those that are not, and rows that follow their example."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from hits.models import Assignment, Vote
from hits.money import usd
from hits.states import AssignmentState, Moderation, Verdict
from hits.validations import override, withdraw_votes
from payments.due import due_bonuses
from payments.models import Payout, PayoutState, Posting
from payments.planning import follow
from tests import factories
from tests.payments.builders import assignment_of, fooling_example, plan, verified_example
from tests.payments.senders import ENDPOINT


def promised(session: Session) -> int:
    """The cents that are promised and not paid."""
    found = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith("promised:")))
    return int(found or 0)


def test_a_verified_fooling_example_earns_one_bonus(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    example = verified_example(session, batch=batch, votes=2)

    [payout] = plan(session, clock.now())

    assert (payout.example_id, payout.amount, payout.state) == (example.id, usd("0.30"), PayoutState.APPROVED)
    assert payout.worker_id == example.writer_id
    assert payout.endpoint == ENDPOINT
    assert len(payout.request_token) <= 64
    assert payout.reason.endswith(payout.reference)
    assert "2 readers agreed: $0.30" in payout.reason
    assert promised(session) == 30


def test_planning_again_changes_nothing(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session))
    plan(session, clock.now())
    session.commit()

    assert plan(session, clock.now()) == []
    assert promised(session) == 30


def test_nothing_else_earns_one(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session)
    others: list[dict[str, Any]] = [
        {"verdict": Verdict.PENDING, "final_label": None},
        {"verdict": Verdict.FLAGGED, "final_label": None},
        {"verdict": Verdict.INVALID, "final_label": None},
        {"verdict": Verdict.UNRESOLVED, "final_label": None},
        {"verdict": Verdict.VALID_AND_MODEL_RIGHT, "final_label": "positive"},
        {"final_label": "neutral"},
        {"moderation": Moderation.OPEN},
        {"moderation": Moderation.UPHELD},
        {"fooled": False},
        {"state": AssignmentState.REJECTED},
        {"state": AssignmentState.OPENED},
    ]
    for fields in others:
        example = verified_example(session, batch=batch, **fields)

        assert plan(session, clock.now()) == [], (fields, example)
    assert promised(session) == 0


def test_a_batch_without_a_bonus_owes_none(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session, bonus=usd(0)))

    assert plan(session, clock.now()) == []


def test_the_bonus_goes_to_the_assignment_that_was_sent_in_when_the_first_was_returned(
    session: Session, clock: FixedClock
) -> None:
    example = verified_example(session, batch=factories.make_batch(session), state=AssignmentState.OPENED)
    returned = assignment_of(session, example)
    second = factories.make_assignment(
        session, hit=returned.hit, worker=returned.worker, state=AssignmentState.SUBMITTED
    )

    [payout] = plan(session, clock.now())

    assert payout.assignment_id == second.id


def test_two_planners_at_once_plan_it_once(session_factory: sessionmaker[Session], clock: FixedClock) -> None:
    with session_factory() as session:
        batch = factories.make_batch(session)
        for _ in range(5):
            verified_example(session, batch=batch)
        session.commit()
    barrier = threading.Barrier(2)
    found: list[int] = []

    def run() -> None:
        with session_factory() as session:
            barrier.wait()
            found.append(len(plan(session, clock.now())))
            session.commit()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with session_factory() as session:
        assert sum(found) == 5
        assert session.scalar(select(func.count()).select_from(Payout)) == 5
        assert promised(session) == 150


def test_a_flag_holds_a_planned_bonus_and_its_dismissal_frees_it(session: Session, clock: FixedClock) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    [payout] = plan(session, clock.now())

    example.verdict = Verdict.FLAGGED
    session.flush()
    plan(session, clock.now())
    held = payout.state
    example.verdict, example.moderation = Verdict.VALID_AND_MODEL_WRONG, Moderation.DISMISSED
    session.flush()
    plan(session, clock.now())

    assert (held, payout.state) == (PayoutState.HELD, PayoutState.APPROVED)
    assert promised(session) == 30


def test_an_upheld_flag_withdraws_the_promise_and_a_change_of_mind_gives_it_again(
    session: Session, clock: FixedClock
) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    [payout] = plan(session, clock.now())
    outcomes = []

    for verdict, moderation in [
        (Verdict.INVALID, Moderation.UPHELD),
        (Verdict.VALID_AND_MODEL_WRONG, Moderation.DISMISSED),
        (Verdict.INVALID, Moderation.UPHELD),
    ]:
        example.verdict, example.moderation = verdict, moderation
        session.flush()
        plan(session, clock.now())
        plan(session, clock.now())
        outcomes.append((payout.state, promised(session)))

    assert outcomes == [(PayoutState.NOT_DUE, 0), (PayoutState.APPROVED, 30), (PayoutState.NOT_DUE, 0)]


def test_pending_examples_are_not_planned(session: Session, clock: FixedClock) -> None:
    fooling_example(session, batch=factories.make_batch(session))

    assert due_bonuses(session) == []
    assert session.scalar(select(func.count()).select_from(Assignment)) == 1


def test_a_promise_stays_when_a_reader_acted_in_bad_faith_and_falls_with_the_requesters_own_decision(
    session: Session, clock: FixedClock
) -> None:
    example = verified_example(session, batch=factories.make_batch(session), votes=2)
    [vote, _] = session.scalars(select(Vote).where(Vote.example_id == example.id).order_by(Vote.id))
    clock.advance(timedelta(hours=1))
    [payout] = plan(session, clock.now())

    withdraw_votes(session, vote.assignment, clock.now())
    assert example.verdict is Verdict.PENDING
    follow(session, clock.now())
    assert (payout.state, promised(session)) == (PayoutState.APPROVED, 30)

    override(session, example, label=None, reason="It breaks a rule.", now=clock.now())
    follow(session, clock.now())
    assert (payout.state, promised(session)) == (PayoutState.NOT_DUE, 0)


def test_what_was_not_promised_before_a_vote_was_withdrawn_is_not_planned(session: Session, clock: FixedClock) -> None:
    example = verified_example(session, batch=factories.make_batch(session), votes=2)
    [vote, _] = session.scalars(select(Vote).where(Vote.example_id == example.id).order_by(Vote.id))
    withdraw_votes(session, vote.assignment, clock.now())

    assert plan(session, clock.now()) == []
