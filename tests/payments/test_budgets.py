"""Budgets hold: nothing is committed beyond one, however many ask at once, and what is given back may be used again."""

from __future__ import annotations

import threading
from datetime import date, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from hits.models import HitBatch
from hits.money import from_cents, usd
from hits.states import AssignmentState, HitKind, Moderation
from payments import budgets
from payments.budgets import BudgetLine, lines, reserve, reserve_for_validation, set_budget
from payments.errors import InvalidBudget, OverBudget
from payments.models import BudgetScope, LedgerTransaction, Payout, PayoutState, Posting, Reservation, TransactionKind
from tests import factories
from tests.payments.builders import assignment_of, plan, verified_example

TODAY = date(2026, 11, 15)


def booked(session: Session, account: str) -> Decimal:
    cents = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith(account)))
    return from_cents(int(cents or 0))


def committed(session: Session, scope: BudgetScope = BudgetScope.PROJECT, key: str = "") -> Decimal:
    return budgets.committed(session, scope, key)


@pytest.mark.parametrize(
    ("scope", "key"), [(BudgetScope.PROJECT, ""), (BudgetScope.ROUND, "sentiment/1"), (BudgetScope.DAY, "2026-11-15")]
)
def test_what_fits_is_set_aside_and_what_does_not_is_refused_with_the_way_out(
    session: Session, clock: FixedClock, scope: BudgetScope, key: str
) -> None:
    round_ = factories.make_round(session)
    set_budget(session, scope, key, usd("10.00"), now=clock.now())
    reserve(session, factories.make_batch(session, round=round_), usd("6.00"), now=clock.now())

    with pytest.raises(OverBudget, match=r"\$6\.00 of it .* \$4\.00 are left, and this needs \$4\.01") as refusal:
        reserve(session, factories.make_batch(session, round=round_), usd("4.01"), now=clock.now())
    reserve(session, factories.make_batch(session, round=round_), usd("4.00"), now=clock.now())

    assert f"dynahit payments budget set {scope.value}" in str(refusal.value)
    assert committed(session, scope, key) == usd("10.00")
    assert booked(session, "reserved:sentiment/1:") == usd("10.00")
    assert session.scalar(select(func.sum(Posting.cents))) == 0


def test_a_batch_sets_aside_once(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session)
    first = reserve(session, batch, usd("6.00"), now=clock.now())

    again = reserve(session, batch, usd("6.00"), now=clock.now())

    assert again.id == first.id
    assert committed(session) == usd("6.00")


def test_another_round_and_another_day_have_their_own_room(session: Session, clock: FixedClock) -> None:
    first, second = factories.make_round(session), factories.make_round(session, number=2)
    set_budget(session, BudgetScope.ROUND, "sentiment/1", usd("5.00"), now=clock.now())
    set_budget(session, BudgetScope.DAY, "", usd("8.00"), now=clock.now())
    reserve(session, factories.make_batch(session, round=first), usd("5.00"), now=clock.now())

    reserve(session, factories.make_batch(session, round=second), usd("3.00"), now=clock.now())
    with pytest.raises(OverBudget, match="day 2026-11-15"):
        reserve(session, factories.make_batch(session, round=second), usd("0.01"), now=clock.now())
    clock.advance(timedelta(days=1))
    reserve(session, factories.make_batch(session, round=second), usd("8.00"), now=clock.now())

    assert committed(session, BudgetScope.DAY, "2026-11-15") == usd("8.00")
    assert committed(session, BudgetScope.ROUND, "sentiment/2") == usd("11.00")


