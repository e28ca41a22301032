"""The books against a real marketplace behind boto3: clean ones print one line, each planted fault is found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from app.operations.jobs_pass import jobs_pass
from app.operations.mend import mend
from app.operations.reconcile import Finding, Kind, Reconciliation, booked, reconcile
from app.operations.settle import Result, settle
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Assignment, Example
from hits.money import from_cents, usd
from hits.mturk.errors import HitMissing
from hits.states import AssignmentState, Verdict
from payments.ledger import post, record_deposit, reverse
from payments.models import LedgerTransaction, Payout, PayoutState, Posting, Reservation, TransactionKind
from payments.month import Month
from payments.month_close import close_month
from payments.report import month_report, standing
from tests.app.operations.people import Crowd
from tests.market import Market, failing, settings

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

    def mend(self, finding: Finding) -> None:
        """Do what a finding says."""
        command = re.findall(r"`dynahit ([^`]+)`", finding.todo)[-1]
        if command == "jobs run --once":
            jobs_pass(self.session, self.market.mturk, settings(), self.clock)
        elif command == "payments settle":
            self.settle()
        else:
            mend(self.session, self.market.mturk, self.clock, command.removeprefix("payments mend "), by="kim")

    def approved(self) -> str:
        """The first approved assignment."""
        rows = select(Assignment.mturk_assignment_id).where(Assignment.state == AssignmentState.APPROVED)
        return self.session.scalars(rows.order_by(Assignment.id)).first() or pytest.fail("nothing is approved")

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


def _unbook(loop: Loop, key: str) -> None:
    """Reverse a transaction by mistake; what it had taken off its round's reservation is put back with it."""
    booked = loop.session.scalars(select(LedgerTransaction).where(LedgerTransaction.key == key)).one()
    reserved = sum(line.cents for line in booked.postings if line.account.startswith("reserved:"))
    reverse(loop.session, key, reason="by mistake", now=loop.clock.now())
    reservation = loop.session.scalars(select(Reservation).where(Reservation.round_id == booked.round_id)).first()
    assert reservation is not None
    reservation.spent += from_cents(reserved)
    loop.session.commit()


def _bonus_not_booked(loop: Loop) -> None:
    _unbook(loop, f"bonus:{loop.payout().reference}")


def _reward_not_booked(loop: Loop) -> None:
    _unbook(loop, f"reward:{loop.approved()}")


def _reward_of_nobody(loop: Loop) -> None:
    post(
        loop.session,
        key="reward:NEVERWORKED",
        kind=TransactionKind.REWARD,
        reference="NEVERWORKED",
        round_id=None,
        postings={"rewards:sentiment/1:w-1": usd("0.50"), f"marketplace:{loop.market.mturk.endpoint}": -usd("0.50")},
        now=loop.clock.now(),
    )
    loop.session.commit()


def _bonus_of_nobody(loop: Loop) -> None:
    post(
        loop.session,
        key="bonus:DH-NOBODY",
        kind=TransactionKind.BONUS,
        reference="DH-NOBODY",
        round_id=None,
        postings={"bonuses:sentiment/1:w-1": usd("0.50"), f"marketplace:{loop.market.mturk.endpoint}": -usd("0.50")},
        now=loop.clock.now(),
    )
    loop.session.commit()


def _other_reservation(loop: Loop) -> None:
    loop.session.execute(update(Reservation).where(Reservation.id == 1).values(held=Reservation.held + usd("0.07")))
    loop.session.commit()


def _promise_not_booked(loop: Loop) -> None:
    row = loop.payout()
    loop.session.add(
        _copy(row, reference="DH-2222222222", subject="wage:1", reason="For the time it took. DH-2222222222")
    )
    loop.session.commit()


def _copy(row: Payout, **changes: object) -> Payout:
    kept = {
        name: getattr(row, name)
        for name in ("rule", "round_id", "worker_id", "assignment_id", "batch_id", "endpoint", "amount", "planned_at")
    }
    return Payout(**{**kept, "request_token": "a token of its own", "state": PayoutState.HELD, **changes})


def _posting_changed(loop: Loop) -> None:
    """A cent more on one posting of a closed month, past the guards."""
    loop.clock.advance(timedelta(days=20))
    close_month(loop.session, NOVEMBER, by="kim", now=loop.clock.now())
    loop.session.commit()
    past_the_guards(loop.session, "UPDATE posting SET cents = cents + 1 WHERE account LIKE 'deposits:%'")


