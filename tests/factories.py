"""Small functions that build one row each, sound by default; a test names only what it is about.

They add to the session and flush, never commit.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.consent import text_of
from hits.db import Base
from hits.models import (
    Assignment,
    Attempt,
    ConsentText,
    Context,
    Example,
    Hit,
    HitBatch,
    Lease,
    ModelVersion,
    Round,
    Vote,
    Worker,
)
from hits.models.people import pseudonym_of
from hits.states import AssignmentState, AttemptState, HitKind, HitState, RoundState, Verdict
from hits.tasks import digest_of
from hits.validations import recount

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
PSEUDONYM_KEY = "pseudonyms of the tests"

_numbers = itertools.count(1)
Row = TypeVar("Row", bound=Base)


def _stored(session: Session, row: Row) -> Row:
    session.add(row)
    session.flush()
    return row


def make_worker(session: Session, **fields: Any) -> Worker:
    mturk_worker_id = fields.pop("mturk_worker_id", f"AWORKER{next(_numbers):06d}")
    defaults: dict[str, Any] = {
        "mturk_worker_id": mturk_worker_id,
        "pseudonym": pseudonym_of(mturk_worker_id, PSEUDONYM_KEY),
        "created_at": NOON,
    }
    return _stored(session, Worker(**{**defaults, **fields}))


def make_round(session: Session, **fields: Any) -> Round:
    """Round 1 of sentiment; asked for without fields a second time, the same one."""
    if not fields and (known := session.scalar(select(Round).where(Round.task_code == "sentiment", Round.number == 1))):
        return known
    defaults: dict[str, Any] = {"task_code": "sentiment", "number": 1, "task_version": 1, "created_at": NOON}
    defaults["state"] = RoundState.COLLECTING
    return _stored(session, Round(**{**defaults, **fields}))


def make_model_version(session: Session, **fields: Any) -> ModelVersion:
    defaults: dict[str, Any] = {
        "task_code": "sentiment",
        "model_id": "embedded:sentiment",
        "revision": f"r{next(_numbers)}",
        "labels": ["negative", "positive", "neutral"],
        "card": {},
        "first_seen_at": NOON,
    }
    return _stored(session, ModelVersion(**{**defaults, **fields}))


def make_context(session: Session, *, round: Round, **fields: Any) -> Context:
    values = fields.pop("fields", {"prompt": f"A train was late, story {next(_numbers)}."})
    defaults: dict[str, Any] = {
        "round_id": round.id,
        "fields": values,
        "digest": digest_of(values),
        "created_at": NOON,
    }
    return _stored(session, Context(**{**defaults, **fields}))


def make_batch(session: Session, *, round: Round | None = None, **fields: Any) -> HitBatch:
    """A batch of creation HITs; ``kind=HitKind.VALIDATION`` for the other sort."""
    kind = fields.get("kind", HitKind.CREATION)
    defaults: dict[str, Any] = {
        "round_id": (round or make_round(session)).id,
        "kind": kind,
        "key": f"batch-{next(_numbers)}",
        "endpoint": "http://127.0.0.1:8000",
        "title": "Write a statement that fools a sentiment model",
        "description": "Read a short prompt and write a statement.",
        "keywords": "writing",
        "reward": Decimal("0.30") if kind is HitKind.CREATION else Decimal("0.25"),
        "bonus": Decimal("0.30") if kind is HitKind.CREATION else Decimal("0.00"),
        "tries": 5 if kind is HitKind.CREATION else 1,
        "assignment_seconds": 1800,
        "auto_approval_seconds": 259_200,
        "lifetime_seconds": 604_800,
        "hit_type_id": f"TYPE{next(_numbers):06d}",
        "created_at": NOON,
    }
    return _stored(session, HitBatch(**{**defaults, **fields}))


def make_hit(session: Session, *, batch: HitBatch | None = None, **fields: Any) -> Hit:
    """A HIT that exists on the marketplace; a creation HIT gets a context and the goal "negative"."""
    batch = batch or make_batch(session)
    number = next(_numbers)
    defaults: dict[str, Any] = {
        "batch_id": batch.id,
        "position": number,
        "reference": f"hit-reference-{number}",
        "request_token": f"hit-token-{number}",
        "token_sent_at": NOON,
        "state": HitState.CREATED,
        "mturk_hit_id": f"HIT{number:06d}",
        "max_assignments": 1,
        "expires_at": NOON + timedelta(seconds=batch.lifetime_seconds),
        "created_at": NOON,
    }
    if batch.kind is HitKind.CREATION and "context_id" not in fields:
        defaults["context_id"] = make_context(session, round=session.get_one(Round, batch.round_id)).id
        defaults["goal_label"] = "negative"
    return _stored(session, Hit(**{**defaults, **fields}))


def make_validation_hit(session: Session, *, examples: list[Example], **fields: Any) -> Hit:
    """A validation HIT of the examples' round, of as many items; what its readers get is drawn from the queue."""
    if "batch" not in fields:
        fields["batch"] = make_batch(session, round=examples[0].round, kind=HitKind.VALIDATION, items=len(examples))
    return make_hit(session, **fields)


def make_lease(session: Session, *, assignment: Assignment, example: Example, **fields: Any) -> Lease:
    """An example that was drawn for the assignment; ``place=None`` for a lease that has ended."""
    mine = session.scalars(select(Lease.position).where(Lease.assignment_id == assignment.id)).all()
    held = session.scalars(select(Lease.place).where(Lease.example_id == example.id, Lease.place.is_not(None))).all()
    most = example.round.max_votes
    defaults: dict[str, Any] = {
        "assignment_id": assignment.id,
        "validator_id": assignment.worker_id,
        "example_id": example.id,
        "position": max(mine, default=0) + 1,
        "place": next((place for place in range(1, most + 1) if place not in held), None),
        "of_places": most,
        "drawn_at": NOON,
        "expires_at": NOON + timedelta(minutes=35) if assignment.state is AssignmentState.OPENED else None,
    }
    lease = _stored(session, Lease(**{**defaults, **fields}))
    recount(session, [example])
    return lease


