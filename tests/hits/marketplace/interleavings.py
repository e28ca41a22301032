"""A machine of random interleavings of everybody's actions, time and restarts, with what must stay true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import select

from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import MarketplaceError, OperatorError, SiteError
from hits.marketplace.review_policies import KNOWN_ANSWERS, PLURALITY
from hits.marketplace.tables import (
    AssignmentRow,
    Base,
    BonusRow,
    HitRow,
    PayoutItemRow,
    PayoutRunRow,
    QualificationRequestRow,
    QualificationTypeRow,
    RequesterRow,
    WorkerRow,
)
from tests.hits.marketplace.forms_for_tests import KEY, TEST
from tests.hits.marketplace.market import HIT_PROPERTIES, Market, external_question
from tests.hits.marketplace.recount import check_groups
from tests.hits.marketplace.test_review_policies import policy

WORKERS = 4
OPERATOR = Actor.operator("olga")

#: How often each operation and each step on the site ended how, in all runs of this process.
DRAWN: Counter[tuple[str, str]] = Counter()

LEGAL_MOVES = {
    "Accepted": {"Submitted", "Returned", "Abandoned", "Approved", "Rejected"},
    "Submitted": {"Approved", "Rejected"},
    "Rejected": {"Approved"},
    "Approved": set(),
    "Returned": set(),
    "Abandoned": set(),
}
LEGAL_REQUESTS = {
    "Testing": {"Pending", "Granted", "Rejected"},
    "Pending": {"Granted", "Rejected"},
    "Granted": set(),
    "Rejected": set(),
}
KINDS: list[dict[str, Any]] = [
    {},
    {"RetryDelayInSeconds": 60},
    {"AutoGranted": True, "AutoGrantedValue": 5},
    {"Test": TEST, "TestDurationInSeconds": 600, "RetryDelayInSeconds": 60},
    {"Test": TEST, "TestDurationInSeconds": 600, "AnswerKey": KEY},
]
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

    def __init__(self) -> None:
        super().__init__()
        #: How many there are of what, as the preconditions of the next step see it.
        self.seen: Counter[str] = Counter()
        self.steps = 0

    @initialize(cents=st.integers(100, 3000), begun=st.booleans())
    def open(self, cents: int, begun: bool) -> None:
        self.market = Market()
        self.rich_id = self.market.requester_id
        self.requester_id = self.engine.create_requester("Poor lab").requester_id
        self.deposited = Decimal(cents) / 100
        self.engine.top_up(self.requester_id, self.deposited)
        self.workers = [self.market.worker() for _ in range(WORKERS)]
        self.states: dict[str, str] = {}
        self.requests: dict[str, str] = {}
        self.disposed: set[str] = set()
        self.runs: dict[str, str] = {}
        self.tokens = 0
        self.earned = Decimal(0)
        if begun:
            self.begin()

    def begin(self) -> None:
        """Start with work that is approved and work that is rejected: few walks come so far by chance."""
        properties = {**HIT_PROPERTIES, "Reward": "0.13", "MaxAssignments": 3, "LifetimeInSeconds": 86_400}
        assert self.call("CreateHIT", **properties, Question=external_question()) is None
        for worker_id in self.workers[:2]:
            assert self.site("accept", lambda worker_id=worker_id: self.engine.accept(worker_id, self.hits()[0]))  # type: ignore[misc]
        (first, _), (second, _) = self.assignments("Accepted")
        for assignment_id in (first, second):
            assert self.site("submit", lambda a=assignment_id: self.engine.external_submit(a, {"a": ["1"]}))  # type: ignore[misc]
        assert self.call("ApproveAssignment", AssignmentId=first) is None
        assert self.call("RejectAssignment", AssignmentId=second, RequesterFeedback="Seen.") is None

    @property
    def engine(self) -> Marketplace:
        return self.market.engine

    def teardown(self) -> None:
        if hasattr(self, "market"):
            self.engine.close()

    def stored(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table."""
        with self.engine.store.session(writes=False) as session:
            return {
                name: sorted((tuple(row) for row in session.execute(select(table))), key=repr)
                for name, table in Base.metadata.tables.items()
            }

    def call(self, operation: str, **params: Any) -> str | None:
        """Carry out an operation; a refusal must leave everything that is stored as it was."""
        self.engine.settle()
        before = self.stored()
        refusal = None
        try:
            self.engine.call(self.requester_id, operation, params)
        except MarketplaceError as error:
            refusal = error
        if refusal is None:
            DRAWN[operation, "done"] += 1
            return None
        assert refusal.type in {"RequestError", "ParameterValidationError"}
        assert self.stored() == before
        DRAWN[operation, str(refusal.turk_code)] += 1
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

    @precondition(lambda self: self.seen["HIT"] < 4)
    @rule(
        places=st.sampled_from([1, 2, 3, 10]),
        reward=st.sampled_from(["0.00", "0.01", "0.13", "1.00"]),
        life=st.sampled_from([30, 600, 86_400]),
        delay=st.sampled_from([0, 60, 2_592_000]),
        policies=st.sampled_from(POLICIES),
        guarded=st.sampled_from([None, None, "Exists", "GreaterThan"]),
    )
    def create(
        self, places: int, reward: str, life: int, delay: int, policies: dict[str, Any], guarded: str | None
    ) -> None:
        refusal = self.call(
            "CreateHIT",
            **{**HIT_PROPERTIES, "Reward": reward},
            MaxAssignments=places,
            LifetimeInSeconds=life,
            AutoApprovalDelayInSeconds=delay,
            Question=external_question(),
            **({"QualificationRequirements": self.requirements(guarded)} if guarded else {}),
            **policies,
        )
        assert refusal in {
            None,
            "AWS.MechanicalTurk.InsufficientFunds",
            *({"AWS.MechanicalTurk.InvalidQualificationTypeState"} if guarded else ()),
        }

    def requirements(self, comparator: str) -> list[dict[str, Any]]:
        """What a guarded HIT asks for: the newest qualification type, held at all or with more than 1."""
        values = {"IntegerValues": [1]} if comparator == "GreaterThan" else {}
        return [{"QualificationTypeId": one, "Comparator": comparator, **values} for one in self.kinds()[-1:]]

    def may_accept(self, worker_id: str, hit_id: str) -> bool:
        """Whether the requester's blocks and requirements let a worker in, as the API tells it."""
        self.engine.settle()
        blocks = self.engine.call(self.requester_id, "ListWorkerBlocks", {})["WorkerBlocks"]
        if worker_id in {block["WorkerId"] for block in blocks}:
            return False
        hit = self.engine.call(self.requester_id, "GetHIT", {"HITId": hit_id})["HIT"]
        for needed in hit.get("QualificationRequirements", []):
            asked = {"QualificationTypeId": needed["QualificationTypeId"], "WorkerId": worker_id}
            try:
                score = self.engine.call(self.requester_id, "GetQualificationScore", asked)["Qualification"]
            except MarketplaceError:
                return False
            if needed["Comparator"] == "GreaterThan" and score["IntegerValue"] <= 1:
                return False
        return True

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data(), worker=st.integers(0, WORKERS - 1))
    def accept_the_next_one(self, data: st.DataObject, worker: int) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        group = self.engine.call(self.requester_id, "GetHIT", {"HITId": hit_id})["HIT"]["HITGroupId"]
        self.site("accept next", lambda: self.engine.accept_next(self.workers[worker], group))

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data(), worker=st.integers(0, WORKERS - 1))
    def accept(self, data: st.DataObject, worker: int) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        worker_id, allowed = self.workers[worker], self.may_accept(self.workers[worker], hit_id)
        holds = hit_id in {held.hit_id for held in self.engine.held(worker_id)}
        done = self.site("accept", lambda: self.engine.accept(worker_id, hit_id))
        assert allowed or holds or not done

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data(), rejected=st.booleans(), answers=st.lists(st.sampled_from("12"), min_size=9, max_size=9))
    def work_and_review(self, data: st.DataObject, rejected: bool, answers: list[str]) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        for worker_id in self.workers:
            self.site("accept", lambda worker_id=worker_id: self.engine.accept(worker_id, hit_id))  # type: ignore[misc]
        for number, (assignment_id, _worker) in enumerate(self.assignments("Accepted")):
            given = {"a": [answers[number % 9]]}
            self.site("submit", lambda a=assignment_id, g=given: self.engine.external_submit(a, g))  # type: ignore[misc]
        for assignment_id, _worker in self.assignments("Submitted")[:1]:
            operation = "RejectAssignment" if rejected else "ApproveAssignment"
            assert self.call(operation, AssignmentId=assignment_id, RequesterFeedback="Seen.") is None

    @precondition(lambda self: self.seen["Assignment Accepted"])
    @rule(data=st.data(), answer=st.sampled_from("12"))
    def submit(self, data: st.DataObject, answer: str) -> None:
        assignment_id, _worker = data.draw(st.sampled_from(self.assignments("Accepted")))
        self.site("submit", lambda: self.engine.external_submit(assignment_id, {"a": [answer]}))

    @rule(worker=st.integers(0, WORKERS - 1), operation=st.sampled_from(["CreateWorkerBlock", "DeleteWorkerBlock"]))
    def block_or_unblock(self, worker: int, operation: str) -> None:
        assert self.call(operation, WorkerId=self.workers[worker], Reason="r") is None

    def kinds(self) -> list[str]:
        """The ids of the qualification types that are not deleted, oldest first."""
        with self.engine.store.session(writes=False) as session:
            query = select(QualificationTypeRow.qualification_type_id).where(QualificationTypeRow.deleted_at.is_(None))
            return list(session.scalars(query.order_by(QualificationTypeRow.seq)))

    @precondition(lambda self: self.seen["QualificationType"] < 3)
    @rule(kind=st.sampled_from(KINDS), name=st.sampled_from("abc"))
    def create_qualification_type(self, kind: dict[str, Any], name: str) -> None:
        refusal = self.call(
            "CreateQualificationType", Name=name, Description="d", QualificationTypeStatus="Active", **kind
        )
        assert refusal in {None, "AWS.MechanicalTurk.QualificationTypeAlreadyExists"}

    @precondition(lambda self: self.seen["QualificationType"])
    @rule(data=st.data(), status=st.sampled_from(["Active", "Active", "Inactive"]))
    def update_qualification_type(self, data: st.DataObject, status: str) -> None:
        kind = data.draw(st.sampled_from(self.kinds()))
        assert self.call("UpdateQualificationType", QualificationTypeId=kind, QualificationTypeStatus=status) is None

    @precondition(lambda self: self.seen["QualificationType"] > 1)
    @rule()
    def delete_qualification_type(self) -> None:
        assert self.call("DeleteQualificationType", QualificationTypeId=self.kinds()[0]) is None

    @precondition(lambda self: self.seen["QualificationType"])
    @rule(data=st.data(), worker=st.integers(0, WORKERS - 1), right=st.booleans())
    def ask_for_a_qualification(self, data: st.DataObject, worker: int, right: bool) -> None:
        kind, worker_id = data.draw(st.sampled_from(self.kinds())), self.workers[worker]
        self.site("request", lambda: self.engine.request_qualification(worker_id, kind))
        begun = [one for one in self.open_requests("Testing") if one[1:] == (worker_id, kind)]
        if begun and right:
            answers = {"question-1": ["blue"], "question-2": ["2", "3"]}
            self.site("test", lambda: self.engine.submit_qualification_test(worker_id, begun[0][0], answers))

    def open_requests(self, state: str) -> list[tuple[str, str, str]]:
        """Request, worker and qualification type ids of the requests in a state."""
        row = QualificationRequestRow
        with self.engine.store.session(writes=False) as session:
            query = select(row.request_id, row.worker_id, row.qualification_type_id).where(row.state == state)
            return [(found[0], found[1], found[2]) for found in session.execute(query.order_by(row.seq))]

    @precondition(lambda self: self.seen["Request Testing"])
    @rule(data=st.data(), sky=st.sampled_from(["blue", "red"]))
    def hand_in_a_test(self, data: st.DataObject, sky: str) -> None:
        request_id, worker_id, _kind = data.draw(st.sampled_from(self.open_requests("Testing")))
        answers = {"question-1": [sky], "question-2": ["2"]}
        self.site("test", lambda: self.engine.submit_qualification_test(worker_id, request_id, answers))

    @precondition(lambda self: self.seen["Request Pending"])
    @rule(operation=st.sampled_from(["AcceptQualificationRequest", "RejectQualificationRequest"]))
    def decide_a_request(self, operation: str) -> None:
        request_id = self.open_requests("Pending")[0][0]
        assert self.call(operation, QualificationRequestId=request_id) is None
        assert self.call(operation, QualificationRequestId=request_id) is not None

    @precondition(lambda self: self.seen["QualificationType"])
    @rule(data=st.data(), worker=st.integers(0, WORKERS - 1), value=st.sampled_from([None, 0, 1, 7]))
    def grant_or_revoke(self, data: st.DataObject, worker: int, value: int | None) -> None:
        about = {
            "QualificationTypeId": data.draw(st.sampled_from(self.kinds())),
            "WorkerId": self.workers[worker],
        }
        if value is None:
            self.call("DisassociateQualificationFromWorker", **about)
        else:
            assert self.call("AssociateQualificationWithWorker", IntegerValue=value, **about) is None

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data(), active=st.booleans())
    def want_events(self, data: st.DataObject, active: bool) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        spec = {
            "Destination": "lab@example.org",
            "Transport": "Email",
            "Version": "2014-08-15",
            "EventTypes": ["AssignmentSubmitted", "HITReviewable"],
        }
        type_id = self.engine.call(self.requester_id, "GetHIT", {"HITId": hit_id})["HIT"]["HITTypeId"]
        self.call("UpdateNotificationSettings", HITTypeId=type_id, Notification=spec, Active=active)
        self.call("SendTestEventNotification", Notification=spec, TestEventType="Ping")
        self.call("NotifyWorkers", Subject="s", MessageText="m", WorkerIds=self.workers)

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data())
    def another_requester_finds_nothing(self, data: st.DataObject) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        mine = [("DeleteHIT", {"HITId": hit_id}), ("UpdateHITReviewStatus", {"HITId": hit_id})]
        mine += [("ApproveAssignment", {"AssignmentId": one}) for one, _worker in self.assignments()[:2]]
        mine += [("DeleteQualificationType", {"QualificationTypeId": one}) for one in self.kinds()[:1]]
        self.engine.settle()
        before = self.stored()
        for operation, params in mine:
            with pytest.raises(MarketplaceError) as caught:
                self.engine.call(self.rich_id, operation, params)
            assert str(caught.value.turk_code).endswith("DoesNotExist")
        assert self.stored() == before

    @precondition(lambda self: self.steps % 8 == 7)
    @rule()
    def restart(self) -> None:
        # What a new process finds is the database and nothing else.
        before, old, market = self.stored(), self.engine, self.market
        market.engine = Marketplace(market.url, settings=market.settings, clock=market.clock)
        with old.store.engine.connect() as from_there, self.engine.store.engine.connect() as to_here:
            there: Any = from_there.connection.driver_connection
            there.rollback()
            there.backup(to_here.connection.driver_connection)
        old.close()
        assert self.stored() == before

    @rule(cents=st.integers(1, 500))
    def top_up(self, cents: int) -> None:
        self.deposited += Decimal(cents) / 100
        assert self.engine.top_up(self.requester_id, Decimal(cents) / 100).deposited == self.deposited

    @precondition(lambda self: self.seen["Assignment Rejected"])
    @rule(data=st.data())
    def dispute(self, data: st.DataObject) -> None:
        assignment_id, worker_id = data.draw(st.sampled_from(self.assignments("Rejected")))
        self.site("dispute", lambda: self.engine.open_dispute(worker_id, assignment_id, "It was right."))

    @precondition(lambda self: self.seen["Dispute"])
    @rule(data=st.data(), overturned=st.booleans())
    def decide_a_dispute(self, data: st.DataObject, overturned: bool) -> None:
        # Decided ones are drawn only when none is open: a second decision must be refused, but is the rarer story.
        listed = self.engine.disputes().entries or self.engine.disputes(state=None).entries
        found = [one.dispute_id for one in listed]
        dispute_id = data.draw(st.sampled_from(found))
        decide = self.engine.overturn_dispute if overturned else self.engine.uphold_dispute
        self.site("overturn" if overturned else "uphold", lambda: decide(dispute_id, "Seen.", by=OPERATOR))

    @precondition(lambda self: self.seen["Assignment Approved"])
    @rule(last=st.sampled_from(["stays drafted", "paid", "cancelled"]))
    def pay_out(self, last: str) -> None:
        drafted = [run for run in self.engine.payout_runs().entries if run.state == "Drafted"]
        if not drafted:
            self.site("draft", lambda: self.engine.draft_payout_run(by=OPERATOR))
        for run in self.engine.payout_runs().entries:
            if last == "paid":
                self.site("pay", lambda run=run: self.engine.mark_payout_run_paid(run.run_id, "r", by=OPERATOR))  # type: ignore[misc]
            if last == "cancelled":
                self.site("cancel", lambda run=run: self.engine.cancel_payout_run(run.run_id, by=OPERATOR))  # type: ignore[misc]

    @precondition(lambda self: self.seen["HIT"] > 2)
    @rule(data=st.data())
    def take_down(self, data: st.DataObject) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        self.site("take down", lambda: self.engine.take_down(hit_id, "Against the rules.", by=OPERATOR))

    @precondition(lambda self: self.seen["HIT"] > 1)
    @rule(data=st.data())
    def move_to_another_type(self, data: st.DataObject) -> None:
        moved, other = (data.draw(st.sampled_from(self.hits())) for _ in range(2))
        type_id = self.engine.call(self.requester_id, "GetHIT", {"HITId": other})["HIT"]["HITTypeId"]
        self.call("UpdateHITTypeOfHIT", HITId=moved, HITTypeId=type_id)

    @precondition(lambda self: self.seen["Assignment"])
    @rule(data=st.data())
    def return_any(self, data: st.DataObject) -> None:
        assignment_id, worker_id = data.draw(st.sampled_from(self.assignments("Accepted") or self.assignments()))
        self.site("return", lambda: self.engine.return_assignment(worker_id, assignment_id))

    @precondition(lambda self: self.seen["Assignment"])
    @rule(data=st.data(), override=st.booleans())
    def approve(self, data: st.DataObject, override: bool) -> None:
        assignment_id, _worker = data.draw(st.sampled_from(self.assignments("Submitted") or self.assignments()))
        self.call("ApproveAssignment", AssignmentId=assignment_id, OverrideRejection=override)

    @precondition(lambda self: self.seen["Assignment"])
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        assignment_id, _worker = data.draw(st.sampled_from(self.assignments("Submitted") or self.assignments()))
        self.call("RejectAssignment", AssignmentId=assignment_id, RequesterFeedback="No.")

    @precondition(lambda self: self.seen["Assignment Rejected"])
    @rule(data=st.data())
    def override(self, data: st.DataObject) -> None:
        assignment_id, _worker = data.draw(st.sampled_from(self.assignments("Rejected")))
        self.call("ApproveAssignment", AssignmentId=assignment_id, OverrideRejection=True)

    @precondition(lambda self: self.seen["Assignment"])
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

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data(), added=st.integers(1, 3))
    def extend(self, data: st.DataObject, added: int) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        self.call("CreateAdditionalAssignmentsForHIT", HITId=hit_id, NumberOfAdditionalAssignments=added)

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data(), ahead=st.sampled_from([None, 60, 86_400]))
    def change_expiration(self, data: st.DataObject, ahead: int | None) -> None:
        hit_id = data.draw(st.sampled_from(self.hits()))
        moment = 0 if ahead is None else (self.market.clock.now() + timedelta(seconds=ahead))
        self.call("UpdateExpirationForHIT", HITId=hit_id, ExpireAt=moment)

    @precondition(lambda self: self.seen["HIT"])
    @rule(data=st.data(), operation=st.sampled_from(["DeleteHIT", "UpdateHITReviewStatus"]))
    def finish(self, data: st.DataObject, operation: str) -> None:
        self.call(operation, HITId=data.draw(st.sampled_from(self.hits())))

    @rule(seconds=st.sampled_from([1, 59, 600, 86_400, 30 * 86_400, 121 * 86_400]))
    def pass_time(self, seconds: int) -> None:
        self.market.clock.advance(seconds=seconds)

    def site(self, name: str, action: Callable[[], object]) -> bool:
        """Let a worker or an operator do something; a refusal must leave everything that is stored as it was."""
        self.engine.settle()
        before = self.stored()
        try:
            action()
        except (SiteError, OperatorError) as error:
            assert self.stored() == before
            DRAWN[name, type(error).__name__] += 1
            return False
        DRAWN[name, "done"] += 1
        return True

    @invariant()
    def counters_are_a_recount(self) -> None:
        if not hasattr(self, "market"):
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
    def groups_are_a_recount(self) -> None:
        if not hasattr(self, "market"):
            return
        with self.engine.store.session(writes=False) as session:
            check_groups(session)

    @invariant()
    def money_is_conserved_to_the_cent(self) -> None:
        if not hasattr(self, "market"):
            return
        balance = self.engine.balance(self.requester_id)
        entries = self.engine.account_entries(self.requester_id)
        assert balance.deposited == self.deposited == balance.available + balance.on_hold + balance.spent
        assert balance.available >= 0
        assert self.engine.balance(self.rich_id).available == Decimal("1000.00")
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
        # Asked only when it should have changed: it is one more call for each worker.
        if Decimal(paid) / 100 != self.earned:
            self.earned = sum((self.engine.earnings(worker_id).approved for worker_id in workers), Decimal(0))
        assert self.earned == Decimal(paid) / 100

    @invariant()
    def no_earning_is_paid_out_twice(self) -> None:
        if not hasattr(self, "market"):
            return
        with self.engine.store.session(writes=False) as session:
            runs = {row.run_id: row.state for row in session.scalars(select(PayoutRunRow))}
            items = list(session.scalars(select(PayoutItemRow).where(PayoutItemRow.released_at.is_(None))))
            assert all(runs[item.run_id] != "Cancelled" for item in items)
            in_runs: Counter[str] = Counter()
            for item in items:
                in_runs[item.worker_id] += item.amount_cents
            approved = (
                select(AssignmentRow.worker_id, HitRow.reward_cents)
                .join(HitRow, HitRow.hit_id == AssignmentRow.hit_id)
                .where(AssignmentRow.state == "Approved")
            )
            earned: Counter[str] = Counter()
            for worker_id, cents in [
                *session.execute(approved),
                *session.execute(select(BonusRow.worker_id, BonusRow.amount_cents)),
            ]:
                earned[worker_id] += cents
        for worker_id in self.workers:
            told = self.engine.worker_payouts(worker_id)
            assert told.earned == Decimal(earned[worker_id]) / 100 == told.open + told.being_paid + told.paid
            assert told.being_paid + told.paid == Decimal(in_runs[worker_id]) / 100
            assert told.open >= 0
        assert all(state in {"Drafted", runs[run_id]} for run_id, state in self.runs.items())
        self.runs = runs

    @invariant()
    def assignments_move_legally(self) -> None:
        if not hasattr(self, "market"):
            return
        # The invariants come in the order of their names, and this one's states are what the next step draws from.
        self.engine.settle()
        with self.engine.store.session(writes=False) as session:
            now = {row.assignment_id: row.state for row in session.scalars(select(AssignmentRow))}
            requests = {row.request_id: row.state for row in session.scalars(select(QualificationRequestRow))}
            disposed = set(session.scalars(select(HitRow.hit_id).where(HitRow.status == "Disposed")))
        for assignment_id, state in now.items():
            before = self.states.get(assignment_id, "Accepted")
            assert state == before or state in LEGAL_MOVES[before], (before, state)
        for request_id, state in requests.items():
            before = self.requests.get(request_id, state)
            assert state == before or state in LEGAL_REQUESTS[before], (before, state)
        assert self.disposed <= disposed
        self.states, self.requests, self.disposed = now, requests, disposed

    @invariant()
    def look_around(self) -> None:
        if not hasattr(self, "market"):
            return
        self.seen = Counter(
            {
                "HIT": len(self.hits()),
                "Assignment": len(self.states),
                "QualificationType": len(self.kinds()),
                "Dispute": len(self.engine.disputes(state=None).entries),
                **{f"Assignment {state}": count for state, count in Counter(self.states.values()).items()},
                **{f"Request {state}": count for state, count in Counter(self.requests.values()).items()},
            }
        )
        self.steps += 1