def test_of_ten_launches_at_once_as_many_as_fit_get_their_money(
    session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    with session_factory() as session:
        round_ = factories.make_round(session)
        batches = [factories.make_batch(session, round=round_).id for _ in range(10)]
        session.commit()
    # The first budget is set while they ask: nothing of it may slip through.
    barrier = threading.Barrier(10)
    outcomes: list[bool] = []

    def run(batch_id: int, is_first: bool) -> None:
        with session_factory() as session:
            if is_first:
                set_budget(session, BudgetScope.PROJECT, "", usd("10.00"), now=clock.now())
                session.commit()
            barrier.wait(timeout=60)
            batch = session.get_one(HitBatch, batch_id)
            try:
                reserve(session, batch, usd("3.00"), now=clock.now())
                session.commit()
                outcomes.append(True)
            except OverBudget:
                session.rollback()
                outcomes.append(False)

    threads = [threading.Thread(target=run, args=(one, place == 0)) for place, one in enumerate(batches)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with session_factory() as session:
        assert sorted(outcomes) == [False] * 7 + [True] * 3
        assert committed(session) == usd("9.00")
        assert booked(session, "reserved:") == usd("9.00")


def test_a_bonus_beyond_its_batch_s_reservation_is_a_new_commitment(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    reserve(session, batch, usd("1.00"), now=clock.now(), bonuses=usd("0.36"))
    set_budget(session, BudgetScope.PROJECT, "", usd("1.36"), now=clock.now())
    for _ in range(3):
        verified_example(session, batch=batch)

    plan(session, clock.now())

    found = session.scalars(select(Payout).order_by(Payout.id)).all()
    assert [one.state for one in found] == [PayoutState.APPROVED, PayoutState.APPROVED, PayoutState.NO_BUDGET]
    assert found[2].cause is not None
    assert "$0.00 are left, and this needs $0.36" in found[2].cause
    reservation = session.scalars(select(Reservation)).one()
    assert (reservation.held, reservation.promised, reservation.bonuses) == (usd("1.36"), usd("0.72"), usd(0))
    assert booked(session, "promised:") == usd("0.60")


def test_a_bonus_without_budget_is_promised_once_there_is_room(session: Session, clock: FixedClock) -> None:
    set_budget(session, BudgetScope.PROJECT, "", usd(0), now=clock.now())
    verified_example(session, batch=factories.make_batch(session, bonus=usd("0.30")))
    plan(session, clock.now())
    before = session.scalars(select(Payout)).one().state

    set_budget(session, BudgetScope.PROJECT, "", usd("0.36"), now=clock.now())
    plan(session, clock.now())
    plan(session, clock.now())

    payout = session.scalars(select(Payout)).one()
    assert (before, payout.state, payout.cause) == (PayoutState.NO_BUDGET, PayoutState.APPROVED, None)
    assert booked(session, "promised:") == usd("0.30")
    assert committed(session) == usd("0.36")


def test_a_withdrawn_promise_gives_its_money_back_to_its_batch(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    example = verified_example(session, batch=batch)
    plan(session, clock.now())

    example.moderation = Moderation.UPHELD
    session.flush()
    plan(session, clock.now())

    reservation = session.scalars(select(Reservation)).one()
    assert (reservation.promised, reservation.bonuses, reservation.open) == (usd(0), usd("0.36"), usd("0.36"))


@pytest.mark.parametrize(
    ("scope", "most", "promised"),
    [
        # Two bonuses of $0.30 on one assignment each; the reward of $0.30 counts for all pay of the worker.
        (BudgetScope.WORKER, "0.90", 1),
        (BudgetScope.WORKER, "1.20", 2),
        (BudgetScope.WORKER_DAY, "0.30", 1),
        (BudgetScope.ASSIGNMENT, "0.29", 0),
        (BudgetScope.ASSIGNMENT, "0.30", 2),
    ],
)
def test_a_cap_defers_what_is_too_much_for_one_person(
    session: Session, clock: FixedClock, scope: BudgetScope, most: str, promised: int
) -> None:
    batch = factories.make_batch(session, reward=usd("0.30"), bonus=usd("0.30"))
    first, second = verified_example(session, batch=batch), verified_example(session, batch=batch)
    assignment_of(session, second).worker_id = first.writer_id
    second.attempt.worker_id = second.writer_id = first.writer_id
    verified_example(session, batch=factories.make_batch(session, round=batch.round, bonus=usd("0.10")))
    set_budget(session, scope, "", usd(most), now=clock.now())

    plan(session, clock.now())

    states = [row.state for row in session.scalars(select(Payout).where(Payout.worker_id == first.writer_id))]
    assert states.count(PayoutState.APPROVED) == promised
    assert states.count(PayoutState.NO_BUDGET) == 2 - promised


def test_the_cap_on_all_pay_counts_a_compensation_once(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, reward=usd("0.30"), bonus=usd("0.30"))
    example = verified_example(session, batch=batch)
    own = factories.make_batch(session, round=batch.round, kind=HitKind.COMPENSATION, reward=usd("0.50"), bonus=usd(0))
    factories.make_assignment(
        session,
        hit=factories.make_hit(session, batch=own),
        worker_id=example.writer_id,
        state=AssignmentState.APPROVED,
    )
    [payout] = plan(session, clock.now())
    payout.rule, payout.subject, payout.example_id = "compensation", "assignment:0", None
    payout.amount, payout.state = usd("0.50"), PayoutState.COMPENSATED
    # The reward, the compensation, and room for just one bonus.
    set_budget(session, BudgetScope.WORKER, "", usd("1.10"), now=clock.now())

    [bonus] = plan(session, clock.now())

    assert bonus.state is PayoutState.APPROVED


def test_a_cap_by_day_lets_the_rest_go_the_next_day(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, bonus=usd("0.30"))
    first, second = verified_example(session, batch=batch), verified_example(session, batch=batch)
    assignment_of(session, second).worker_id = first.writer_id
    second.attempt.worker_id = second.writer_id = first.writer_id
    set_budget(session, BudgetScope.WORKER_DAY, "", usd("0.30"), now=clock.now())
    plan(session, clock.now())

    clock.advance(timedelta(days=1))
    plan(session, clock.now())

    assert [row.state for row in session.scalars(select(Payout))] == [PayoutState.APPROVED] * 2


def test_validation_takes_what_the_launch_kept_for_it_before_it_asks_for_more(
    session: Session, clock: FixedClock
) -> None:
    round_ = factories.make_round(session)
    launch = factories.make_batch(session, round=round_)
    reserve(session, launch, usd("5.00"), now=clock.now(), validation=usd("2.00"), validation_each=usd("1.00"))
    set_budget(session, BudgetScope.PROJECT, "", usd("5.50"), now=clock.now())
    first, second, third = (factories.make_batch(session, round=round_, kind=HitKind.VALIDATION) for _ in range(3))

    reserve_for_validation(session, first, usd("1.50"), now=clock.now())
    reserve_for_validation(session, second, usd("1.00"), now=clock.now())
    with pytest.raises(OverBudget):
        reserve_for_validation(session, third, usd("0.01"), now=clock.now())

    assert committed(session) == usd("5.50")
    assert committed(session, BudgetScope.DAY, "2026-11-15") == usd("5.50")
    held = {row.batch_id: row.open for row in session.scalars(select(Reservation))}
    assert held == {launch.id: usd("3.00"), first.id: usd("1.50"), second.id: usd("1.00")}
    assert booked(session, "reserved:") == usd("5.50")


def test_changes_of_a_budget_are_booked_and_the_same_again_is_not(session: Session, clock: FixedClock) -> None:
    for most in ("10.00", "10.00", "4.00"):
        set_budget(session, BudgetScope.PROJECT, "", usd(most), now=clock.now())
    set_budget(session, BudgetScope.PROJECT, "", None, now=clock.now())

    kinds = session.scalars(select(LedgerTransaction.kind)).all()
    assert kinds == [TransactionKind.BUDGET] * 3
    assert booked(session, "budget:project:") == usd(0)


def test_the_list_shows_limits_sums_and_what_is_left(session: Session, clock: FixedClock) -> None:
    set_budget(session, BudgetScope.PROJECT, "", usd("10.00"), now=clock.now())
    set_budget(session, BudgetScope.DAY, "", usd("7.00"), now=clock.now())
    set_budget(session, BudgetScope.ASSIGNMENT, "", usd("2.00"), now=clock.now())
    reserve(session, factories.make_batch(session), usd("6.00"), now=clock.now())

    found = lines(session, TODAY)

    assert found == [
        BudgetLine(BudgetScope.PROJECT, "", usd("10.00"), usd("6.00")),
        BudgetLine(BudgetScope.ROUND, "sentiment/1", None, usd("6.00")),
        BudgetLine(BudgetScope.DAY, "2026-11-15", usd("7.00"), usd("6.00")),
        BudgetLine(BudgetScope.DAY, "", usd("7.00"), None),
        BudgetLine(BudgetScope.ASSIGNMENT, "", usd("2.00"), None),
    ]
    assert [line.left for line in found] == [usd("4.00"), None, usd("1.00"), None, None]


@pytest.mark.parametrize(
    ("scope", "key", "words"),
    [
        (BudgetScope.PROJECT, "x", "no further name"),
        (BudgetScope.ROUND, "", "Name the round"),
        (BudgetScope.ROUND, "sentiment", "no round"),
        (BudgetScope.DAY, "15 November", "no day"),
        (BudgetScope.DAY, "20261115", "no day"),
        (BudgetScope.WORKER, "AWORKERID", "no worker's pseudonym"),
        (BudgetScope.WORKER_DAY, "w-0123456789abcdef", "no worker's pseudonym"),
    ],
)
def test_a_budget_for_something_that_can_not_be_is_refused(
    session: Session, clock: FixedClock, scope: BudgetScope, key: str, words: str
) -> None:
    with pytest.raises(InvalidBudget, match=words):
        set_budget(session, scope, key, usd("1.00"), now=clock.now())


def test_the_reward_of_submitted_work_counts_for_its_worker(session: Session, clock: FixedClock) -> None:
    batch = factories.make_batch(session, reward=usd("0.30"), bonus=usd("0.30"))
    verified_example(session, batch=batch, state=AssignmentState.SUBMITTED)
    set_budget(session, BudgetScope.WORKER, "", usd("0.59"), now=clock.now())

    plan(session, clock.now())

    assert session.scalars(select(Payout.state)).all() == [PayoutState.NO_BUDGET]
