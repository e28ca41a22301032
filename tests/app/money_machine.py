"""Stories of money: launches, work, verdicts, faults, kills and jumps of the clock, in any order.

Every step may be cut short by a marketplace that fails or by the death of the process; the invariants hold after each,
and a story that is left alone ends with everything paid that is owed, once.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import Session, sessionmaker

from app.operations.compensate import offer_compensations, owe_compensation
from app.operations.jobs_pass import jobs_pass
from app.operations.launch import LaunchTerms, NotEnoughMoney, launch_batch
from app.operations.reconcile import reconcile
from app.operations.settle import settle
from hits.clock import FixedClock
from hits.db import Base
from hits.errors import Refused
from hits.marketplace.errors import SiteError
from hits.models import Assignment, Example, Hit, HitBatch
from hits.money import ZERO, from_cents, usd
from hits.mturk.errors import MTurkError
from hits.states import COLLECTED, AssignmentState, Moderation, Verdict
from payments import budgets, obligations
from payments.errors import OverBudget
from payments.ledger import record_deposit
from payments.models import OWED, PAID, BudgetScope, Payout, PayoutState, Posting, Reservation
from payments.payouts import reference_in
from tests import factories
from tests.app.operations.crashes import Killed as KilledAtCommit
from tests.app.operations.crashes import killed_at
from tests.app.operations.people import Crowd
from tests.market import Answer, Market, failing, settings

BUDGET = usd("9.00")
FUNDS = "100.00"
CONTEXTS = [{"prompt": "A train was late."}, {"prompt": "A soup was served."}]
OPERATIONS = ("SendBonus", "ListBonusPayments", "ApproveAssignment", "CreateHITWithHITType", "ListAssignmentsForHIT")


class Killed(BaseException):
    """The process dies while the marketplace is asked."""


class MoneyMachine(RuleBasedStateMachine):
    """One instance, its marketplace and its people."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FixedClock(factories.NOON)
        self.engine = create_engine("sqlite://")
        Base.metadata.create_all(self.engine)
        self.sessions = sessionmaker(self.engine, expire_on_commit=False)
        self.market = Market(self.clock, balance=FUNDS)
        self.settings = settings(validation_wait_seconds=0)
        self.writers = [self.market.person(name) for name in ("anna", "ben")]
        self.launches = 0

    @initialize()
    def found(self) -> None:
        with self.sessions() as session:
            budgets.set_budget(session, BudgetScope.PROJECT, "", BUDGET, now=self.clock.now())
            record_deposit(session, self.market.mturk.endpoint, usd(FUNDS), reference="start", now=self.clock.now())
            session.commit()
        # Without this most stories would end before there is anything to pay.
        self.launch(3, "0.30", True, 0)
        self.work(0, True, True, 0)
        self.work(1, True, True, 1)
        self.work(0, True, False, 2)
        self.jobs(0)
        self.judge(0, "valid")
        self.judge(1, "valid")

    def teardown(self) -> None:
        self.market.engine.close()
        self.engine.dispose()

    @contextlib.contextmanager
    def life(self, kill_at: int) -> Iterator[Session]:
        """A process that may die at its ``kill_at``-th commit or while the marketplace is asked; 0 dies nowhere."""
        with self.sessions() as session:
            try:
                with killed_at(session, "before_commit", kill_at):
                    yield session
            except (Killed, KilledAtCommit, MTurkError, Refused, OverBudget, NotEnoughMoney):
                session.rollback()

    kills = st.one_of(st.just(0), st.integers(1, 12))

    @rule(hits=st.integers(1, 3), bonus=st.sampled_from(["0.30", "0.05"]), sure=st.booleans(), kill_at=kills)
    def launch(self, hits: int, bonus: str, sure: bool, kill_at: int) -> None:
        self.launches += 1
        terms = LaunchTerms(
            task_code="sentiment",
            round_number=1,
            hits=hits,
            reward=usd("0.30"),
            bonus=usd(bonus),
            tries=3,
            name=f"launch {self.launches}",
            sure_percent=90 if sure else 0,
            sure_bonus=usd("0.10") if sure else ZERO,
        )
        # A launch that was cut short is run again, as people do.
        for at in (kill_at, 0):
            with self.life(at) as session:
                launch_batch(session, self.market.mturk, self.settings, self.clock, terms, CONTEXTS)

    @rule(writer=st.integers(0, 1), fools=st.booleans(), hand_in=st.booleans(), choice=st.integers(0, 99))
    def work(self, writer: int, fools: bool, hand_in: bool, choice: int) -> None:
        with self.sessions() as session:
            # The HIT that pays a compensation asks for no statement.
            written = set(session.scalars(select(Hit.mturk_hit_id).join(Hit.batch).where(HitBatch.kind == "creation")))
        there = (hit["HITId"] for hit in self.market.hits() if hit["HITStatus"] == "Assignable")
        open_hits = sorted(written.intersection(there))
        if not open_hits:
            return
        hit_id, worker_id = open_hits[choice % len(open_hits)], self.writers[writer]
        with self.sessions() as session:
            crowd = Crowd(session, self.market, self.settings, self.clock)
            try:
                if hand_in:
                    crowd.write(worker_id, hit_id, {"It was bad.": False, "It was fine.": False, "Ah.": fools})
                else:
                    crowd.open(worker_id, hit_id)
            except SiteError:
                session.rollback()

    @rule(choice=st.integers(0, 99), outcome=st.sampled_from(["valid", "invalid", "flagged", "upheld", "dismissed"]))
    def judge(self, choice: int, outcome: str) -> None:
        with self.sessions() as session:
            examples = session.scalars(select(Example).where(Example.fooled).order_by(Example.id)).all()
            if examples:
                example = examples[choice % len(examples)]
                example.verdict, example.moderation = {
                    "valid": (Verdict.VALID_AND_MODEL_WRONG, None),
                    "invalid": (Verdict.INVALID, None),
                    "flagged": (Verdict.FLAGGED, Moderation.OPEN),
                    "upheld": (Verdict.INVALID, Moderation.UPHELD),
                    "dismissed": (Verdict.VALID_AND_MODEL_WRONG, Moderation.DISMISSED),
                }[outcome]
                valid = example.verdict is Verdict.VALID_AND_MODEL_WRONG
                example.final_label = example.goal_label if valid else None
            session.commit()

    @rule(kill_at=kills)
    def jobs(self, kill_at: int) -> None:
        with self.life(kill_at) as session:
            jobs_pass(session, self.market.mturk, self.settings, self.clock, open_validation=False)

    @rule(kill_at=kills, retry=st.booleans())
    def settle(self, kill_at: int, retry: bool) -> None:
        with self.life(kill_at) as session:
            settle(session, self.market.mturk, self.clock, retry_failed=retry)
            offer_compensations(session, self.market.mturk, self.settings, self.clock)

    @rule(choice=st.integers(0, 99))
    def top_up(self, choice: int) -> None:
        with self.life(0) as session:
            rows = session.scalars(select(Assignment).order_by(Assignment.id)).all()
            if rows:
                row = rows[choice % len(rows)]
                obligations.owe(
                    session,
                    rule="wage_topup",
                    subject=f"assignment:{row.id}",
                    round_id=None,
                    worker_id=row.worker_id,
                    assignment_id=row.id,
                    amount=usd("0.12"),
                    reason="To the stated wage: $0.12.",
                    now=self.clock.now(),
                )
            session.commit()

    @rule(choice=st.integers(0, 99))
    def compensate(self, choice: int) -> None:
        with self.life(0) as session:
            open_ones = select(Assignment).where(Assignment.state == AssignmentState.OPENED).order_by(Assignment.id)
            rows = session.scalars(open_ones).all()
            if rows:
                row = rows[choice % len(rows)]
                owe_compensation(session, self.clock, row.mturk_assignment_id, None, "a fault of ours", by="kim")

    @rule(operation=st.sampled_from(OPERATIONS), kind=st.sampled_from(["500", "429", "kill"]), done=st.booleans())
    def fail_next(self, operation: str, kind: str, done: bool) -> None:
        """The next call of an operation fails, before or after the marketplace has done it; boto3 asks twice."""
        fault = failing(
            operation,
            429 if kind == "429" else 500,
            "ThrottlingException" if kind == "429" else "ServiceFault",
            times=2,
        )
        if kind == "kill":
            struck: list[str] = []

            def fault(called: str) -> Answer | None:
                if called == operation and not struck:
                    struck.append(called)
                    raise Killed
                return None

        if done:
            self.market.after = fault
        else:
            self.market.before = fault

    @rule(hours=st.sampled_from([1, 13, 25, 80]))
    def wait(self, hours: int) -> None:
        self.clock.advance(timedelta(hours=hours))

    @precondition(lambda self: self.launches)
    @rule()
    def left_alone(self) -> None:
        """Nothing fails for a while: everything that is owed is paid, and reconcile finds nothing."""
        self.market.before = self.market.after = None
        self.clock.advance(timedelta(minutes=20))
        for _ in range(3):
            with self.sessions() as session:
                report = jobs_pass(session, self.market.mturk, self.settings, self.clock, open_validation=False)
                assert report.findings == [], report.findings
                settlement = settle(session, self.market.mturk, self.clock, retry_failed=True)
                assert settlement.stopped is None
        with self.sessions() as session:
            self.check_end(session)

    def check_end(self, session: Session) -> None:
        paid = self.paid()
        states = Counter(session.scalars(select(Payout.state)))
        waiting = (PayoutState.HELD, PayoutState.NOT_DUE, PayoutState.NO_BUDGET, PayoutState.NOT_SUBMITTED)
        apart = (*waiting, PayoutState.NEEDS_COMPENSATION, PayoutState.COMPENSATING, PayoutState.COMPENSATED)
        assert set(states) <= {PayoutState.CONFIRMED, *apart}, states
        for payout in session.scalars(select(Payout)):
            assert (payout.reference in paid) is (payout.state is PayoutState.CONFIRMED), payout.state
        for example in session.scalars(select(Example).where(Example.fooled)):
            valid = example.verdict is Verdict.VALID_AND_MODEL_WRONG and example.moderation is not Moderation.OPEN
            mine = select(Payout.state).where(Payout.example_id == example.id)
            if valid and example.attempt.assignment.state in COLLECTED:
                assert set(session.scalars(mine)) <= {PayoutState.CONFIRMED, PayoutState.NO_BUDGET}
                assert session.scalars(mine).first() is not None
        found = reconcile(session, self.market.mturk)
        assert found.findings == (), [str(one) for one in found.findings]

    def paid(self) -> Counter[str]:
        """What the marketplace has paid as bonuses, by reference."""
        found: Counter[str] = Counter()
        for hit in self.market.hits():
            page = self.market.call("ListBonusPayments", HITId=hit["HITId"], MaxResults=100)
            found.update(reference_in(bonus["Reason"]) for bonus in page["BonusPayments"])
        return found

    @invariant()
    def never_twice(self) -> None:
        assert all(count == 1 for count in self.paid().values())

    @invariant()
    def books_hold(self) -> None:
        with self.sessions() as session:
            assert session.scalar(select(func.sum(Posting.cents))) in (None, 0)
            owed = session.scalar(select(func.sum(Payout.amount)).where(Payout.state.in_(OWED))) or ZERO
            assert self.booked(session, "promised:") == owed
            reservations = session.scalars(select(Reservation)).all()
            assert self.booked(session, "reserved:") == sum((one.open for one in reservations), ZERO)
            bonuses = session.scalar(select(func.sum(Payout.amount)).where(Payout.state.in_(PAID))) or ZERO
            assert self.booked(session, "bonuses:") == bonuses
            kept = session.scalar(select(func.sum(Payout.kept))) or ZERO
            assert sum((one.promised for one in reservations), ZERO) == kept

    @invariant()
    def never_over_budget(self) -> None:
        with self.sessions() as session:
            assert budgets.committed(session, BudgetScope.PROJECT, "") <= BUDGET
        balance = self.market.engine.balance(self.market.requester_id)
        assert usd(FUNDS) - balance.available - balance.on_hold <= BUDGET

    @staticmethod
    def booked(session: Session, account: str) -> Decimal:
        cents = session.scalar(select(func.sum(Posting.cents)).where(Posting.account.startswith(account)))
        return from_cents(int(cents or 0))
