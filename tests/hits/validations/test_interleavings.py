"""Whatever comes in whatever order, the counters are a recount and every example is resolved or waits with a reason."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits import validations
from hits.clock import FixedClock
from hits.db import Base, engine_for
from hits.errors import Refused
from hits.models import Assignment, Example, Hit, Lease, Vote, Worker
from hits.states import AssignmentState, HitKind, Moderation, Verdict
from hits.validations import Override, Policy, outcome, policy_of
from hits.validations.readers import why_waiting
from tests import factories as make

LABELS = ("negative", "positive", "neutral")
POLICIES = [Policy(2, 3), Policy(3, 5), Policy(2, 5, 3), Policy(2, 3, None, 2), Policy(1, 1)]
numbers = st.integers(min_value=0, max_value=1_000_000)


class Validation(RuleBasedStateMachine):
    """A round with a few writers who also read, moved at random by everybody at once."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = engine_for("sqlite://")
        Base.metadata.create_all(self.engine)
        self.session = Session(self.engine)
        self.clock = FixedClock(make.NOON)

    def teardown(self) -> None:
        self.session.close()
        self.engine.dispose()

    @initialize(policy=st.sampled_from(POLICIES), gold=st.integers(0, 1), items=st.integers(1, 3))
    def begin(self, policy: Policy, gold: int, items: int) -> None:
        self.round_ = make.make_round(
            self.session,
            agreeing_votes=policy.agreeing_votes,
            max_votes=policy.max_votes,
            split_votes=policy.split_votes,
            senior_value=policy.senior_value,
            gold_items=gold,
        )
        self.people = [make.make_worker(self.session) for _ in range(6)]
        for number in range(3):
            row = {"context": {"prompt": f"{number}"}, "answer": {"statement": f"Day {number} was grey."}}
            validations.add_gold(self.session, self.round_, {**row, "label": "neutral"}, self.clock.now())
        kind: dict[str, Any] = {"kind": HitKind.VALIDATION, "items": items}
        self.batches = [
            make.make_batch(self.session, round=self.round_, **kind),
            make.make_batch(self.session, round=self.round_, senior_value=2, **kind),
        ]
        self.creation = make.make_batch(self.session, round=self.round_)
        for number in range(4):
            self.collect(number)

    def person(self, number: int) -> Worker:
        return self.people[number % len(self.people)]

    def example(self, number: int) -> Example:
        every = self.session.scalars(select(Example).order_by(Example.id)).all()
        return every[number % len(every)]

    def assignment(self, number: int, *states: AssignmentState) -> Assignment | None:
        found = self.session.scalars(
            select(Assignment)
            .join(Assignment.hit)
            .where(Hit.batch_id.in_([batch.id for batch in self.batches]), Assignment.state.in_(states))
            .order_by(Assignment.id)
        ).all()
        return found[number % len(found)] if found else None

    @rule(number=numbers)
    def collect(self, number: int) -> None:
        """Somebody's fooling example comes in."""
        hit = make.make_hit(self.session, batch=self.creation)
        work = make.make_assignment(self.session, hit=hit, worker=self.person(number), state=AssignmentState.SUBMITTED)
        make.make_example(
            self.session, attempt=make.make_attempt(self.session, assignment=work), collected_at=self.clock.now()
        )

    @rule(number=numbers, senior=st.booleans())
    def open(self, number: int, senior: bool) -> None:
        """Somebody accepts a validation HIT and opens it; opening again changes nothing."""
        hit = make.make_hit(self.session, batch=self.batches[senior], max_assignments=9)
        row = make.make_assignment(
            self.session, hit=hit, worker=self.person(number), deadline_at=self.clock.now() + timedelta(minutes=30)
        )
        drawn = validations.draw(self.session, row, self.clock.now())
        assert validations.draw(self.session, row, self.clock.now()) == drawn
        assert all(lease.example is None or lease.example.writer_id != row.worker_id for lease in drawn)

    @rule(number=numbers)
    def return_and_take_again(self, number: int) -> None:
        row = self.assignment(number, AssignmentState.OPENED)
        if row is not None:
            again = make.make_assignment(
                self.session,
                hit=row.hit,
                worker=row.worker,
                deadline_at=self.clock.now() + timedelta(minutes=30),
            )
            validations.draw(self.session, again, self.clock.now())

    @rule(number=numbers, item=numbers, label=st.sampled_from(LABELS), flag=st.integers(0, 9))
    def vote(self, number: int, item: int, label: str, flag: int) -> None:
        row = self.assignment(number, AssignmentState.OPENED)
        items = validations.items_for(self.session, row) if row is not None else []
        if row is None or not items:
            return
        judgement: dict[str, Any] = {"flag_reason": "insult"} if flag == 0 else {"label": label}
        try:
            validations.record_vote(self.session, row, items[item % len(items)].id, now=self.clock.now(), **judgement)
        except Refused:
            assert row.deadline_at is not None
            assert self.clock.now() >= row.deadline_at

    @rule(number=numbers, label=st.sampled_from(LABELS), partial=st.booleans())
    def save(self, number: int, label: str, partial: bool) -> None:
        row = self.assignment(number, AssignmentState.OPENED)
        if row is None or (row.deadline_at is not None and self.clock.now() >= row.deadline_at):
            return
        items = validations.items_for(self.session, row)
        judged = validations.draft_votes(self.session, row)
        if not items or (partial and not judged):
            return
        for item in [] if partial else items:
            if item.id not in judged:
                validations.record_vote(self.session, row, item.id, label=label, now=self.clock.now())
        validations.save_votes(self.session, row, self.clock.now(), partial=partial)

    @rule(number=numbers)
    def show_submitted(self, number: int) -> None:
        """The marketplace shows an assignment, saved here or not, in time or late; it is read twice."""
        row = self.assignment(number, AssignmentState.SAVED, AssignmentState.OPENED)
        if row is not None:
            row.state = AssignmentState.SUBMITTED
            for _ in range(2):
                validations.count_votes(self.session, row, self.clock.now())

    @rule(number=numbers)
    def reject(self, number: int) -> None:
        row = self.assignment(number, AssignmentState.SAVED, AssignmentState.OPENED, AssignmentState.SUBMITTED)
        if row is not None:
            row.state = AssignmentState.REJECTED
            for _ in range(2):
                validations.withdraw_votes(self.session, row, self.clock.now())
            validations.release(self.session, row)

    @rule(number=numbers)
    def undo_a_rejection(self, number: int) -> None:
        row = self.assignment(number, AssignmentState.REJECTED)
        if row is not None:
            row.state = AssignmentState.SUBMITTED
            validations.restore_votes(self.session, row, self.clock.now())
            validations.count_votes(self.session, row, self.clock.now())

    @rule(minutes=st.sampled_from([1, 10, 40, 200]))
    def wait(self, minutes: int) -> None:
        self.clock.advance(timedelta(minutes=minutes))

    @rule()
    def run_jobs(self) -> None:
        validations.release_expired(self.session, self.round_, self.clock.now())
        validations.release_unsubmitted(self.session, self.creation.endpoint, self.clock.now())
        for example in self.session.scalars(select(Example).order_by(Example.id)).all():
            validations.decide(self.session, example, self.clock.now())

    @rule(number=numbers, upheld=st.booleans())
    def moderate(self, number: int, upheld: bool) -> None:
        example = self.example(number)
        if example.verdict is Verdict.FLAGGED:
            validations.moderate(self.session, example, upheld=upheld, reason="seen", now=self.clock.now())

    @rule(number=numbers, label=st.sampled_from([None, *LABELS]), lift=st.booleans())
    def override(self, number: int, label: str | None, lift: bool) -> None:
        example = self.example(number)
        try:
            if lift:
                validations.lift_override(self.session, example, self.clock.now())
            else:
                validations.override(self.session, example, label=label, reason="seen", now=self.clock.now())
        except Refused:
            pass

    @rule(number=numbers)
    def retract(self, number: int) -> None:
        if number % 4 == 0:
            validations.retract(self.session, self.example(number), reason="asked for", now=self.clock.now())

    @invariant()
    def counters_are_a_recount(self) -> None:
        for example in self.session.scalars(select(Example)):
            counted = [
                vote
                for vote in self.session.scalars(select(Vote).where(Vote.example_id == example.id))
                if vote.counted_at is not None
            ]
            voters = {vote.validator_id for vote in counted}
            leases = self.session.scalars(select(Lease).where(Lease.example_id == example.id)).all()
            holding = [lease for lease in leases if lease.place is not None and lease.validator_id not in voters]
            labels = [vote.label for vote in counted if vote.label is not None]
            assert example.leased == len(holding)
            assert len(labels) + len(holding) <= example.round.max_votes
            assert example.writer_id not in {lease.validator_id for lease in leases} | voters
            self.check_votes_wanted(example, counted, labels)

    def check_votes_wanted(self, example: Example, counted: list[Vote], labels: list[str]) -> None:
        dismissed = example.moderation is Moderation.DISMISSED
        flags = sum(
            vote.flag_reason is not None
            and (not dismissed or (vote.counted_at or make.NOON) > (example.moderated_at or make.NOON))
            for vote in counted
        )
        said = outcome(
            example.goal_label,
            example.model_label,
            labels,
            flags,
            policy=policy_of(example.round),
            moderation=example.moderation,
            override=Override(example.override_label) if example.overridden_at is not None else None,
        )
        waits = example.retracted_at is None and example.verdict in (Verdict.PENDING, Verdict.FLAGGED)
        assert example.votes_wanted == (said.votes_wanted if waits else 0)
        # No place is offered that could bring more votes than the round allows.
        if waits and said.votes_wanted:
            assert example.votes_wanted + len(labels) <= example.round.max_votes

    @invariant()
    def whoever_is_open_has_a_reason(self) -> None:
        open_ = self.session.scalar(
            select(func.count())
            .select_from(Example)
            .where(Example.verdict.in_((Verdict.PENDING, Verdict.FLAGGED)), Example.retracted_at.is_(None))
        )
        assert sum(why_waiting(self.session, self.round_).values()) == open_

    @invariant()
    def what_was_decided_is_decided_again_the_same(self) -> None:
        for example in self.session.scalars(
            select(Example).where(Example.verdict.not_in((Verdict.PENDING, Verdict.NOT_VALIDATED)))
        ).all():
            stale = self.session.scalar(
                select(func.count())
                .select_from(Vote)
                .where(Vote.example_id == example.id, Vote.counted_at >= example.decided_at)
            )
            before = (example.verdict, example.final_label)
            if not stale:
                validations.decide(self.session, example, self.clock.now())
                assert (example.verdict, example.final_label) == before

    @invariant()
    def nobody_judges_anything_twice(self) -> None:
        pairs = Counter(
            (vote.example_id, vote.gold_item_id, vote.validator_id) for vote in self.session.scalars(select(Vote))
        )
        assert not pairs or max(pairs.values()) == 1


@pytest.fixture
def quiet() -> dict[str, Any]:
    return {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": False}


def test_any_interleaving_keeps_the_rules(quiet: dict[str, Any]) -> None:
    run_state_machine_as_test(Validation, settings=settings(max_examples=8, stateful_step_count=25, **quiet))


@pytest.mark.slow
def test_many_long_interleavings_keep_the_rules(quiet: dict[str, Any]) -> None:
    run_state_machine_as_test(Validation, settings=settings(max_examples=120, stateful_step_count=50, **quiet))
