"""The books against a real marketplace behind boto3: clean ones print one line, each planted fault is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.operations.jobs_pass import jobs_pass
from app.operations.reconcile import Kind, Reconciliation, reconcile
from app.operations.settle import Result, settle
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Example
from hits.money import usd
from hits.states import Verdict
from payments.ledger import record_deposit
from payments.models import Payout, PayoutState
from payments.month import Month
from payments.report import month_report, standing
from tests.app.operations.people import Crowd
from tests.market import Market, failing

NOVEMBER = Month(2026, 11)


@dataclass
class Loop:
    """A round that was written and validated: three statements that fool the model, all verified, none paid."""

    session: Session
    market: Market
    clock: FixedClock

    def settle(self) -> list[Result]:
        return [one.result for one in settle(self.session, self.market.mturk, self.clock).settled]

    def reconcile(self) -> Reconciliation:
        return reconcile(self.session, self.market.mturk)

    def payments(self) -> list[tuple[str, Decimal, str]]:
        """Every bonus that the marketplace lists, by worker, amount and reason."""
        return [
            (seen.worker_id, seen.amount, seen.reason)
            for hit in self.market.hits()
            for seen in self.market.mturk.bonus_payments(hit_id=hit["HITId"])
        ]

    def payout(self) -> Payout:
        found = self.session.scalars(select(Payout).order_by(Payout.id).execution_options(populate_existing=True))
        return found.first() or pytest.fail("there is no payout")


@pytest.fixture
def loop(
    session: Session, market: Market, settings: Settings, clock: FixedClock, crowd: Crowd, hits: list[str]
) -> Loop:
    mturk = market.mturk
    qualification = mturk.find_or_create_qualification(settings.validator_qualification, "Validates.")
    writers = [market.person(f"writer{number}") for number in range(3)]
    validators = [market.person(f"validator{number}", grants={qualification: 1}) for number in range(3)]
    for writer, hit_id in zip(writers, hits, strict=True):
        crowd.write(writer, hit_id, {f"The soup of {hit_id} was cold.": False, f"Fine soup, {hit_id}.": True})
    jobs_pass(session, mturk, settings, clock)
    clock.advance(timedelta(minutes=5))
    jobs_pass(session, mturk, settings, clock)
    for hit in [one["HITId"] for one in market.hits() if one["HITId"] not in hits]:
        for validator in validators[:2]:
            crowd.judge(validator, hit)
    jobs_pass(session, mturk, settings, clock)
    verified = session.scalars(select(Example).where(Example.verdict == Verdict.VALID_AND_MODEL_WRONG)).all()
    assert len(verified) == 3
    session.commit()
    record_deposit(session, mturk.endpoint, usd("10000.00"), reference="for tests", now=clock.now())
    session.commit()
    return Loop(session, market, clock)


def test_what_was_verified_is_paid_and_every_book_agrees_to_the_cent(loop: Loop) -> None:
    results = loop.settle()

    report = month_report(loop.session, NOVEMBER).totals
    balance = loop.market.engine.balance(loop.market.requester_id)
    paid = loop.payments()
    assert results == [Result.PAID] * 3
    assert report.bonuses == report.promised == sum(amount for _, amount, _ in paid) == usd("0.90")
    assert report.total == balance.spent
    assert balance.deposited == balance.available + balance.on_hold + report.total
    found = loop.reconcile()
    assert (found.findings, found.note) == ((), None)
    assert str(found).startswith("The books agree with the marketplace: ")
    assert found.balance_checked == balance.available + balance.on_hold


def test_the_books_are_clean_before_anything_is_paid(loop: Loop) -> None:
    found = loop.reconcile()

    assert (found.findings, found.bonuses) == ((), 0)
    assert found.rewards > 3


def test_each_payment_goes_to_its_writer_with_the_sentence_and_its_reference(loop: Loop) -> None:
    loop.settle()

    payments = {(worker, reason) for worker, _, reason in loop.payments()}
    loop.session.expire_all()
    rows = loop.session.scalars(select(Payout)).all()
    assert payments == {(row.worker.mturk_worker_id, row.reason) for row in rows}
    assert all(row.state is PayoutState.CONFIRMED for row in rows)


def test_a_bonus_answered_with_500_twice_though_it_was_paid_is_paid_once(loop: Loop) -> None:
    loop.market.after = failing("SendBonus", times=2)

    first = loop.settle()
    loop.market.after = None
    second = loop.settle()

    assert sorted(first + second) == sorted([Result.DOUBTFUL, Result.FOUND, Result.PAID, Result.PAID])
    assert len(loop.payments()) == 3
    assert loop.reconcile().findings == ()


def test_a_retry_of_boto3_after_a_500_that_had_paid_is_one_payment(loop: Loop) -> None:
    loop.market.after = failing("SendBonus", times=1)

    results = loop.settle()

    assert sorted(results) == sorted([Result.FOUND, Result.PAID, Result.PAID])
    assert len(loop.payments()) == 3


def test_throttling_leaves_bonuses_doubtful_and_a_later_run_pays_them(loop: Loop) -> None:
    loop.market.before = failing("SendBonus", 400, "ThrottlingException")

    first = loop.settle()
    loop.market.before = None
    loop.clock.advance(timedelta(hours=25))
    second = loop.settle()

    assert first == [Result.DOUBTFUL] * 3
    assert second == [Result.PAID] * 3
    assert len(loop.payments()) == 3
    assert loop.reconcile().findings == ()


def test_the_engine_refuses_for_want_of_money_and_nothing_is_lost(loop: Loop) -> None:
    balance = loop.market.mturk.balance()
    spend = balance - usd("0.40")
    loop.market.call(
        "CreateHIT",
        Title="Costs",
        Description="Costs",
        Reward=str((spend / Decimal("1.2")).quantize(Decimal("0.01"))),
        AssignmentDurationInSeconds=60,
        LifetimeInSeconds=3600,
        Question=(
            '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/'
            'ExternalQuestion.xsd"><ExternalURL>https://example.com/</ExternalURL><FrameHeight>0</FrameHeight>'
            "</ExternalQuestion>"
        ),
    )

    settlement = settle(loop.session, loop.market.mturk, loop.clock)

    assert len(loop.payments()) == 1
    assert settlement.stopped is not None
    assert "missing" in settlement.stopped
    assert settlement.waiting == 2


def test_an_unplanned_bonus_counts_as_not_planned_and_then_as_paid(loop: Loop) -> None:
    before = standing(loop.session)
    loop.session.commit()
    loop.settle()
    after = standing(loop.session)

    assert before.of(PayoutState.CONFIRMED).count == 0
    assert (after.of(PayoutState.CONFIRMED).count, after.of(PayoutState.CONFIRMED).amount) == (3, usd("0.90"))


def _stranger_bonus(loop: Loop) -> None:
    row = loop.payout()
    loop.market.call(
        "SendBonus",
        WorkerId=row.worker.mturk_worker_id,
        AssignmentId=row.assignment.mturk_assignment_id,
        BonusAmount="0.50",
        Reason="thanks",
    )
    loop.session.commit()


def _second_payment(loop: Loop) -> None:
    row = loop.payout()
    loop.market.call(
        "SendBonus",
        WorkerId=row.worker.mturk_worker_id,
        AssignmentId=row.assignment.mturk_assignment_id,
        BonusAmount="0.30",
        Reason=row.reason,
    )
    loop.session.commit()


def _other_reference(loop: Loop) -> None:
    row = loop.payout()
    loop.session.execute(update(Payout).where(Payout.id == row.id).values(reference="DH-NEVERSENT"))
    loop.session.commit()


def _other_amount(loop: Loop) -> None:
    row = loop.payout()
    loop.session.execute(update(Payout).where(Payout.id == row.id).values(amount=usd("0.20")))
    loop.session.commit()


def _forgotten_state(loop: Loop) -> None:
    row = loop.payout()
    loop.session.execute(update(Payout).where(Payout.id == row.id).values(state=PayoutState.PLANNED))
    loop.session.commit()


def _money_in(loop: Loop) -> None:
    loop.market.engine.top_up(loop.market.requester_id, Decimal("25.00"), "not booked")


@pytest.mark.parametrize(
    ("plant", "kinds", "words"),
    [
        (_stranger_bonus, [Kind.EXTRA, Kind.DIFFERENT], "not sent from here"),
        (_second_payment, [Kind.EXTRA, Kind.DIFFERENT], "paid twice, $0.30 too much"),
        (_other_reference, [Kind.EXTRA, Kind.ORPHAN, Kind.MISSING, Kind.ORPHAN], "does not show it"),
        (_other_amount, [Kind.DIFFERENT, Kind.DIFFERENT], "$0.20 in the outbox and $0.30 in the ledger"),
        (_forgotten_state, [Kind.MISSING, Kind.ORPHAN], "is paid on the marketplace and planned here"),
        (_money_in, [Kind.DIFFERENT], "payments deposit 25.00"),
    ],
)
def test_each_planted_fault_is_found_and_nothing_else(
    loop: Loop, plant: Callable[[Loop], None], kinds: list[Kind], words: str
) -> None:
    loop.settle()
    assert loop.reconcile().findings == ()

    plant(loop)

    findings = loop.reconcile().findings
    assert [one.kind for one in findings] == kinds
    assert words in " ".join(map(str, findings))
    assert all(one.todo for one in findings)


def test_an_approval_that_only_the_marketplace_knows_is_found_and_the_jobs_mend_it(
    loop: Loop, crowd: Crowd, settings: Settings
) -> None:
    loop.settle()
    assignment = loop.payout().assignment
    before = loop.reconcile()
    loop.session.execute(
        update(type(assignment)).where(type(assignment).id == assignment.id).values(state="submitted", approved_at=None)
    )
    loop.session.commit()

    found = loop.reconcile()
    jobs_pass(loop.session, loop.market.mturk, settings, loop.clock)

    assert before.findings == ()
    assert Kind.MISSING in [one.kind for one in found.findings]
    assert "jobs run --once" in " ".join(map(str, found.findings))
    assert loop.reconcile().findings == ()


def test_without_a_booked_deposit_the_balance_is_not_compared_and_the_line_to_book_it_is_shown(
    session: Session, market: Market, hits: list[str]
) -> None:
    found = reconcile(session, market.mturk)

    assert found.findings == ()
    assert found.balance_checked is None
    assert "payments deposit 10000.00" in str(found.note)
