"""The outbox: a row is claimed by one, marked by whoever paid it, and booked once."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.states import Moderation, Verdict
from payments import payouts
from payments.models import LedgerTransaction, Payout, PayoutState, Posting
from tests import factories
from tests.payments.builders import plan, verified_example
from tests.payments.senders import ENDPOINT


def promised(session: Session) -> int:
    """The cents that are promised and not paid."""
    found = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith("promised:")))
    return int(found or 0)


def test_a_paid_bonus_stays_paid_whatever_becomes_of_its_example(session: Session, clock: FixedClock) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    [payout] = plan(session, clock.now())
    [row] = payouts.waiting(session, ENDPOINT)
    order = payouts.claim(session, row, clock.now())
    assert order is not None
    payouts.mark_sent(session, order, clock.now())

    example.verdict, example.moderation = Verdict.INVALID, Moderation.UPHELD
    session.flush()
    plan(session, clock.now())

    session.refresh(payout)
    assert payout.state is PayoutState.SENT
    assert promised(session) == 0


def test_a_row_is_claimed_by_one_of_two_that_listed_it(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session))
    plan(session, clock.now())
    [row] = payouts.waiting(session, ENDPOINT)

    first = payouts.claim(session, row, clock.now())
    second = payouts.claim(session, row, clock.now())

    assert first is not None
    assert not first.unsure
    assert second is None


def test_a_lost_claim_can_not_fail_the_row_of_the_one_that_took_it(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session))
    [payout] = plan(session, clock.now())
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
    plan(session, clock.now())
    slow = payouts.claim(session, payouts.waiting(session, ENDPOINT)[0], clock.now())
    fast = payouts.claim(session, payouts.waiting(session, ENDPOINT)[0], clock.now())
    assert slow is not None
    assert fast is not None

    outcomes = [payouts.mark_sent(session, one, clock.now()) for one in (slow, fast)]

    assert outcomes == [True, False]
    assert session.scalar(select(func.count()).where(LedgerTransaction.key.startswith("bonus:"))) == 1


def test_rows_of_another_marketplace_are_left_alone(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session, endpoint="https://other.example"))
    plan(session, clock.now(), endpoint="https://other.example")

    assert payouts.waiting(session, ENDPOINT) == []
    assert len(payouts.waiting(session, "https://other.example")) == 1


def test_a_token_counts_as_forgotten_an_hour_before_the_marketplace_forgets_it(
    session: Session, clock: FixedClock
) -> None:
    verified_example(session, batch=factories.make_batch(session))
    plan(session, clock.now())
    order = payouts.claim(session, payouts.waiting(session, ENDPOINT)[0], clock.now())
    assert order is not None

    assert not payouts.is_token_forgotten(order, clock.now() + timedelta(hours=22, minutes=59))
    assert payouts.is_token_forgotten(order, clock.now() + timedelta(hours=23))


def test_a_payment_heard_of_after_its_promise_was_withdrawn_leaves_nothing_promised(
    session: Session, clock: FixedClock
) -> None:
    example = verified_example(session, batch=factories.make_batch(session))
    plan(session, clock.now())
    [row] = payouts.waiting(session, ENDPOINT)
    slow = payouts.claim(session, row, clock.now())
    # Another process takes the row over and is refused, while the answer to the first one is on its way.
    [row] = payouts.waiting(session, ENDPOINT)
    quick = payouts.claim(session, row, clock.now())
    assert slow is not None
    assert quick is not None
    payouts.put_back(session, quick)
    example.moderation = Moderation.UPHELD
    plan(session, clock.now())
    assert promised(session) == 0

    assert payouts.mark_sent(session, slow, clock.now())

    assert promised(session) == 0
    assert session.scalars(select(Payout)).one().state is PayoutState.SENT
