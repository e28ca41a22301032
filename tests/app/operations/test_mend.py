"""Mending one finding: the marketplace's word counts, nothing that agrees is touched, and who did it is kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.mend import mend, plan_mend
from hits.clock import FixedClock
from hits.errors import NotFound, Refused
from hits.models import Assignment
from hits.money import usd
from hits.states import AssignmentState
from payments.ledger import booked_balance, record_deposit
from payments.models import LedgerTransaction, Payout, PayoutState
from tests.app.operations.test_reconcile import Loop, loop

__all__ = ["loop"]

# test_reconcile.py mends every fault on both databases.
pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def count(loop: Loop) -> int:
    return loop.session.scalar(select(func.count()).select_from(LedgerTransaction)) or 0


def test_what_agrees_can_not_be_mended_and_nothing_unknown_either(loop: Loop) -> None:
    loop.settle()
    before = count(loop)

    for subject in (loop.payout().reference, loop.approved(), "account", "reserved:sentiment/1"):
        with pytest.raises(Refused, match="There is nothing to mend"):
            mend(loop.session, loop.market.mturk, loop.clock, subject, by="kim")
        loop.session.rollback()
    for subject in ("DH-UNKNOWN", "", "reward:UNKNOWN"):
        with pytest.raises(NotFound, match="`dynahit payments reconcile` names what can be mended"):
            mend(loop.session, loop.market.mturk, loop.clock, subject, by="kim")
        loop.session.rollback()
    for subject, why in (
        (f"reward:{loop.approved()}", "agrees with the outbox"),
        ("deposit:for tests", "is a deposit"),
    ):
        with pytest.raises(Refused, match=why):
            mend(loop.session, loop.market.mturk, loop.clock, subject, by="kim")
        loop.session.rollback()

    assert count(loop) == before
    assert loop.session.scalars(select(AuditEntry).where(AuditEntry.action == "books.mend")).all() == []


def test_a_plan_says_what_would_be_done_and_does_nothing(loop: Loop) -> None:
    loop.settle()
    row = loop.payout()
    loop.session.execute(update(Payout).where(Payout.id == row.id).values(state=PayoutState.APPROVED))
    loop.session.commit()

    plan = plan_mend(loop.session, loop.market.mturk, loop.clock, row.reference)
    loop.session.rollback()

    assert "is taken as the marketplace shows it: $0.30 paid" in plan.what
    assert loop.payout().state is PayoutState.APPROVED


def test_who_mended_what_is_kept(loop: Loop) -> None:
    loop.settle()
    row = loop.payout()
    loop.session.execute(update(Payout).where(Payout.id == row.id).values(state=PayoutState.APPROVED))
    loop.session.commit()

    mend(loop.session, loop.market.mturk, loop.clock, row.reference, by="kim")

    [entry] = loop.session.scalars(select(AuditEntry).where(AuditEntry.action == "books.mend")).all()
    assert (entry.staff_name, entry.subject) == ("kim", row.reference)
    assert loop.payout().state is PayoutState.SENT


def test_a_payment_that_the_list_does_not_show_yet_is_not_sent_anew(loop: Loop) -> None:
    loop.settle()
    row = loop.payout()
    old = row.reference
    loop.session.execute(update(Payout).where(Payout.id == row.id).values(reference="DH-2222222222"))
    loop.session.commit()

    with pytest.raises(Refused, match="less than an hour ago"):
        mend(loop.session, loop.market.mturk, loop.clock, "DH-2222222222", by="kim")
    loop.session.rollback()
    loop.clock.advance(timedelta(hours=1))
    mend(loop.session, loop.market.mturk, loop.clock, "DH-2222222222", by="kim")

    again = loop.payout()
    assert again.state is PayoutState.APPROVED
    assert again.reference not in ("DH-2222222222", old)
    assert again.reason.endswith(f" {again.reference}")


def test_a_payment_to_another_worker_is_left_to_people(loop: Loop) -> None:
    loop.settle()
    rows = loop.session.scalars(select(Payout).order_by(Payout.id)).all()
    others = {row.worker_id for row in rows} - {rows[0].worker_id}
    loop.session.execute(update(Payout).where(Payout.id == rows[0].id).values(worker_id=others.pop()))
    loop.session.commit()

    with pytest.raises(Refused, match="was paid to another worker"):
        mend(loop.session, loop.market.mturk, loop.clock, rows[0].reference, by="kim")


def test_work_that_is_approved_here_alone_is_approved_there(loop: Loop) -> None:
    """The marketplace has it as submitted: its own approval is what was lost."""
    assignment_id = loop.approved()
    row = loop.session.scalars(select(Assignment).where(Assignment.mturk_assignment_id == assignment_id)).one()
    seen = loop.market.mturk.assignment(assignment_id)
    calls: list[str] = []

    class Forgetful:
        endpoint = loop.market.mturk.endpoint
        funds = loop.market.mturk.funds
        assignments = loop.market.mturk.assignments
        bonus_payments = loop.market.mturk.bonus_payments

        def assignment(self, assignment_id: str) -> object:
            return replace(seen, status="Submitted")

        def approve(self, assignment_id: str, feedback: str = "") -> None:
            assert not loop.session.in_transaction()
            calls.append(assignment_id)

    mend(loop.session, Forgetful(), loop.clock, assignment_id, by="kim")  # type: ignore[arg-type]  # answers as a market

    assert calls == [assignment_id]
    assert row.state is AssignmentState.APPROVED


def test_work_that_the_marketplace_shows_as_rejected_is_rejected_here_and_its_reward_reversed(loop: Loop) -> None:
    assignment_id = loop.approved()
    seen = loop.market.mturk.assignment(assignment_id)

    class Rejecting:
        endpoint = loop.market.mturk.endpoint
        bonus_payments = loop.market.mturk.bonus_payments

        def assignment(self, assignment_id: str) -> object:
            return replace(seen, status="Rejected", rejection_time=loop.clock.now())

    mend(loop.session, Rejecting(), loop.clock, assignment_id, by="kim")  # type: ignore[arg-type]  # answers as a market

    row = loop.session.scalars(select(Assignment).where(Assignment.mturk_assignment_id == assignment_id)).one()
    assert row.state is AssignmentState.REJECTED
    assert loop.session.scalar(
        select(LedgerTransaction.id).where(LedgerTransaction.key == f"reversal:reward:{assignment_id}")
    )


def test_a_difference_can_be_booked_however_long_the_marketplaces_address_is(
    session: Session, clock: FixedClock
) -> None:
    endpoint = f"https://{'m' * 192}"
    market = Mock(endpoint=endpoint)
    market.funds.side_effect = lambda: Mock(available=usd("12.00"), on_hold=usd("0.00"))
    record_deposit(session, endpoint, usd("10.00"), reference="start", now=clock.now())
    session.commit()

    mend(session, market, clock, "account", by="kim")
    market.funds.side_effect = lambda: Mock(available=usd("11.00"), on_hold=usd("0.00"))
    mend(session, market, clock, "account", by="kim")

    keys = session.scalars(select(LedgerTransaction.key).order_by(LedgerTransaction.id)).all()
    assert booked_balance(session, endpoint) == usd("11.00")
    assert len(set(keys)) == 3
    assert max(map(len, keys)) <= LedgerTransaction.__table__.c.key.type.length
