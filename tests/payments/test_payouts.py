"""Planning: one row for each bonus that is owed, none for those that are not, and rows that follow their example."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from hits.models import Assignment
from hits.money import usd
from hits.states import AssignmentState, Moderation, Verdict
from payments import payouts
from payments.models import LedgerTransaction, Payout, PayoutState, Posting
from tests import factories
from tests.payments.builders import assignment_of, fooling_example, verified_example
from tests.payments.senders import ENDPOINT


def promised(session: Session) -> int:
    """The cents that are promised and not paid."""
    found = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith("promised:")))
    return int(found or 0)


def test_a_verified_fooling_example_earns_one_bonus(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    example = verified_example(session, batch=batch, votes=2)

    [payout] = payouts.plan_bonuses(session, clock.now())

    assert (payout.example_id, payout.amount, payout.state) == (example.id, usd("0.30"), PayoutState.PLANNED)
    assert payout.worker_id == example.writer_id
    assert payout.endpoint == ENDPOINT
    assert len(payout.request_token) <= 64
    assert payout.reason.endswith(payout.reference)
    assert "2 readers agreed: $0.30" in payout.reason
    assert promised(session) == 30


def test_planning_again_changes_nothing(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session))
    payouts.plan_bonuses(session, clock.now())
    session.commit()

    assert payouts.plan_bonuses(session, clock.now()) == []
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

        assert payouts.plan_bonuses(session, clock.now()) == [], (fields, example)
    assert promised(session) == 0


def test_a_batch_without_a_bonus_owes_none(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session, bonus=usd(0)))

    assert payouts.plan_bonuses(session, clock.now()) == []


def test_the_bonus_goes_to_the_assignment_that_was_sent_in_when_the_first_was_returned(
    session: Session, clock: FixedClock
) -> None:
    example = verified_example(session, batch=factories.make_batch(session), state=AssignmentState.OPENED)
    returned = assignment_of(session, example)
    second = factories.make_assignment(
        session, hit=returned.hit, worker=returned.worker, state=AssignmentState.SUBMITTED
    )

    [payout] = payouts.plan_bonuses(session, clock.now())

    assert payout.assignment_id == second.id


def test_two_planners_at_once_plan_it_once(session_factory: sessionmaker[Session], clock: FixedClock) -> None:
    with session_factory() as session:
        batch = factories.make_batch(session)
        for _ in range(5):
            verified_example(session, batch=batch)
        session.commit()
    barrier = threading.Barrier(2)
    found: list[int] = []

    def plan() -> None:
        with session_factory() as session:
            barrier.wait()
            found.append(len(payouts.plan_bonuses(session, clock.now())))
            session.commit()

    threads = [threading.Thread(target=plan) for _ in range(2)]
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
    [payout] = payouts.plan_bonuses(session, clock.now())

    example.verdict = Verdict.FLAGGED
    session.flush()
    payouts.plan_bonuses(session, clock.now())
    held = payout.state
    example.verdict, example.moderation = Verdict.VALID_AND_MODEL_WRONG, Moderation.DISMISSED
    session.flush()
    payouts.plan_bonuses(session, clock.now())

    assert (held, payout.state) == (PayoutState.HELD, PayoutState.PLANNED)
    assert promised(session) == 30


def test_an_upheld_flag_withdraws_the_promise_and_a_change_of_mind_gives_it_again(
    session: Session, clock: FixedClock
) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    [payout] = payouts.plan_bonuses(session, clock.now())
    outcomes = []

    for verdict, moderation in [
        (Verdict.INVALID, Moderation.UPHELD),
        (Verdict.VALID_AND_MODEL_WRONG, Moderation.DISMISSED),
        (Verdict.INVALID, Moderation.UPHELD),
    ]:
        example.verdict, example.moderation = verdict, moderation
        session.flush()
        payouts.plan_bonuses(session, clock.now())
        payouts.plan_bonuses(session, clock.now())
        outcomes.append((payout.state, promised(session)))

    assert outcomes == [(PayoutState.NOT_DUE, 0), (PayoutState.PLANNED, 30), (PayoutState.NOT_DUE, 0)]


def test_a_paid_bonus_stays_paid_whatever_becomes_of_its_example(session: Session, clock: FixedClock) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    [payout] = payouts.plan_bonuses(session, clock.now())
    [row] = payouts.waiting(session, ENDPOINT)
    order = payouts.claim(session, row, clock.now())
    assert order is not None
    payouts.mark_sent(session, order, clock.now())

    example.verdict, example.moderation = Verdict.INVALID, Moderation.UPHELD
    session.flush()
    payouts.plan_bonuses(session, clock.now())

    session.refresh(payout)
    assert payout.state is PayoutState.SENT
    assert promised(session) == 0


def test_a_row_is_claimed_by_one_of_two_that_listed_it(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session))
    payouts.plan_bonuses(session, clock.now())
    [row] = payouts.waiting(session, ENDPOINT)

    first = payouts.claim(session, row, clock.now())
    second = payouts.claim(session, row, clock.now())

    assert first is not None
    assert not first.unsure
    assert second is None


def test_a_lost_claim_can_not_fail_the_row_of_the_one_that_took_it(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session))
    [payout] = payouts.plan_bonuses(session, clock.now())
    slow = payouts.claim(session, payouts.waiting(session, ENDPOINT)[0], clock.now())
    fast = payouts.claim(session, payouts.waiting(session, ENDPOINT)[0], clock.now())
    assert slow is not None
    assert fast is not None

    payouts.mark_failed(session, slow, "refused")

    session.refresh(payout)
    assert fast.unsure
    assert payout.state is PayoutState.SENDING


def test_money_that_moved_is_booked_once_whoever_reports_it(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session))
    payouts.plan_bonuses(session, clock.now())
    slow = payouts.claim(session, payouts.waiting(session, ENDPOINT)[0], clock.now())
    fast = payouts.claim(session, payouts.waiting(session, ENDPOINT)[0], clock.now())
    assert slow is not None
    assert fast is not None

    outcomes = [payouts.mark_sent(session, one, clock.now()) for one in (slow, fast)]

    assert outcomes == [True, False]
    assert session.scalar(select(func.count()).where(LedgerTransaction.key.startswith("bonus:"))) == 1


def test_rows_of_another_marketplace_are_left_alone(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session, endpoint="https://other.example"))
    payouts.plan_bonuses(session, clock.now())

    assert payouts.waiting(session, ENDPOINT) == []
    assert len(payouts.waiting(session, "https://other.example")) == 1


def test_a_token_counts_as_forgotten_an_hour_before_the_marketplace_forgets_it(
    session: Session, clock: FixedClock
) -> None:
    verified_example(session, batch=factories.make_batch(session))
    payouts.plan_bonuses(session, clock.now())
    order = payouts.claim(session, payouts.waiting(session, ENDPOINT)[0], clock.now())
    assert order is not None

    assert not payouts.is_token_forgotten(order, clock.now() + timedelta(hours=22, minutes=59))
    assert payouts.is_token_forgotten(order, clock.now() + timedelta(hours=23))


def test_pending_examples_are_not_planned(session: Session, clock: FixedClock) -> None:
    fooling_example(session, batch=factories.make_batch(session))

    assert payouts.due_bonuses(session) == []
    assert session.scalar(select(func.count()).select_from(Assignment)) == 1


def test_a_payment_heard_of_after_its_promise_was_withdrawn_leaves_nothing_promised(
    session: Session, clock: FixedClock
) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    payouts.plan_bonuses(session, clock.now())
    [row] = payouts.waiting(session, ENDPOINT)
    slow = payouts.claim(session, row, clock.now())
    # Another process takes the row over and is refused, while the answer to the first one is on its way.
    [row] = payouts.waiting(session, ENDPOINT)
    quick = payouts.claim(session, row, clock.now())
    assert slow is not None
    assert quick is not None
    payouts.put_back(session, quick)
    example.moderation = Moderation.UPHELD
    payouts.plan_bonuses(session, clock.now())
    assert promised(session) == 0

    assert payouts.mark_sent(session, slow, clock.now())

    assert promised(session) == 0
    assert session.scalars(select(Payout)).one().state is PayoutState.SENT