def make_consent_text(session: Session) -> ConsentText:
    """The text that the workers of the tests have agreed to; not the one that the service asks about."""
    return text_of(session, "People agree to take part in the tests.", NOON)


def make_assignment(
    session: Session, *, hit: Hit | None = None, worker: Worker | None = None, **fields: Any
) -> Assignment:
    """An open assignment; ``state=AssignmentState.SUBMITTED`` and later also get their times."""
    state = fields.get("state", AssignmentState.OPENED)
    number = next(_numbers)
    defaults: dict[str, Any] = {
        "consent_text_id": make_consent_text(session).id,
        "warned_at": NOON,
        "mturk_assignment_id": f"ASSIGNMENT{number:06d}",
        "hit_id": (hit or make_hit(session)).id,
        "worker_id": (worker or make_worker(session)).id,
        "state": state,
        "opened_at": NOON,
        "deadline_at": NOON + timedelta(minutes=30),
        "accepted_at": NOON,
    }
    if state is not AssignmentState.OPENED:
        defaults["saved_at"] = NOON + timedelta(minutes=5)
    if state in (AssignmentState.SUBMITTED, AssignmentState.APPROVED, AssignmentState.REJECTED):
        defaults["submitted_at"] = NOON + timedelta(minutes=6)
        defaults["auto_approval_at"] = NOON + timedelta(days=3)
    if state is AssignmentState.APPROVED:
        defaults["approved_at"] = NOON + timedelta(minutes=7)
    if state is AssignmentState.REJECTED:
        defaults["rejected_at"] = NOON + timedelta(minutes=7)
    return _stored(session, Assignment(**{**defaults, **fields}))


def make_attempt(session: Session, *, assignment: Assignment | None = None, **fields: Any) -> Attempt:
    """An answered attempt whose goal is the HIT's label; ``predicted_label`` decides whether it fooled the model."""
    assignment = assignment or make_assignment(session)
    hit = session.get_one(Hit, assignment.hit_id)
    number = next(_numbers)
    answer = fields.pop("answer", {"statement": f"The soup came cold, visit {number}."})
    goal = fields.get("goal_label", hit.goal_label or "negative")
    state = fields.get("state", AttemptState.ANSWERED)
    predicted = fields.get("predicted_label", "positive")
    defaults: dict[str, Any] = {
        "public_id": f"attempt-{number}",
        "assignment_id": assignment.id,
        "hit_id": assignment.hit_id,
        "worker_id": assignment.worker_id,
        "try_number": None if state is AttemptState.UNANSWERED else 1,
        "answer": answer,
        "answer_digest": digest_of(answer),
        "goal_label": goal,
        "state": state,
        "asked_at": NOON + timedelta(minutes=1),
        "seconds": 60,
    }
    if state is AttemptState.ANSWERED:
        others = [label for label in ("negative", "positive", "neutral") if label != predicted]
        defaults |= {
            "answered_at": NOON + timedelta(minutes=1, seconds=1),
            "model_id": "embedded:sentiment",
            "model_revision": "test",
            "predicted_label": predicted,
            "probabilities": {predicted: 0.8, others[0]: 0.15, others[1]: 0.05},
            "fooled": goal != predicted,
            "latency_ms": 12.5,
            "truncated": False,
        }
    return _stored(session, Attempt(**{**defaults, **fields}))


def make_example(session: Session, *, attempt: Attempt | None = None, **fields: Any) -> Example:
    """The example of an answered attempt of a submitted assignment, still pending when it fooled the model."""
    if attempt is None:
        assignment = make_assignment(session, state=AssignmentState.SUBMITTED)
        attempt = make_attempt(session, assignment=assignment)
    hit = session.get_one(Hit, attempt.hit_id)
    batch = session.get_one(HitBatch, hit.batch_id)
    defaults: dict[str, Any] = {
        "attempt_id": attempt.id,
        "round_id": batch.round_id,
        "context_id": hit.context_id,
        "writer_id": attempt.worker_id,
        "goal_label": attempt.goal_label,
        "model_label": attempt.predicted_label,
        "fooled": attempt.fooled,
        "verdict": Verdict.PENDING if attempt.fooled else Verdict.NOT_VALIDATED,
        "collected_at": NOON + timedelta(minutes=7),
    }
    example = _stored(session, Example(**{**defaults, **fields}))
    recount(session, [example])
    return example


def make_vote(session: Session, *, example: Example, **fields: Any) -> Vote:
    """A counted vote for the writer's label by a validator of its own; ``label=None`` needs a ``flag_reason``."""
    if "assignment" in fields:
        assignment = fields.pop("assignment")
    else:
        hit = make_validation_hit(session, examples=[example])
        assignment = make_assignment(session, hit=hit, state=AssignmentState.SUBMITTED)
    defaults: dict[str, Any] = {
        "example_id": example.id,
        "validator_id": assignment.worker_id,
        "assignment_id": assignment.id,
        "label": example.goal_label,
        "created_at": NOON + timedelta(minutes=10),
        "counted_at": NOON + timedelta(minutes=11),
    }
    vote = _stored(session, Vote(**{**defaults, **fields}))
    mine = (Lease.example_id == example.id) & (Lease.validator_id == vote.validator_id)
    if session.scalar(select(Lease.id).where(mine)) is None:
        make_lease(session, assignment=assignment, example=example, **({} if vote.label else {"place": None}))
    recount(session, [example])
    return vote
