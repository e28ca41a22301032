"""Who could not hand in work through our fault is paid all the same: once, and nobody else in their place."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.compensate import offer_compensations, owe_compensation, plan_compensation, waiting_compensations
from app.operations.jobs_pass import jobs_pass
from app.operations.plan_payouts import plan_payouts
from app.operations.settle import Result, settle
from app.settings import Settings
from hits.clock import FixedClock
from hits.errors import NotFound, Refused
from hits.marketplace.errors import SiteError
from hits.models import Hit, HitBatch
from hits.money import usd
from hits.mturk.errors import MTurkUnavailable
from hits.states import HitKind
from payments.compensations import NOT_TAKEN
from payments.models import LedgerTransaction, Payout, PayoutState, Posting, Reservation, TransactionKind
from tests.app.operations.people import Crowd
from tests.market import Market, failing

CAUSE = "our pages were down on 15 November"


@pytest.fixture
def writer(crowd: Crowd) -> str:
    return crowd.market.person("writer")


def planned(session: Session, clock: FixedClock, market: Market) -> None:
    plan_payouts(session, clock, endpoint=market.mturk.endpoint, approval_limit=None)


def state(session: Session) -> PayoutState:
    session.expire_all()
    found = session.scalars(select(Payout.state)).one()
    session.commit()
    return found


def promised(session: Session) -> int:
    account = Posting.account.startswith("promised:")
    found = int(session.scalar(select(func.sum(Posting.cents)).where(account)) or 0)
    session.commit()
    return found


def compensation_hits(market: Market) -> list[str]:
    return [hit["HITId"] for hit in market.hits() if hit["Title"] == "Payment that we owe you"]


@pytest.mark.usefixtures("hits")
def test_a_worker_whose_page_failed_is_paid_by_a_hit_of_their_own(
    session: Session, crowd: Crowd, market: Market, settings: Settings, clock: FixedClock, hits: list[str], writer: str
) -> None:
    assignment_id = crowd.open(writer, hits[0])
    payout = owe_compensation(session, clock, assignment_id, None, CAUSE, by="kim")
    planned(session, clock, market)

    offered = offer_compensations(session, market.mturk, settings, clock)
    again = offer_compensations(session, market.mturk, settings, clock)

    assert (offered.offered, offered.findings, again.offered) == (1, [], 0)
    [hit_id] = compensation_hits(market)
    hit = next(one for one in market.hits() if one["HITId"] == hit_id)
    assert hit["Reward"] == "0.30"
    assert payout.reference in hit["Question"]
    assert CAUSE in hit["Question"]
    with pytest.raises(SiteError):
        market.accept(market.person("somebody else"), hit_id)

    market.engine.submit_form(writer, market.accept(writer, hit_id), {})
    report = jobs_pass(session, market.mturk, settings, clock)
    jobs_pass(session, market.mturk, settings, clock)

    assert (report.to_review, report.findings) == (0, [])
    assert state(session) is PayoutState.COMPENSATED
    assert promised(session) == 0
    kinds = session.scalars(select(LedgerTransaction.kind)).all()
    assert kinds.count(TransactionKind.REWARD) == kinds.count(TransactionKind.COMPENSATION) == 1
    assert session.scalar(select(func.sum(Posting.cents))) == 0
    batch = session.scalars(select(HitBatch).where(HitBatch.kind == HitKind.COMPENSATION)).one()
    paid = session.scalars(select(Reservation).where(Reservation.batch_id == batch.id)).one()
    assert (paid.held, paid.moved_in, paid.spent) == (usd("0.36"), usd("0.36"), usd("0.36"))
    assert [entry.action for entry in session.scalars(select(AuditEntry))] == ["compensation.owe"]


def test_work_that_was_handed_in_after_all_gets_a_bonus(
    session: Session, crowd: Crowd, market: Market, settings: Settings, clock: FixedClock, hits: list[str], writer: str
) -> None:
    assignment_id = crowd.write(writer, hits[0], {"It was bad.": False, "As good as a toothache.": True})
    jobs_pass(session, market.mturk, settings, clock)

    plan = plan_compensation(session, clock, assignment_id, usd("0.10"), CAUSE)
    owe_compensation(session, clock, assignment_id, usd("0.10"), CAUSE, by="kim")
    settlement = settle(session, market.mturk, clock)

    assert plan.by_bonus
    assert (plan.amount, plan.fee) == (usd("0.10"), usd("0.02"))
    assert [one.result for one in settlement.settled] == [Result.PAID]
    assert offer_compensations(session, market.mturk, settings, clock).offered == 0


def test_a_bonus_whose_assignment_is_gone_is_paid_by_a_hit_of_its_own(
    session: Session, crowd: Crowd, market: Market, settings: Settings, clock: FixedClock, hits: list[str], writer: str
) -> None:
    assignment_id = crowd.write(writer, hits[0], {"It was bad.": False, "As good as a toothache.": True})
    jobs_pass(session, market.mturk, settings, clock)
    owe_compensation(session, clock, assignment_id, usd("0.10"), CAUSE, by="kim")
    market.before = failing("SendBonus", 400, "AWS.MechanicalTurk.AssignmentDoesNotExist")

    settlement = settle(session, market.mturk, clock)
    market.before = None
    offered = offer_compensations(session, market.mturk, settings, clock)

    assert [one.result for one in settlement.settled] == [Result.TOO_LATE]
    assert (offered.offered, len(compensation_hits(market))) == (1, 1)
    assert state(session) is PayoutState.COMPENSATING
    assert waiting_compensations(session) == 1


def test_a_hit_that_was_not_taken_is_offered_again_and_its_money_comes_back(
    session: Session, crowd: Crowd, market: Market, settings: Settings, clock: FixedClock, hits: list[str], writer: str
) -> None:
    owe_compensation(session, clock, crowd.open(writer, hits[0]), None, CAUSE, by="kim")
    planned(session, clock, market)
    offer_compensations(session, market.mturk, settings, clock)

    clock.advance(timedelta(days=31))
    for _ in range(3):
        jobs_pass(session, market.mturk, settings, clock)
    before = session.scalars(select(Payout)).one()
    told = (before.state, before.cause)
    offer_compensations(session, market.mturk, settings, clock)

    assert told == (PayoutState.NEEDS_COMPENSATION, NOT_TAKEN)
    assert state(session) is PayoutState.COMPENSATING
    assert len(compensation_hits(market)) == 2
    assert promised(session) == 30
    batches = select(HitBatch.id).where(HitBatch.kind == HitKind.COMPENSATION).order_by(HitBatch.id)
    first, second = session.scalars(
        select(Reservation).where(Reservation.batch_id.in_(batches)).order_by(Reservation.id)
    ).all()
    assert (first.open, second.open) == (usd(0), usd("0.36"))


@pytest.mark.parametrize("operation", ["CreateQualificationType", "AssociateQualificationWithWorker", "CreateHITType"])
def test_an_offer_that_was_cut_short_goes_on_and_makes_one_hit(
    session: Session,
    crowd: Crowd,
    market: Market,
    settings: Settings,
    clock: FixedClock,
    hits: list[str],
    writer: str,
    operation: str,
) -> None:
    owe_compensation(session, clock, crowd.open(writer, hits[0]), None, CAUSE, by="kim")
    planned(session, clock, market)
    market.after = failing(operation)

    with pytest.raises(MTurkUnavailable):
        offer_compensations(session, market.mturk, settings, clock)
    session.rollback()
    market.after = None
    offer_compensations(session, market.mturk, settings, clock)

    assert len(compensation_hits(market)) == 1
    assert session.scalar(select(func.count()).select_from(Hit).join(HitBatch).where(HitBatch.kind == "compensation"))
    assert state(session) is PayoutState.COMPENSATING


def test_the_same_work_is_compensated_once(
    session: Session, crowd: Crowd, clock: FixedClock, hits: list[str], writer: str
) -> None:
    assignment_id = crowd.open(writer, hits[0])
    owe_compensation(session, clock, assignment_id, None, CAUSE, by="kim")

    with pytest.raises(Refused, match="compensated for this HIT already"):
        owe_compensation(session, clock, assignment_id, usd("5.00"), CAUSE, by="kim")
    with pytest.raises(Refused):
        owe_compensation(session, clock, writer, usd("5.00"), CAUSE, by="kim", hit_id=hits[0])

    assert promised(session) == 30


def test_somebody_who_never_reached_our_page_is_found_by_hit(
    session: Session, crowd: Crowd, clock: FixedClock, hits: list[str], writer: str
) -> None:
    crowd.open(writer, hits[0])

    payout = owe_compensation(session, clock, writer, None, CAUSE, by="kim", hit_id=hits[1])

    assert (payout.assignment_id, payout.state) == (None, PayoutState.NEEDS_COMPENSATION)
    assert writer not in payout.reason


def test_who_is_compensated_before_the_page_opens_is_not_again_when_it_has_opened(
    session: Session, crowd: Crowd, clock: FixedClock, hits: list[str], writer: str
) -> None:
    crowd.open(writer, hits[0])
    owe_compensation(session, clock, writer, None, CAUSE, by="kim", hit_id=hits[1])
    opened = crowd.open(writer, hits[1])

    with pytest.raises(Refused, match="compensated for this HIT already"):
        owe_compensation(session, clock, opened, None, "another cause", by="kim")
    with pytest.raises(Refused, match="compensated for this HIT already"):
        owe_compensation(session, clock, writer, None, "another cause", by="kim", hit_id=hits[1])

    # The other HIT of the same batch is other work.
    owe_compensation(session, clock, writer, None, CAUSE, by="kim", hit_id=hits[0])
    assert promised(session) == 60


def test_who_is_not_known_is_not_paid_and_not_named(
    session: Session, crowd: Crowd, clock: FixedClock, hits: list[str], writer: str
) -> None:
    with pytest.raises(NotFound, match="No assignment 'A1' was ever opened here"):
        owe_compensation(session, clock, "A1", None, CAUSE, by="kim")
    with pytest.raises(NotFound, match="no HIT 'H1' of ours"):
        owe_compensation(session, clock, writer, None, CAUSE, by="kim", hit_id="H1")
    with pytest.raises(NotFound) as refusal:
        owe_compensation(session, clock, writer, None, CAUSE, by="kim", hit_id=hits[0])
    assert writer not in str(refusal.value)
