"""Any part of dynahit can owe a bonus: once for each rule and subject, within budgets, paid when the work is in."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from hits.models import Assignment
from hits.money import usd
from hits.states import AssignmentState
from payments import budgets
from payments.errors import InvalidObligation
from payments.models import BudgetScope, Payout, PayoutState, Posting, Reservation
from payments.obligations import owe, withdraw
from tests import factories
from tests.payments.builders import plan


def promised(session: Session) -> int:
    found = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith("promised:")))
    return int(found or 0)


def assignment(session: Session, state: AssignmentState = AssignmentState.APPROVED) -> Assignment:
    return factories.make_assignment(session, hit=factories.make_hit(session), state=state)


def owed(session: Session, clock: FixedClock, row: Assignment, **changes: Any) -> Payout | None:
    values: dict[str, Any] = {
        "rule": "wage_topup",
        "subject": f"assignment:{row.id}",
        "round_id": None,
        "worker_id": row.worker_id,
        "assignment_id": row.id,
        "amount": usd("0.40"),
        "reason": "Your pay is lifted to the stated wage: $0.40.",
    }
    return owe(session, **{**values, **changes}, now=clock.now())


def test_what_is_owed_is_planned_promised_and_reserved_with_its_sentence(session: Session, clock: FixedClock) -> None:
    row = assignment(session)

    payout = owed(session, clock, row)

    assert payout is not None
    assert (payout.state, payout.amount, payout.kept) == (PayoutState.PLANNED, usd("0.40"), usd("0.48"))
    assert payout.reason == f"Your pay is lifted to the stated wage: $0.40. {payout.reference}"
    assert (payout.round_id, payout.batch_id) == (row.hit.batch.round_id, row.hit.batch_id)
    assert promised(session) == 40
    assert session.scalars(select(Reservation)).one().promised == usd("0.48")


def test_the_same_rule_and_subject_is_owed_once_whatever_the_amount(session: Session, clock: FixedClock) -> None:
    row = assignment(session)
    owed(session, clock, row)

    assert owed(session, clock, row, amount=usd("9.00")) is None
    assert owed(session, clock, row, rule="gold_accuracy") is not None
    assert promised(session) == 80


def test_many_at_once_owe_it_once(session_factory: sessionmaker[Session], clock: FixedClock) -> None:
    with session_factory() as session:
        row_id = assignment(session).id
        session.commit()
    barrier = threading.Barrier(4)
    found: list[bool] = []

    def run() -> None:
        with session_factory() as session:
            row = session.get_one(Assignment, row_id)
            session.commit()
            barrier.wait(timeout=60)
            found.append(owed(session, clock, row) is not None)
            session.commit()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with session_factory() as session:
        assert sorted(found) == [False, False, False, True]
        assert promised(session) == 40


def test_it_waits_for_the_work_to_be_handed_in(session: Session, clock: FixedClock) -> None:
    row = assignment(session, AssignmentState.SAVED)
    payout = owed(session, clock, row)
    assert payout is not None
    plan(session, clock.now())
    before = payout.state

    row.state = AssignmentState.SUBMITTED
    session.flush()
    plan(session, clock.now())

    session.refresh(payout)
    assert (before, payout.state) == (PayoutState.NOT_SUBMITTED, PayoutState.APPROVED)


def test_rejected_work_earns_nothing_and_takes_back_what_was_owed(session: Session, clock: FixedClock) -> None:
    row = assignment(session, AssignmentState.SUBMITTED)
    payout = owed(session, clock, row)
    assert payout is not None

    row.state = AssignmentState.REJECTED
    session.flush()
    plan(session, clock.now())

    session.refresh(payout)
    assert payout.state is PayoutState.NOT_DUE
    assert promised(session) == 0
    assert owed(session, clock, row, subject="assignment:other") is None
    # A rejection that was undone gives it again.
    row.state = AssignmentState.APPROVED
    session.flush()
    plan(session, clock.now())
    session.refresh(payout)
    assert (payout.state, promised(session)) == (PayoutState.APPROVED, 40)


def test_without_room_in_a_budget_it_waits_and_is_promised_to_nobody(session: Session, clock: FixedClock) -> None:
    budgets.set_budget(session, BudgetScope.PROJECT, "", usd("0.47"), now=clock.now())

    payout = owed(session, clock, assignment(session))

    assert payout is not None
    assert payout.state is PayoutState.NO_BUDGET
    assert payout.cause is not None
    assert "budget of the project is $0.47" in payout.cause
    assert promised(session) == 0


@pytest.mark.parametrize("state", [AssignmentState.APPROVED, AssignmentState.SAVED])
def test_what_is_withdrawn_stays_withdrawn(session: Session, clock: FixedClock, state: AssignmentState) -> None:
    row = assignment(session, state)
    payout = owed(session, clock, row)
    assert payout is not None
    plan(session, clock.now())
    subject = payout.subject

    first = withdraw(session, rule="wage_topup", subject=subject, now=clock.now(), cause="The times were wrong.")
    again = withdraw(session, rule="wage_topup", subject=subject, now=clock.now(), cause="The times were wrong.")
    row.state = AssignmentState.APPROVED
    session.flush()
    plan(session, clock.now())

    session.refresh(payout)
    assert (first, again) == (True, False)
    assert (payout.state, payout.cause, promised(session)) == (PayoutState.NOT_DUE, "The times were wrong.", 0)


def test_nothing_is_withdrawn_that_is_not_owed(session: Session, clock: FixedClock) -> None:
    assert not withdraw(session, rule="wage_topup", subject="assignment:1", now=clock.now(), cause="none")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"amount": Decimal("0.00")}, r"\$0\.00 can't be owed"),
        ({"amount": Decimal("10000.01")}, r"\$10,000\.01 can't be owed"),
        ({"rule": "Wage"}, "no rule"),
        ({"subject": "assignment 7"}, "no rule and subject"),
        ({"reason": "  "}, "0 characters"),
        ({"reason": "x" * 481}, "481 characters"),
        ({"assignment_id": 999_999}, "not one of this worker's"),
        ({"round_id": 999_999}, "belongs to round"),
    ],
)
def test_what_can_not_be_owed_is_refused(
    session: Session, clock: FixedClock, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidObligation, match=words):
        owed(session, clock, assignment(session), **changes)


def test_it_can_not_be_owed_to_another_worker(session: Session, clock: FixedClock) -> None:
    with pytest.raises(InvalidObligation, match="not one of this worker's"):
        owed(session, clock, assignment(session), worker_id=factories.make_worker(session).id)
