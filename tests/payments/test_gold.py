"""The bonus for gold items: once for each validator and batch, within the budget, by the terms it was opened with."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.clock import FixedClock
from hits.models import Hit, HitBatch, Vote
from hits.money import usd
from hits.states import AssignmentState, HitKind, HitState
from payments import approvals
from payments.budgets import reserve_for_validation, set_budget
from payments.gold import plan_gold_bonuses
from payments.models import BudgetScope, Payout, PayoutState, Reservation
from payments.releases import release_unused
from payments.rules import GoldTerms
from tests import factories
from tests.payments.builders import judge
from tests.payments.senders import ENDPOINT


@pytest.fixture
def batch(session: Session) -> HitBatch:
    """A closed validation batch that pays $0.20 when at least 75 % of the known answers were right."""
    return factories.make_batch(session, kind=HitKind.VALIDATION, items=4, extras=GoldTerms(75, usd("0.20")).as_json())


def payouts(session: Session) -> list[Payout]:
    return list(session.scalars(select(Payout).order_by(Payout.id)))


def test_it_is_owed_once_for_all_that_one_reader_judged_in_a_batch(
    session: Session, clock: FixedClock, batch: HitBatch
) -> None:
    first = judge(session, batch, 1, 1)
    last = judge(session, batch, 2, 0, worker=first.worker)
    judge(session, batch, 2, 1)

    planned = [plan_gold_bonuses(session, clock.now()) for _ in range(2)]

    [payout] = payouts(session)
    assert planned == [1, 0]
    assert (payout.worker_id, payout.assignment_id, payout.amount) == (first.worker_id, last.id, usd("0.20"))
    assert payout.reason == f"3 of 4 items whose answer was known were right: $0.20. {payout.reference}"
    assert payout.subject == f"gold:{batch.round_id}:{first.worker_id}:{batch.id}"


def test_it_waits_until_every_hit_of_the_batch_is_closed(session: Session, clock: FixedClock, batch: HitBatch) -> None:
    judge(session, batch, 4, 0)
    still_open = judge(session, batch, 0, 0, hit_state=HitState.CREATED).hit

    assert plan_gold_bonuses(session, clock.now()) == 0
    session.get_one(Hit, still_open.id).state = HitState.CLOSED
    session.flush()
    assert plan_gold_bonuses(session, clock.now()) == 1


def test_rejected_work_drafts_and_batches_without_terms_earn_nothing(
    session: Session, clock: FixedClock, batch: HitBatch
) -> None:
    judge(session, batch, 4, 0, state=AssignmentState.REJECTED)
    draft = judge(session, batch, 1, 0)
    session.scalars(select(Vote).where(Vote.assignment_id == draft.id)).one().counted_at = None
    judge(session, factories.make_batch(session, round=batch.round, kind=HitKind.VALIDATION, items=4), 4, 0)

    assert plan_gold_bonuses(session, clock.now()) == 0


def test_it_is_paid_out_of_what_the_batch_set_aside_and_the_rest_goes_back(
    session: Session, clock: FixedClock, batch: HitBatch
) -> None:
    for right in (4, 0):
        judge(session, batch, right, 4 - right)
    # Two readers, each with a bonus of $0.20 and its fee of $0.04 at most.
    reserve_for_validation(session, batch, usd("1.08"), now=clock.now(), bonuses=usd("0.48"))
    set_budget(session, BudgetScope.PROJECT, "", usd("1.08"), now=clock.now())

    plan_gold_bonuses(session, clock.now())
    approvals.authorise(session, ENDPOINT, None, clock.now())
    release_unused(session, clock.now())

    [payout] = payouts(session)
    kept = session.scalars(select(Reservation)).one()
    assert payout.state is PayoutState.APPROVED
    assert (kept.promised, kept.bonuses, kept.held) == (usd("0.24"), Decimal(0), usd("1.08"))


def test_without_room_in_the_budget_nothing_is_promised(session: Session, clock: FixedClock, batch: HitBatch) -> None:
    judge(session, batch, 4, 0)
    set_budget(session, BudgetScope.PROJECT, "", usd("0.23"), now=clock.now())

    plan_gold_bonuses(session, clock.now())

    assert [row.state for row in payouts(session)] == [PayoutState.NO_BUDGET]


def test_somebody_erased_is_owed_nothing(session: Session, clock: FixedClock, batch: HitBatch) -> None:
    worker = judge(session, batch, 4, 0).worker
    worker.mturk_worker_id, worker.erased_at = f"erased-{'0' * 32}", factories.NOON

    assert plan_gold_bonuses(session, clock.now()) == 0
