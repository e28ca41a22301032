"""What is set aside can't be promised or spent beyond, and the database says so too."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.money import ZERO, from_cents, usd
from hits.states import AssignmentState
from payments import reservations
from payments.budgets import reserve
from payments.ledger import record_reward
from payments.models import Payout, Reservation
from tests import factories


def test_a_reward_is_spent_out_of_what_its_batch_set_aside(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, reward=usd("0.30"))
    hit = factories.make_hit(session, batch=batch)
    reservation = reserve(session, batch, usd("1.00"), now=clock.now())
    assignment = factories.make_assignment(session, hit=hit, state=AssignmentState.APPROVED)

    booked = record_reward(session, assignment, clock.now())
    record_reward(session, assignment, clock.now())

    assert (reservation.spent, reservation.free) == (usd("0.36"), usd("0.64"))
    lines = {line.account: line.cents for line in booked.postings}
    assert (lines["reserved:sentiment/1:"], lines["reservations:sentiment/1:"]) == (-36, 36)


def test_money_that_has_left_is_booked_though_nobody_set_it_aside(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, reward=usd("0.30"))
    hit = factories.make_hit(session, batch=batch)
    reservation = reserve(session, batch, usd("0.30"), now=clock.now(), bonuses=usd("0.20"))
    assignment = factories.make_assignment(session, hit=hit, state=AssignmentState.APPROVED)

    booked = record_reward(session, assignment, clock.now())

    # $0.10 were there for rewards; what is kept for bonuses is not taken.
    assert (reservation.held, reservation.spent, reservation.bonuses) == (usd("0.56"), usd("0.36"), usd("0.20"))
    assert {line.account: line.cents for line in booked.postings}["reserved:sentiment/1:"] == -10


@pytest.mark.parametrize(
    "change",
    [
        {"promised": usd("1.01")},
        {"spent": usd("0.50"), "released": usd("0.51")},
        {"bonuses": usd("0.60"), "validation": usd("0.41")},
        {"moved_in": usd("1.01")},
    ],
)
def test_the_database_refuses_more_than_is_held(session: Session, clock: FixedClock, change: dict[str, object]) -> None:
    reservation = reserve(session, factories.make_batch(session), usd("1.00"), now=clock.now())
    session.commit()
    for name, value in change.items():
        setattr(reservation, name, value)

    with pytest.raises(IntegrityError):
        session.flush()
    session.rollback()


steps = st.lists(st.tuples(st.sampled_from(["keep", "back", "pay", "reward"]), st.integers(0, 300)), max_size=30)


@settings(max_examples=50, deadline=None)
@given(held=st.integers(0, 1000), for_bonuses=st.integers(0, 1000), story=steps)
def test_no_story_spends_or_promises_what_is_not_held(
    held: int, for_bonuses: int, story: list[tuple[str, int]]
) -> None:
    reservation = Reservation(
        held=from_cents(held),
        moved_in=ZERO,
        moved_out=ZERO,
        promised=ZERO,
        spent=ZERO,
        released=ZERO,
        bonuses=from_cents(min(for_bonuses, held)),
        validation=ZERO,
    )
    kept: list[Payout] = []
    paid = grown = 0
    for step, cents in story:
        cost = from_cents(cents)
        if step == "keep" and cost <= reservation.bonuses:
            kept.append(Payout(kept=ZERO))
            reservations.keep(reservation, kept[-1], cost, of_bonuses=cost)
        if step == "back" and kept:
            reservations.give_back(reservation, kept.pop())
        if step == "pay" and kept:
            payout = kept.pop()
            grown += int(reservations.spend(reservation, payout.kept, kept=payout.kept) * 100)
            paid += int(payout.kept * 100)
        if step == "reward":
            grown += int(reservations.spend(reservation, cost) * 100)
            paid += cents

        amounts = (reservation.promised, reservation.spent, reservation.bonuses, reservation.free)
        assert all(amount >= ZERO for amount in amounts)
        assert reservation.promised == sum((one.kept for one in kept), ZERO)
        assert reservation.spent == from_cents(paid)
        assert reservation.held == from_cents(held + grown)
