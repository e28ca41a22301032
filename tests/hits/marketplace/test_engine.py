"""Random interleavings of everybody's actions and of time: counters, money and states stay right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from hits.marketplace.errors import MarketplaceError, SiteError
from hits.marketplace.review_policies import KNOWN_ANSWERS, PLURALITY
from hits.marketplace.tables import AssignmentRow, BonusRow, HitRow, RequesterRow, WorkerRow
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question
from tests.hits.marketplace.test_review_policies import policy

WORKERS = 4
LEGAL_MOVES = {
    "Accepted": {"Submitted", "Returned", "Abandoned", "Approved", "Rejected"},
    "Submitted": {"Approved", "Rejected"},
    "Rejected": {"Approved"},
    "Approved": set(),
    "Returned": set(),
    "Abandoned": set(),
}
KNOWN = {"a": ["1"]}
EXTENDS = {"ExtendMaximumAssignments": "4", "ExtendMinimumTimeInSeconds": "60"}
AGREEMENT = {"QuestionIds": "a", "QuestionAgreementThreshold": "60"}
POLICIES: list[dict[str, Any]] = [
    {},
    {"AssignmentReviewPolicy": policy(KNOWN_ANSWERS, KNOWN, ApproveIfKnownAnswerScoreIsAtLeast="100")},
    {"AssignmentReviewPolicy": policy(KNOWN_ANSWERS, KNOWN, RejectIfKnownAnswerScoreIsLessThan="100")},
    {"AssignmentReviewPolicy": policy(KNOWN_ANSWERS, KNOWN, ExtendIfKnownAnswerScoreIsLessThan="100", **EXTENDS)},
    {"HITReviewPolicy": policy(PLURALITY, **AGREEMENT, ExtendIfHITAgreementScoreIsLessThan="100", **EXTENDS)},
    {
        "HITReviewPolicy": policy(
            PLURALITY,
            **AGREEMENT,
            ApproveIfWorkerAgreementScoreIsAtLeast="100",
            RejectIfWorkerAgreementScoreIsLessThan="1",
        )
    },
]


class Interleavings(RuleBasedStateMachine):
    """One requester with little money, four workers, and a clock that jumps."""

    @initialize(cents=st.integers(100, 3000))
    def open(self, cents: int) -> None:
        self.market = Market()
        self.engine = self.market.engine
        self.requester_id = self.engine.create_requester("Poor lab").requester_id
        self.deposited = Decimal(cents) / 100
        self.engine.top_up(self.requester_id, self.deposited)
        self.workers = [self.market.worker() for _ in range(WORKERS)]
        self.states: dict[str, str] = {}
        self.tokens = 0

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.engine.close()

    def call(self, operation: str, **params: Any) -> str | None:
        """Carry out an operation; a refusal must leave the money as it was."""
        self.engine.settle()
        before = self.engine.balance(self.requester_id)
        refusal = None
        try:
            self.engine.call(self.requester_id, operation, params)
        except MarketplaceError as error:
            refusal = error
        if refusal is None:
            return None
        assert refusal.type == "RequestError"
        assert self.engine.balance(self.requester_id) == before
        return refusal.turk_code

    def hits(self) -> list[str]:
        with self.engine.store.session(writes=False) as session:
            return list(session.scalars(select(HitRow.hit_id).order_by(HitRow.seq)))

    def assignments(self, *states: str) -> list[tuple[str, str]]:
        with self.engine.store.session(writes=False) as session:
            query = select(AssignmentRow.assignment_id, AssignmentRow.worker_id).order_by(AssignmentRow.seq)
            if states:
                query = query.where(AssignmentRow.state.in_(states))
            return [(row[0], row[1]) for row in session.execute(query)]

    @precondition(lambda self: len(self.hits()) < 4)
    @rule(
        places=st.sampled_from([1, 2, 3, 10]),
        reward=st.sampled_from(["0.00", "0.01", "0.13", "1.00"]),
        life=st.sampled_from([30, 600, 86_400]),
        delay=st.sampled_from([0, 60, 2_592_000]),
        policies=st.sampled_from(POLICIES),
    )
    def create(self, places: int, reward: str, life: int, delay: int, policies: dict[str, Any]) -> None:
        refusal = self.call(
            "CreateHIT",
            **{**HIT_PROPERTIES, "Reward": reward},
            MaxAssignments=places,
            LifetimeInSeconds=life,
            AutoApprovalDelayInSeconds=delay,
            Question=external_question(),
            **policies,
        )
        assert refusal in {None, "AWS.MechanicalTurk.InsufficientFunds"}

    @precondition(lambda self: self.hits())
    @rule(data=st.data(), worker=st.integers(0, WORKERS - 1))
    def accept(self, data: st.DataObject, worker: int) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        self.site(lambda: self.engine.accept(self.workers[worker], hit_id))

    @precondition(lambda self: self.hits())
    @rule(data=st.data(), rejected=st.booleans(), answers=st.lists(st.sampled_from("12"), min_size=9, max_size=9))
    def work_and_review(self, data: st.DataObject, rejected: bool, answers: list[str]) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        for worker_id in self.workers:
            self.site(lambda worker_id=worker_id: self.engine.accept(worker_id, hit_id))  # type: ignore[misc]
        for number, (assignment_id, _worker) in enumerate(self.assignments("Accepted")):
            given = {"a": [answers[number % 9]]}
            self.site(lambda a=assignment_id, g=given: self.engine.external_submit(a, g))  # type: ignore[misc]
        for assignment_id, _worker in self.assignments("Submitted")[:1]:
            operation = "RejectAssignment" if rejected else "ApproveAssignment"
            assert self.call(operation, AssignmentId=assignment_id, RequesterFeedback="Seen.") is None

    @precondition(lambda self: self.assignments("Accepted"))
    @rule(data=st.data(), answer=st.sampled_from("12"))
    def submit(self, data: st.DataObject, answer: str) -> None:
        assignment_id, _worker = data.draw(st.sampled_from(self.assignments("Accepted")))
        self.site(lambda: self.engine.external_submit(assignment_id, {"a": [answer]}))

    @rule(worker=st.integers(0, WORKERS - 1), operation=st.sampled_from(["CreateWorkerBlock", "DeleteWorkerBlock"]))
    def block_or_unblock(self, worker: int, operation: str) -> None:
        assert self.call(operation, WorkerId=self.workers[worker], Reason="r") is None

    @precondition(lambda self: len(self.hits()) > 1)
    @rule(data=st.data())
    def move_to_another_type(self, data: st.DataObject) -> None:
        moved, other = (data.draw(st.sampled_from(self.hits())) for _ in range(2))
        type_id = self.engine.call(self.requester_id, "GetHIT", {"HITId": other})["HIT"]["HITTypeId"]
        self.call("UpdateHITTypeOfHIT", HITId=moved, HITTypeId=type_id)

    @precondition(lambda self: self.assignments())
    @rule(data=st.data())
    def return_any(self, data: st.DataObject) -> None:
        assignment_id, worker_id = data.draw(st.sampled_from(self.assignments()))
        self.site(lambda: self.engine.return_assignment(worker_id, assignment_id))

    @precondition(lambda self: self.assignments())
    @rule(data=st.data(), override=st.booleans())
    def approve(self, data: st.DataObject, override: bool) -> None:
        assignment_id, _worker = data.draw(st.sampled_from(self.assignments("Submitted") or self.assignments()))
        self.call("ApproveAssignment", AssignmentId=assignment_id, OverrideRejection=override)

    @precondition(lambda self: self.assignments())
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        assignment_id, _worker = data.draw(st.sampled_from(self.assignments("Submitted") or self.assignments()))
        self.call("RejectAssignment", AssignmentId=assignment_id, RequesterFeedback="No.")

    @precondition(lambda self: self.assignments("Rejected"))
    @rule(data=st.data())
    def override(self, data: st.DataObject) -> None:
        assignment_id, _worker = data.draw(st.sampled_from(self.assignments("Rejected")))
        self.call("ApproveAssignment", AssignmentId=assignment_id, OverrideRejection=True)

    @precondition(lambda self: self.assignments())
    @rule(data=st.data(), amount=st.sampled_from(["0.01", "0.50", "5.00"]), repeats=st.booleans())
    def bonus(self, data: st.DataObject, amount: str, repeats: bool) -> None:
        assignment_id, worker_id = data.draw(st.sampled_from(self.assignments()))
        self.tokens += 0 if repeats else 1
        token = f"token-{self.tokens}"
        self.call(
            "SendBonus",
            AssignmentId=assignment_id,
            WorkerId=worker_id,
            BonusAmount=amount,
            Reason="r",
            UniqueRequestToken=token,
        )

    @precondition(lambda self: self.hits())
    @rule(data=st.data(), added=st.integers(1, 3))
    def extend(self, data: st.DataObject, added: int) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        self.call("CreateAdditionalAssignmentsForHIT", HITId=hit_id, NumberOfAdditionalAssignments=added)

    @precondition(lambda self: self.hits())
    @rule(data=st.data(), ahead=st.sampled_from([None, 60, 86_400]))
    def change_expiration(self, data: st.DataObject, ahead: int | None) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        moment = 0 if ahead is None else (self.market.clock.now() + timedelta(seconds=ahead))
        self.call("UpdateExpirationForHIT", HITId=hit_id, ExpireAt=moment)

    @precondition(lambda self: self.hits())
    @rule(data=st.data(), operation=st.sampled_from(["DeleteHIT", "UpdateHITReviewStatus"]))
    def finish(self, data: st.DataObject, operation: str) -> None:
        self.call(operation, HITId=data.draw(st.sampled_from(self.hits())))

    @rule(seconds=st.sampled_from([1, 59, 600, 86_400, 30 * 86_400]))
    def pass_time(self, seconds: int) -> None:
        self.market.clock.advance(seconds=seconds)

    def site(self, action: Callable[[], object]) -> None:
        self.engine.settle()
        before = self.engine.balance(self.requester_id)
        try:
            action()
        except SiteError:
            assert self.engine.balance(self.requester_id) == before

    @invariant()
    def counters_are_a_recount(self) -> None:
        if not hasattr(self, "engine"):
            return
        self.engine.settle()
        now = self.market.clock.now()
        with self.engine.store.session(writes=False) as session:
            rows = list(session.scalars(select(AssignmentRow)))
            for hit in session.scalars(select(HitRow)):
                mine = Counter(row.state for row in rows if row.hit_id == hit.hit_id)
                assert hit.pending == mine["Accepted"]
                assert hit.submitted == mine["Submitted"]
                assert hit.completed == mine["Approved"] + mine["Rejected"]
                taken = hit.pending + hit.submitted + hit.completed
                if hit.status == "Disposed":
                    assert not mine["Accepted"] + mine["Submitted"]
                    continue
                assert hit.is_expired == (hit.expires_at <= now)
                assert hit.available == (0 if hit.is_expired else hit.max_assignments - taken)
                if hit.available:
                    assert hit.status == "Assignable"
                elif hit.pending:
                    assert hit.status == "Unassignable"
                else:
                    assert hit.status in {"Reviewable", "Reviewing"}
            live = Counter((row.hit_id, row.worker_id) for row in rows if row.state not in {"Returned", "Abandoned"})
            assert all(count == 1 for count in live.values())
            assert all(row.deadline > now for row in rows if row.state == "Accepted")

    @invariant()
    def money_is_conserved_to_the_cent(self) -> None:
        if not hasattr(self, "engine"):
            return
        balance = self.engine.balance(self.requester_id)
        entries = self.engine.account_entries(self.requester_id)
        assert balance.deposited == self.deposited == balance.available + balance.on_hold + balance.spent
        assert balance.available >= 0
        assert balance.on_hold == sum(entry.on_hold for entry in entries)
        assert balance.spent == sum(entry.spent for entry in entries)
        with self.engine.store.session(writes=False) as session:
            hits = {hit.hit_id: hit for hit in session.scalars(select(HitRow))}
            account = session.get_one(RequesterRow, self.requester_id)
            assert account.held_cents == sum(hit.held_cents for hit in hits.values())
            approved = select(AssignmentRow).where(AssignmentRow.state == "Approved")
            rewards = sum(hits[row.hit_id].unit_cents for row in session.scalars(approved))
            bonuses = sum(row.amount_cents + row.fee_cents for row in session.scalars(select(BonusRow)))
            assert account.spent_cents == rewards + bonuses
            workers = list(session.scalars(select(WorkerRow.worker_id)))
            paid = sum(hits[row.hit_id].reward_cents for row in session.scalars(approved))
        earned = sum(self.engine.earnings(worker_id).approved for worker_id in workers)
        assert earned == Decimal(paid) / 100

    @invariant()
    def assignments_move_legally(self) -> None:
        if not hasattr(self, "engine"):
            return
        with self.engine.store.session(writes=False) as session:
            now = {row.assignment_id: row.state for row in session.scalars(select(AssignmentRow))}
        for assignment_id, state in now.items():
            before = self.states.get(assignment_id, "Accepted")
            assert state == before or state in LEGAL_MOVES[before], (before, state)
        self.states = now


CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much]
TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(
    max_examples=10, stateful_step_count=20, deadline=None, suppress_health_check=CHECKS
)


@pytest.mark.slow
def test_many_more_interleavings() -> None:
    run_state_machine_as_test(
        Interleavings,
        settings=settings(max_examples=300, stateful_step_count=50, deadline=None, suppress_health_check=CHECKS),
    )
