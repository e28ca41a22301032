"""A HIT of its own pays a payout once, and is offered again when its worker did not take it."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.models import Hit, HitBatch
from hits.money import ZERO, usd
from hits.states import AssignmentState, HitKind, HitState
from payments import approvals, obligations
from payments.compensations import NOT_TAKEN, due_compensations, follow_compensations, offer, words
from payments.models import Payout, PayoutState, Posting, Reservation
from tests import factories
from tests.payments.senders import ENDPOINT


@pytest.fixture
def payout(session: Session, clock: FixedClock) -> Payout:
    """An approved compensation of $0.30 for work that never came in."""
    row = factories.make_assignment(session, hit=factories.make_hit(session), state=AssignmentState.OPENED)
    found = obligations.owe_compensation(
        session,
        worker_id=row.worker_id,
        hit=row.hit,
        assignment=row,
        amount=usd("0.30"),
        cause="our pages were down.",
        now=clock.now(),
        requested_by="kim",
    )
    assert found is not None
    approvals.authorise(session, ENDPOINT, None, clock.now())
    return found


def made(session: Session, payout: Payout, clock: FixedClock, number: int = 1) -> tuple[HitBatch, Hit]:
    batch = factories.make_batch(session, round=payout.round, kind=HitKind.COMPENSATION, reward=payout.amount)
    hit = Hit(
        position=1,
        reference=f"own-{number}",
        request_token=f"own-{number}",
        state=HitState.CREATED,
        mturk_hit_id=f"OWN{number}",
        max_assignments=1,
        created_at=clock.now(),
    )
    return batch, hit


def test_the_worker_reads_what_went_wrong_and_that_nothing_is_to_do(payout: Payout) -> None:
    assert words(payout) == (
        "You could not hand in your work through our fault (our pages were down): $0.30."
        f" {payout.reference} This HIT pays you these $0.30; there is nothing else to do."
    )


def test_it_is_offered_once_within_what_is_kept_for_it(session: Session, clock: FixedClock, payout: Payout) -> None:
    first = offer(session, payout.id, *made(session, payout, clock), clock.now())
    again = offer(session, payout.id, *made(session, payout, clock, 2), clock.now())

    assert first is not None
    assert again is None
    assert (payout.state, payout.kept) == (PayoutState.COMPENSATING, ZERO)
    source, target = session.scalars(select(Reservation).order_by(Reservation.id)).all()
    assert (source.moved_out, source.promised, source.open) == (usd("0.36"), ZERO, ZERO)
    assert (target.held, target.moved_in, target.open) == (usd("0.36"), usd("0.36"), usd("0.36"))
    assert due_compensations(session, ENDPOINT) == []


def test_what_nobody_approved_is_not_offered(session: Session, clock: FixedClock, payout: Payout) -> None:
    payout.approved_by = None
    session.flush()

    assert due_compensations(session, ENDPOINT) == []
    assert offer(session, payout.id, *made(session, payout, clock), clock.now()) is None


@pytest.mark.parametrize(
    ("assignment", "hit_state", "state", "cause", "promised"),
    [
        (AssignmentState.APPROVED, HitState.CREATED, PayoutState.COMPENSATED, None, 0),
        (AssignmentState.SUBMITTED, HitState.CREATED, PayoutState.COMPENSATING, None, 30),
        (None, HitState.CREATED, PayoutState.COMPENSATING, None, 30),
        (None, HitState.CLOSED, PayoutState.NEEDS_COMPENSATION, NOT_TAKEN, 30),
    ],
)
def test_it_follows_its_hit(
    session: Session,
    clock: FixedClock,
    payout: Payout,
    assignment: AssignmentState | None,
    hit_state: HitState,
    state: PayoutState,
    cause: str | None,
    promised: int,
) -> None:
    batch, hit = made(session, payout, clock)
    offer(session, payout.id, batch, hit, clock.now())
    if assignment is not None:
        factories.make_assignment(session, hit=hit, worker=payout.worker, state=assignment)
    hit.state = hit_state
    session.flush()

    follow_compensations(session, clock.now())
    follow_compensations(session, clock.now())

    session.refresh(payout)
    assert (payout.state, payout.cause) == (state, cause)
    account = Posting.account.startswith("promised:")
    assert int(session.scalar(select(func.sum(Posting.cents)).where(account)) or 0) == promised
