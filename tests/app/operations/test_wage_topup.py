"""A top-up pays what the reward lacked of the stated wage: once for each assignment, upwards only, by a bonus."""

from __future__ import annotations

import threading
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.wage_topup import pay_topup, plan_topup
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound
from hits.states import AssignmentState
from payments.models import Payout
from payments.rules import WAGE_TOPUP
from tests.factories import NOON, make_assignment, make_batch, make_hit

STATED = Decimal("3.00")
ON_SQLITE = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def batch_that_took(session: Session, *seconds: int, state: AssignmentState = AssignmentState.APPROVED) -> int:
    """Work for $0.30 that is said to take 6 minutes."""
    batch = make_batch(session, minutes=6)
    for one in seconds:
        make_assignment(
            session,
            hit=make_hit(session, batch=batch),
            state=state,
            accepted_at=NOON,
            submitted_at=NOON + timedelta(seconds=one),
        )
    session.commit()
    return batch.id


def owed(session: Session) -> dict[str, Decimal]:
    found = {row.subject: row.amount for row in session.scalars(select(Payout).where(Payout.rule == WAGE_TOPUP))}
    session.rollback()
    return found


@ON_SQLITE
def test_a_plan_shows_what_is_missing_and_owes_nothing(session: Session, clock: FixedClock) -> None:
    batch_id = batch_that_took(session, 180, 360, 361, 720)

    plan = plan_topup(session, clock, batch_id)

    assert plan.hourly == STATED
    assert [row.amount for row in plan.rows] == [Decimal("0.01"), Decimal("0.30")]
    assert (plan.total, plan.fees) == (Decimal("0.31"), Decimal("0.07"))
    assert owed(session) == {}
    shown = plan.as_json()
    assert [row["amount"] for row in shown["rows"]] == ["0.01", "0.30"]
    assert all(row["worker"].startswith("w-") for row in shown["rows"])


def test_each_assignment_is_topped_up_once_whatever_is_asked_later(session: Session, clock: FixedClock) -> None:
    batch_id = batch_that_took(session, 360, 720)

    first = pay_topup(session, clock, batch_id, by="robin")
    again = pay_topup(session, clock, batch_id, by="robin")
    higher = pay_topup(session, clock, batch_id, hourly=Decimal("6.00"), by="robin")

    assert [row.amount for row in first.rows] == [Decimal("0.30")]
    assert (again.rows, again.before) == ((), 1)
    # The one that was never topped up now is; the other stays.
    assert [row.amount for row in higher.rows] == [Decimal("0.30")]
    assert sorted(owed(session).values()) == [Decimal("0.30"), Decimal("0.30")]


@ON_SQLITE
def test_the_bonus_says_why_and_names_its_assignment(session: Session, clock: FixedClock) -> None:
    batch_id = batch_that_took(session, 720)

    pay_topup(session, clock, batch_id)

    [payout] = session.scalars(select(Payout))
    assert payout.subject == f"assignment:{payout.assignment_id}"
    assert payout.reason.startswith(
        "This HIT took you about 12 minutes, so that its reward came to less than $3.00 an hour."
    )


@ON_SQLITE
def test_work_left_open_is_paid_like_the_median(session: Session, clock: FixedClock) -> None:
    batch_id = batch_that_took(session, 600, 600, 600, 600, 36_000)

    plan = plan_topup(session, clock, batch_id)

    assert [row.amount for row in plan.rows] == [Decimal("0.20")] * 5
    assert plan.wage.left_open == 1


@ON_SQLITE
def test_work_that_waits_for_its_approval_or_was_rejected_is_not_topped_up(session: Session, clock: FixedClock) -> None:
    waiting = plan_topup(session, clock, batch_that_took(session, 720, state=AssignmentState.SUBMITTED))
    rejected = plan_topup(session, clock, batch_that_took(session, 720, state=AssignmentState.REJECTED))

    assert (waiting.rows, waiting.not_approved) == ((), 1)
    assert (rejected.rows, rejected.not_approved) == ((), 0)


@ON_SQLITE
def test_a_batch_that_nobody_has_and_a_wage_that_is_none_are_refused(session: Session, clock: FixedClock) -> None:
    with pytest.raises(NotFound, match="no batch 999"):
        plan_topup(session, clock, 999)
    batch_id = batch_that_took(session, 720)
    for hourly in ("0.00", "1000.01"):
        with pytest.raises(InvalidInput, match="an hour can't be paid"):
            plan_topup(session, clock, batch_id, hourly=Decimal(hourly))


def test_two_top_ups_in_the_same_moment_owe_each_assignment_once(
    session: Session, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    batch_id = batch_that_took(session, 720, 720, 720)
    together = threading.Barrier(2)
    planned: list[int] = []
    failures: list[BaseException] = []

    def top_up() -> None:
        try:
            with session_factory() as own:
                together.wait(20)
                planned.append(len(pay_topup(own, clock, batch_id).rows))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=top_up) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert failures == []
    assert sorted(planned) == [0, 3]
    assert len(owed(session)) == 3
