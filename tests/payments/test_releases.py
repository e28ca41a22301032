"""What closed batches can't need any more goes back to the budgets, and nothing that they can."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.arms import Arm, draw_arm, set_arms
from hits.attempts import give_up
from hits.clock import FixedClock
from hits.models import Hit, HitBatch
from hits.money import usd
from hits.states import AssignmentState, AttemptState, HitState, Verdict
from payments import budgets
from payments.budgets import reserve
from payments.ledger import record_reward
from payments.models import BudgetScope, LedgerTransaction, Reservation, TransactionKind
from payments.releases import UNDO, release_unused
from tests import factories
from tests.payments.builders import assignment_of, fooling_example, plan, verified_example


def launched(session: Session, clock: FixedClock) -> tuple[HitBatch, Reservation]:
    """A batch of $0.30 and $0.30 that has set ten assignments' worst case aside, with $1.00 for validation each."""
    batch = factories.make_batch(session, reward=usd("0.30"), bonus=usd("0.30"))
    reservation = reserve(
        session,
        batch,
        usd("17.20"),
        now=clock.now(),
        bonuses=usd("3.60"),
        validation=usd("10.00"),
        validation_each=usd("1.00"),
    )
    return batch, reservation


def close(session: Session, batch: HitBatch) -> None:
    for hit in session.scalars(select(Hit).where(Hit.batch_id == batch.id)):
        hit.state = HitState.CLOSED
    session.flush()


def committed(session: Session) -> Decimal:
    return budgets.committed(session, BudgetScope.PROJECT, "")


def test_nothing_is_given_back_while_a_hit_is_open(session: Session, clock: FixedClock) -> None:
    batch, reservation = launched(session, clock)
    factories.make_hit(session, batch=batch)

    assert release_unused(session, clock.now()) == 0
    assert reservation.released == 0


def test_a_batch_that_nobody_took_gives_all_back_and_is_closed(session: Session, clock: FixedClock) -> None:
    batch, reservation = launched(session, clock)
    factories.make_hit(session, batch=batch)
    close(session, batch)

    assert release_unused(session, clock.now()) == 1
    again = release_unused(session, clock.now())

    assert (reservation.open, reservation.closed_at, again, committed(session)) == (usd(0), clock.now(), 0, usd(0))


def test_what_is_still_undecided_keeps_its_bonus_and_its_validation(session: Session, clock: FixedClock) -> None:
    batch, reservation = launched(session, clock)
    pending = fooling_example(session, batch=batch)
    record_reward(session, assignment_of(session, pending), clock.now())
    close(session, batch)

    release_unused(session, clock.now())
    kept = (reservation.free, reservation.bonuses, reservation.validation, reservation.closed_at)
    pending.verdict, pending.final_label = Verdict.INVALID, "positive"
    session.flush()
    release_unused(session, clock.now())

    assert kept == (usd(0), usd("0.36"), usd("1.00"), None)
    assert (reservation.open, reservation.spent) == (usd(0), usd("0.36"))
    assert reservation.closed_at is not None


def test_a_text_written_unseen_that_no_model_has_answered_keeps_its_bonus_until_it_is_left_out(
    session: Session, clock: FixedClock
) -> None:
    batch, reservation = launched(session, clock)
    set_arms(session, batch.round, [Arm("control", 1, model_in_loop=False)], seed=0, by="ada", now=clock.now())
    done = factories.make_assignment(
        session, hit=factories.make_hit(session, batch=batch), state=AssignmentState.APPROVED
    )
    draw_arm(session, batch.round, done.worker_id, clock.now())
    text = factories.make_attempt(session, assignment=done, state=AttemptState.UNANSWERED, failure="too busy")
    record_reward(session, done, clock.now())
    close(session, batch)

    release_unused(session, clock.now())
    kept = (reservation.free, reservation.bonuses, reservation.validation, reservation.closed_at)
    give_up(session, text, clock.now())
    release_unused(session, clock.now())

    assert kept == (usd(0), usd("0.36"), usd("1.00"), None)
    assert (reservation.open, reservation.closed_at) == (usd(0), clock.now())


def test_a_promise_that_is_not_paid_keeps_its_money(session: Session, clock: FixedClock) -> None:
    batch, reservation = launched(session, clock)
    example = verified_example(session, batch=batch)
    record_reward(session, assignment_of(session, example), clock.now())
    plan(session, clock.now())
    close(session, batch)

    release_unused(session, clock.now())

    assert (reservation.open, reservation.promised, reservation.closed_at) == (usd("0.36"), usd("0.36"), None)


def test_a_rejection_that_can_be_undone_keeps_the_reward_for_a_month(session: Session, clock: FixedClock) -> None:
    batch, reservation = launched(session, clock)
    hit = factories.make_hit(session, batch=batch)
    factories.make_assignment(session, hit=hit, state=AssignmentState.REJECTED, rejected_at=clock.now())
    close(session, batch)

    release_unused(session, clock.now())
    first = reservation.open
    clock.advance(UNDO + timedelta(hours=1))
    release_unused(session, clock.now())

    assert (first, reservation.open) == (usd("0.36"), usd(0))


def test_small_changes_in_between_are_not_booked_one_by_one(session: Session, clock: FixedClock) -> None:
    batch, _ = launched(session, clock)
    examples = [fooling_example(session, batch=batch) for _ in range(5)]
    for example in examples:
        record_reward(session, assignment_of(session, example), clock.now())
    close(session, batch)

    for example in examples:
        release_unused(session, clock.now())
        example.verdict = Verdict.INVALID
        session.flush()
    release_unused(session, clock.now())

    kind = LedgerTransaction.kind == TransactionKind.RELEASE
    assert session.scalar(select(func.count()).where(kind)) == 2
    assert committed(session) == 5 * usd("0.36")


def test_streak_money_stays_while_a_streak_may_be_completed(session: Session, clock: FixedClock) -> None:
    batch, reservation = launched(session, clock)
    batch.extras = {"streak_length": 2, "streak_bonus": "1.00", "sure_percent": 0, "sure_bonus": "0.00"}
    pending = fooling_example(session, batch=batch)
    record_reward(session, assignment_of(session, pending), clock.now())
    close(session, batch)

    release_unused(session, clock.now())
    before = reservation.bonuses
    pending.verdict = Verdict.INVALID
    session.flush()
    release_unused(session, clock.now())

    assert (before, reservation.bonuses) == (usd("3.60"), usd(0))
