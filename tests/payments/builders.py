"""Examples in the states that decide about a bonus."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from itertools import count
from typing import Any

from sqlalchemy.orm import Session

from hits import validations
from hits.models import Assignment, Example, GoldItem, HitBatch, Round, Vote, Worker
from hits.states import AssignmentState, HitState, Verdict
from payments import approvals, planning
from payments.models import Payout
from tests import factories
from tests.payments.senders import ENDPOINT

_numbers = count(1)


def fooling_example(
    session: Session, *, batch: HitBatch, state: AssignmentState = AssignmentState.APPROVED, **fields: Any
) -> Example:
    """A statement that fooled the model and still waits for its readers."""
    hit = factories.make_hit(session, batch=batch)
    assignment = factories.make_assignment(session, hit=hit, state=state)
    return factories.make_example(session, attempt=factories.make_attempt(session, assignment=assignment), **fields)


def verified_example(session: Session, *, batch: HitBatch, votes: int = 0, **fields: Any) -> Example:
    """A statement that fooled the model and that its readers confirmed; ``votes`` of them have rows."""
    defaults: dict[str, Any] = {"verdict": Verdict.VALID_AND_MODEL_WRONG, "final_label": "negative"}
    example = fooling_example(session, batch=batch, **{**defaults, **fields})
    for _ in range(votes):
        factories.make_vote(session, example=example)
    return example


def plan(session: Session, now: datetime, *, endpoint: str = ENDPOINT, limit: Decimal | None = None) -> list[Payout]:
    """Follow, plan and authorise as one planning does, without a commit; return the new rows."""
    planning.follow(session, now)
    rows = planning.plan_bonuses(session, now)
    approvals.authorise(session, endpoint, limit, now)
    return rows


def assignment_of(session: Session, example: Example) -> Assignment:
    """The writer's assignment."""
    return session.get_one(Assignment, example.attempt.assignment_id)


def judge(
    session: Session,
    batch: HitBatch,
    right: int,
    wrong: int,
    *,
    worker: Worker | None = None,
    state: AssignmentState = AssignmentState.APPROVED,
    hit_state: HitState = HitState.CLOSED,
) -> Assignment:
    """One assignment in which so many gold items were judged rightly and wrongly."""
    hit = factories.make_hit(session, batch=batch, state=hit_state)
    assignment = factories.make_assignment(session, hit=hit, worker=worker, state=state)
    for number in range(right + wrong):
        item = known_item(session, batch.round)
        session.add(
            Vote(
                gold_item_id=item.id,
                validator_id=assignment.worker_id,
                assignment_id=assignment.id,
                label="neutral" if number < right else "negative",
                created_at=factories.NOON,
                counted_at=factories.NOON,
            )
        )
    session.flush()
    return assignment


def known_item(session: Session, round_: Round) -> GoldItem:
    number = next(_numbers)
    row = {"context": {"prompt": f"Day {number}."}, "answer": {"statement": f"Rain {number}."}, "label": "neutral"}
    item = validations.add_gold(session, round_, row, factories.NOON)
    assert item is not None
    return item