def past_the_guards(session: Session, statement: str) -> None:
    """Change the ledger as only somebody with the database's own password can."""
    with session.get_bind().begin() as connection:  # type: ignore[union-attr]  # an engine
        if connection.dialect.name == "sqlite":
            connection.execute(text("DROP TRIGGER posting_no_update"))
            connection.execute(text(statement))
            return
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text(statement))


FAULTS = [
    (_stranger_bonus, [Kind.EXTRA], "not sent from here"),
    (_second_payment, [Kind.EXTRA], "paid twice, $0.30 too much"),
    (_other_reference, [Kind.EXTRA, Kind.ORPHAN, Kind.ORPHAN], "does not show it"),
    (_other_amount, [Kind.DIFFERENT], "$0.20 in the outbox, $0.30 in the ledger and $0.30 on"),
    (_forgotten_state, [Kind.MISSING], "is paid on the marketplace and planned here"),
    (_money_in, [Kind.DIFFERENT], "payments deposit 25.00"),
    (_bonus_not_booked, [Kind.MISSING], "is sent and not in the ledger"),
    (_reward_not_booked, [Kind.MISSING], "is approved and its reward is not booked"),
    (_reward_of_nobody, [Kind.ORPHAN], "has a booked reward and is not approved here"),
    (_bonus_of_nobody, [Kind.ORPHAN], "is in the ledger with $0.50"),
    (_other_reservation, [Kind.DIFFERENT], "reserved by its batches"),
    (_promise_not_booked, [Kind.MISSING], "$0.30 is owed by the outbox and $0.00 promised by the ledger"),
]


def test_each_planted_fault_is_found_and_nothing_else_and_its_command_mends_it(loop: Loop) -> None:
    loop.settle()
    assert loop.reconcile().findings == ()

    for plant, kinds, words in FAULTS:
        plant(loop)

        findings = loop.reconcile().findings
        assert [one.kind for one in findings] == kinds, (plant, findings)
        assert words in " ".join(map(str, findings)), plant
        loop.clock.advance(timedelta(hours=2))
        for _ in range(4):
            for one in loop.reconcile().findings:
                loop.mend(one)
        loop.settle()
        assert loop.reconcile().findings == (), plant
        assert loop.session.scalar(select(func.sum(Posting.cents))) == 0, plant


def test_a_ledger_that_was_changed_past_its_guards_is_found_in_its_transaction_and_its_month(loop: Loop) -> None:
    loop.settle()

    _posting_changed(loop)

    findings = loop.reconcile().findings
    assert [one.subject for one in findings] == ["transaction deposit:for tests", "month 2026-11"]
    assert "sum to $0.01" in findings[0].what
    assert all("restore it from a backup" in one.todo for one in findings)


def test_hits_that_the_marketplace_has_forgotten_are_taken_as_they_were_confirmed(loop: Loop) -> None:
    loop.settle()
    loop.market.before = failing("ListBonusPaymentsForHIT", 400, "RequestError")

    class Forgetful:
        endpoint = loop.market.mturk.endpoint
        funds = loop.market.mturk.funds
        assignments = loop.market.mturk.assignments

        def bonus_payments(self, *, assignment_id: str | None = None, hit_id: str | None = None) -> Any:
            raise HitMissing("ListBonusPayments", "RequestError", "no such HIT")

    found = reconcile(loop.session, Forgetful())

    assert found.findings == ()
    assert "approved assignments are of HITs that the marketplace does not know any more" in str(found.note)


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


def test_references_are_looked_up_however_many_there_are(session: Session, clock: FixedClock) -> None:
    for number in range(2):
        lines = {f"bonuses:sentiment/1:w-{number}": usd("0.30"), "marketplace:http://there": -usd("0.30")}
        post(
            session,
            key=f"bonus:x{number}",
            kind=TransactionKind.BONUS,
            reference=f"x{number}",
            round_id=None,
            postings=lines,
            now=clock.now(),
        )

    # 50 HITs of 1,000 assignments and their bonuses are more than one statement of PostgreSQL takes.
    found = booked(session, TransactionKind.BONUS, (f"x{number}" for number in range(70_000)))

    assert {name: one.cost for name, one in found.items()} == {"x0": usd("0.30"), "x1": usd("0.30")}
