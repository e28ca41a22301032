"""Approvals: all or none, by people who may, for what they saw; every refusal is kept."""

from __future__ import annotations

import logging
import threading

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry, StaffUser
from app.operations.approve_payouts import approve_payouts, check_password, payouts_to_approve
from app.operations.plan_payouts import plan_payouts
from app.operations.settle import settle
from hits.clock import FixedClock
from hits.errors import Refused
from hits.money import usd
from payments.errors import ApprovalRefused
from payments.models import Payout, PayoutApproval, PayoutState
from tests import factories
from tests.payments.builders import verified_example
from tests.payments.senders import ENDPOINT, BonusDesk

LIMIT = usd("1.00")
PASSWORD = "a password of somebody's"


def owe(session: Session, clock: FixedClock, count: int = 2) -> None:
    """Owe bonuses of $5.00, and let ann, ben and cy be people who may approve; eve is of another role, old is gone."""
    batch = factories.make_batch(session, bonus=usd("5.00"))
    for _ in range(count):
        verified_example(session, batch=batch)
    people = (("ann", "finance"), ("ben", "finance"), ("cy", "finance"), ("eve", "requester"), ("old", "finance"))
    for name, role in people:
        user = StaffUser(name=name, roles=[role], active=name != "old", created_at=clock.now())
        user.password_hash = ""
        session.add(user)
    session.commit()
    plan_payouts(session, clock, endpoint=ENDPOINT, approval_limit=LIMIT)


def shown(session: Session, clock: FixedClock) -> dict[str, str]:
    found = payouts_to_approve(session, clock, endpoint=ENDPOINT, limit=LIMIT)
    session.rollback()
    return {one.reference: one.digest for one in found}


def states(session: Session) -> set[PayoutState]:
    session.expire_all()
    found = set(session.scalars(select(Payout.state)))
    session.commit()
    return found


def test_nothing_above_the_limit_is_paid_before_two_people_agree(session: Session, clock: FixedClock) -> None:
    owe(session, clock)
    desk = BonusDesk(clock, session=session)

    for name, paid in (("ann", 0), ("ben", 2)):
        settle(session, desk, clock, approval_limit=LIMIT)
        approve_payouts(session, clock, shown(session, clock), by=name, endpoint=ENDPOINT, limit=LIMIT)
        settle(session, desk, clock, approval_limit=LIMIT)
        assert len(desk.paid) == paid

    assert states(session) == {PayoutState.CONFIRMED}


def test_one_that_is_refused_refuses_all(session: Session, clock: FixedClock, caplog: pytest.LogCaptureFixture) -> None:
    owe(session, clock)
    given = shown(session, clock)
    forged = {**given, max(given): "0" * 64}

    with caplog.at_level(logging.WARNING), pytest.raises(ApprovalRefused):
        approve_payouts(session, clock, forged, by="ann", endpoint=ENDPOINT, limit=LIMIT)

    assert session.scalar(select(func.count()).select_from(PayoutApproval)) == 0
    [entry] = session.scalars(select(AuditEntry)).all()
    assert (entry.action, entry.staff_name) == ("payout.approve.refused", "ann")
    assert entry.subject == f"payout {max(given)}"
    assert f"payout {max(given)}" in caplog.text


def test_a_replayed_approval_is_refused_and_changes_nothing(session: Session, clock: FixedClock) -> None:
    owe(session, clock, 1)
    given = shown(session, clock)
    approve_payouts(session, clock, given, by="ann", endpoint=ENDPOINT, limit=LIMIT)

    with pytest.raises(ApprovalRefused, match="ann has approved"):
        approve_payouts(session, clock, given, by="ann", endpoint=ENDPOINT, limit=LIMIT)
    approve_payouts(session, clock, given, by="ben", endpoint=ENDPOINT, limit=LIMIT)
    with pytest.raises(ApprovalRefused, match="does not wait"):
        approve_payouts(session, clock, given, by="cy", endpoint=ENDPOINT, limit=LIMIT)

    assert states(session) == {PayoutState.APPROVED}
    actions = session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all()
    assert actions == ["payout.approve", "payout.approve.refused", "payout.approve", "payout.approve.refused"]


@pytest.mark.parametrize("name", ["eve", "old", "nobody", ""])
def test_who_may_not_is_refused(session: Session, clock: FixedClock, name: str) -> None:
    owe(session, clock, 1)

    with pytest.raises(ApprovalRefused, match="nobody with the role finance"):
        approve_payouts(session, clock, shown(session, clock), by=name, endpoint=ENDPOINT, limit=LIMIT)

    assert session.scalar(select(func.count()).select_from(PayoutApproval)) == 0


def test_payouts_of_another_marketplace_are_not_approved_here(session: Session, clock: FixedClock) -> None:
    owe(session, clock, 1)

    with pytest.raises(ApprovalRefused, match="this instance talks to"):
        approve_payouts(session, clock, shown(session, clock), by="ann", endpoint="https://other", limit=LIMIT)


def test_two_clicks_of_one_person_at_once_are_one_approval(
    session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    with session_factory() as session:
        owe(session, clock, 1)
        given = shown(session, clock)
    barrier = threading.Barrier(2)
    outcomes: list[str] = []

    def click() -> None:
        with session_factory() as session:
            barrier.wait(timeout=60)
            try:
                approve_payouts(session, clock, given, by="ann", endpoint=ENDPOINT, limit=LIMIT)
                outcomes.append("approved")
            except ApprovalRefused:
                outcomes.append("refused")

    threads = [threading.Thread(target=click) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with session_factory() as session:
        assert sorted(outcomes) == ["approved", "refused"]
        assert states(session) == {PayoutState.PLANNED}


def test_a_password_is_checked_and_a_wrong_one_is_kept(session: Session, clock: FixedClock) -> None:
    owe(session, clock, 1)
    user = session.scalars(select(StaffUser).where(StaffUser.name == "ann")).one()
    user.set_password(PASSWORD)
    session.commit()

    check_password(session, clock, "ann", PASSWORD)
    for name, password in (("ann", "a guess"), ("nobody", PASSWORD)):
        with pytest.raises(Refused, match="Nothing was approved"):
            check_password(session, clock, name, password)

    entries = session.scalars(select(AuditEntry).order_by(AuditEntry.id)).all()
    assert [(entry.staff_name, entry.action) for entry in entries] == [
        ("ann", "payout.approve.refused"),
        ("nobody", "payout.approve.refused"),
    ]
    assert "guess" not in str([entry.detail for entry in entries])
