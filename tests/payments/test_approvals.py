"""Above the limit two people stand behind a payment, each behind exactly what was shown."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.money import usd
from hits.states import AssignmentState, Moderation
from payments import approvals, obligations
from payments.approvals import approve, authorise, digest, waiting_for_approval
from payments.errors import ApprovalRefused
from payments.models import Payout, PayoutState
from tests import factories
from tests.payments.builders import plan, verified_example
from tests.payments.senders import ENDPOINT

LIMIT = Decimal("1.00")


@pytest.fixture
def payout(session: Session, clock: FixedClock) -> Payout:
    """A bonus of $5.00, above the limit."""
    verified_example(session, batch=factories.make_batch(session, bonus=usd("5.00")))
    [row] = plan(session, clock.now(), limit=LIMIT)
    return row


def freed(session: Session, clock: FixedClock) -> int:
    return authorise(session, ENDPOINT, LIMIT, clock.now())


def test_up_to_the_limit_nobody_is_asked(session: Session, clock: FixedClock) -> None:
    verified_example(session, batch=factories.make_batch(session, bonus=usd("1.00")))
    plan(session, clock.now(), limit=LIMIT)

    row = session.scalars(select(Payout)).one()
    assert (row.state, row.approved_by, row.approved_at) == (
        PayoutState.APPROVED,
        "the limit of $1.00",
        clock.now(),
    )


def test_above_it_two_people_are_needed(session: Session, clock: FixedClock, payout: Payout) -> None:
    assert [row.id for row in waiting_for_approval(session, ENDPOINT, LIMIT)] == [payout.id]
    approve(session, payout.reference, digest(payout), by="ann", now=clock.now())
    one = (freed(session, clock), payout.state, approvals.missing_approvals(session, payout))

    approve(session, payout.reference, digest(payout), by="ben", now=clock.now())
    two = freed(session, clock)

    session.refresh(payout)
    assert one == (0, PayoutState.PLANNED, 1)
    assert (two, payout.state, payout.approved_by) == (1, PayoutState.APPROVED, "ann, ben")
    assert waiting_for_approval(session, ENDPOINT, LIMIT) == []


def test_the_same_person_twice_is_refused(session: Session, clock: FixedClock, payout: Payout) -> None:
    approve(session, payout.reference, digest(payout), by="ann", now=clock.now())

    with pytest.raises(ApprovalRefused, match="ann has approved payout"):
        approve(session, payout.reference, digest(payout), by="ann", now=clock.now())

    assert freed(session, clock) == 0


def test_who_asked_for_it_is_neither_of_the_two(session: Session, clock: FixedClock) -> None:
    row = factories.make_assignment(session, hit=factories.make_hit(session), state=AssignmentState.APPROVED)
    asked = obligations.owe(
        session,
        rule="compensation",
        subject="assignment:1",
        round_id=None,
        worker_id=row.worker_id,
        assignment_id=row.id,
        amount=usd("5.00"),
        reason="Our fault.",
        now=clock.now(),
        requested_by="ann",
    )
    assert asked is not None

    with pytest.raises(ApprovalRefused, match="ann asked for payout"):
        approve(session, asked.reference, digest(asked), by="ann", now=clock.now())
    approve(session, asked.reference, digest(asked), by="ben", now=clock.now())

    # Anybody can say "ann" on the command line, so that ben alone must not be enough.
    assert (freed(session, clock), approvals.missing_approvals(session, asked)) == (0, 1)
    approve(session, asked.reference, digest(asked), by="cy", now=clock.now())
    assert freed(session, clock) == 1


@pytest.mark.parametrize("forged", ["", "0" * 64, "ümlaut"])
def test_a_forged_digest_is_refused(session: Session, clock: FixedClock, payout: Payout, forged: str) -> None:
    with pytest.raises(ApprovalRefused, match="is not what was approved"):
        approve(session, payout.reference, forged, by="ann", now=clock.now())


def test_a_payout_that_changed_since_it_was_shown_is_refused(
    session: Session, clock: FixedClock, payout: Payout
) -> None:
    shown = digest(payout)
    payout.amount = usd("50.00")
    session.flush()

    with pytest.raises(ApprovalRefused, match=r"it is \$50\.00 now"):
        approve(session, payout.reference, shown, by="ann", now=clock.now())


def test_approvals_of_what_changed_afterwards_count_for_nothing(
    session: Session, clock: FixedClock, payout: Payout
) -> None:
    for name in ("ann", "ben"):
        approve(session, payout.reference, digest(payout), by=name, now=clock.now())
    payout.amount = usd("50.00")
    session.flush()

    assert freed(session, clock) == 0


def test_a_promise_that_was_withdrawn_and_given_again_needs_new_approvals(
    session: Session, clock: FixedClock, payout: Payout
) -> None:
    example = payout.example
    assert example is not None
    for name in ("ann", "ben"):
        approve(session, payout.reference, digest(payout), by=name, now=clock.now())
    plan(session, clock.now(), limit=LIMIT)
    session.refresh(payout)
    approved = payout.state

    for moderation in (Moderation.UPHELD, Moderation.DISMISSED):
        example.moderation = moderation
        session.flush()
        plan(session, clock.now(), limit=LIMIT)

    session.refresh(payout)
    assert (approved, payout.state, payout.approved_by) == (PayoutState.APPROVED, PayoutState.PLANNED, None)
    assert approvals.missing_approvals(session, payout) == 2
    assert approvals.count_waiting(session, ENDPOINT, LIMIT) == 1


def test_what_does_not_wait_can_not_be_approved(session: Session, clock: FixedClock, payout: Payout) -> None:
    shown = digest(payout)
    authorise(session, ENDPOINT, None, clock.now())

    with pytest.raises(ApprovalRefused, match="does not wait for an approval; it is approved"):
        approve(session, payout.reference, shown, by="ann", now=clock.now())
    with pytest.raises(ApprovalRefused, match="no payout 'DH-NONE'"):
        approve(session, "DH-NONE", shown, by="ann", now=clock.now())


def test_a_flag_keeps_the_approvals(session: Session, clock: FixedClock, payout: Payout) -> None:
    example = payout.example
    assert example is not None
    for name in ("ann", "ben"):
        approve(session, payout.reference, digest(payout), by=name, now=clock.now())
    plan(session, clock.now(), limit=LIMIT)
    states = []

    for moderation in (Moderation.OPEN, Moderation.DISMISSED):
        example.moderation = moderation
        session.flush()
        plan(session, clock.now(), limit=LIMIT)
        session.refresh(payout)
        states.append(payout.state)

    assert states == [PayoutState.HELD, PayoutState.APPROVED]


@pytest.mark.parametrize("change", ["UPDATE payout_approval SET staff_name = 'eve'", "DELETE FROM payout_approval"])
def test_the_database_keeps_every_word_that_was_given(
    session: Session, clock: FixedClock, payout: Payout, change: str
) -> None:
    approve(session, payout.reference, digest(payout), by="ann", now=clock.now())
    session.commit()

    with pytest.raises(DatabaseError, match="append-only"):
        session.execute(text(change))
    session.rollback()


def test_the_database_lets_nothing_move_unapproved(session: Session, payout: Payout) -> None:
    session.commit()

    for state in ("approved", "sending", "compensating"):
        with pytest.raises(DatabaseError):
            session.execute(text("UPDATE payout SET state = :state"), {"state": state})
        session.rollback()
