"""How the batches stand: HITs, work, verdicts, deadlines. Never worker ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app.operations.create_hits import held_from
from hits.models import Assignment, Attempt, Example, Hit, HitBatch, Round
from hits.states import AssignmentState, HitState, Verdict
from qualification.wages import batch_wage

#: A HIT that was closed before it was made.
WITHDRAWN = (Hit.state == HitState.CLOSED) & Hit.mturk_hit_id.is_(None)


@dataclass(frozen=True)
class ToReview:
    """An assignment that a person must look at; the marketplace approves it by itself at ``auto_approval_at``."""

    assignment_id: str
    reason: str
    auto_approval_at: datetime | None


@dataclass(frozen=True)
class BatchStatus:
    """One batch. ``next_auto_approval`` is the earliest among assignments that wait for approval."""

    batch_id: int
    task_code: str
    round_number: int
    kind: str
    endpoint: str
    created_at: datetime
    reward: Decimal
    bonus: Decimal
    hits: Mapping[str, int]
    places: int
    assignments: Mapping[str, int]
    examples: int
    fooled: int
    verdicts: Mapping[str, int]
    next_auto_approval: datetime | None
    to_review: tuple[ToReview, ...]
    stated_wage: Decimal
    median_wage: Decimal | None
    mean_wage: Decimal | None
    left_open: int
    wage_reason: str | None
    #: HITs that wait behind the batch's pilot until it is released.
    held: int = 0

    @property
    def unfinished(self) -> bool:
        """Whether HITs of this batch still have to be created: the launch was interrupted."""
        return self.hits[HitState.PLANNED] + self.hits[HitState.CREATING] > self.held

    @property
    def collected(self) -> int:
        """How many assignments the marketplace has shown as submitted, reviewed or not."""
        states = (AssignmentState.SUBMITTED, AssignmentState.APPROVED, AssignmentState.REJECTED)
        return sum(self.assignments[state] for state in states)

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON types; amounts are strings of dollars, times ISO 8601."""
        return {
            "batch": self.batch_id,
            "task": self.task_code,
            "round": self.round_number,
            "kind": self.kind,
            "endpoint": self.endpoint,
            "created_at": self.created_at.isoformat(),
            "reward": str(self.reward),
            "bonus": str(self.bonus),
            "hits": dict(self.hits),
            "places": self.places,
            "assignments": dict(self.assignments),
            "examples": self.examples,
            "fooled": self.fooled,
            "verdicts": dict(self.verdicts),
            "next_auto_approval": self.next_auto_approval.isoformat() if self.next_auto_approval else None,
            "unfinished": self.unfinished,
            "held": self.held,
            "to_review": [
                {
                    "assignment": one.assignment_id,
                    "reason": one.reason,
                    "auto_approval_at": one.auto_approval_at.isoformat() if one.auto_approval_at else None,
                }
                for one in self.to_review
            ],
            "hourly_wage": {
                "stated": str(self.stated_wage),
                "median": str(self.median_wage) if self.median_wage is not None else None,
                "mean": str(self.mean_wage) if self.mean_wage is not None else None,
                "left_open": self.left_open,
                "reason_below_floor": self.wage_reason,
            },
        }


def batch_statuses(
    session: Session, *, task_code: str | None = None, round_number: int | None = None
) -> list[BatchStatus]:
    """Return every batch's status, oldest first, of one task or round if asked for. Reads only."""
    wanted = select(HitBatch).join(HitBatch.round).order_by(HitBatch.id)
    if task_code is not None:
        wanted = wanted.where(Round.task_code == task_code)
    if round_number is not None:
        wanted = wanted.where(Round.number == round_number)
    found = [_status(session, batch) for batch in session.scalars(wanted).all()]
    session.rollback()
    return found


def _status(session: Session, batch: HitBatch) -> BatchStatus:
    of_batch = Hit.batch_id == batch.id
    examples = (
        select(Example.verdict, Example.fooled, func.count())
        .join(Example.attempt)
        .join(Hit, Attempt.hit_id == Hit.id)
        .where(of_batch)
        .group_by(Example.verdict, Example.fooled)
    )
    counted = session.execute(examples).all()
    verdicts = {verdict.value: 0 for verdict in Verdict}
    for verdict, _, count in counted:
        verdicts[verdict.value] += count
    waiting = (Assignment.state == AssignmentState.SUBMITTED) & of_batch
    review = session.scalars(
        select(Assignment)
        .join(Assignment.hit)
        .where(waiting, Assignment.review_reason.is_not(None))
        .order_by(Assignment.auto_approval_at, Assignment.id)
    )
    wage = batch_wage(session, batch)
    return BatchStatus(
        batch_id=batch.id,
        task_code=batch.round.task_code,
        round_number=batch.round.number,
        kind=batch.kind.value,
        endpoint=batch.endpoint,
        created_at=batch.created_at,
        reward=batch.reward,
        bonus=batch.bonus,
        hits=_hit_counts(session, of_batch),
        places=session.scalar(select(func.sum(Hit.max_assignments)).where(of_batch, ~WITHDRAWN)) or 0,
        assignments=_assignment_counts(session, of_batch),
        examples=sum(count for _, _, count in counted),
        fooled=sum(count for _, fooled, count in counted if fooled),
        verdicts=verdicts,
        next_auto_approval=session.scalar(
            select(func.min(Assignment.auto_approval_at)).join(Assignment.hit).where(waiting)
        ),
        to_review=tuple(
            ToReview(row.mturk_assignment_id, row.review_reason or "", row.auto_approval_at) for row in review
        ),
        stated_wage=wage.stated,
        median_wage=wage.median,
        mean_wage=wage.mean,
        left_open=wage.left_open,
        wage_reason=batch.wage_reason,
        held=_held(session, batch),
    )


def _held(session: Session, batch: HitBatch) -> int:
    most = held_from(batch)
    if most is None:
        return 0
    waiting = (Hit.batch_id == batch.id, Hit.position > most, Hit.state == HitState.PLANNED)
    return session.scalar(select(func.count()).select_from(Hit).where(*waiting)) or 0


def _hit_counts(session: Session, of_batch: ColumnElement[bool]) -> dict[str, int]:
    counts = {state.value: 0 for state in HitState}
    rows = session.execute(select(Hit.state, func.count()).where(of_batch).group_by(Hit.state))
    for state, count in rows:
        counts[state.value] = count
    return counts


def _assignment_counts(session: Session, of_batch: ColumnElement[bool]) -> dict[str, int]:
    counts = {state.value: 0 for state in AssignmentState}
    rows = session.execute(
        select(Assignment.state, func.count()).join(Assignment.hit).where(of_batch).group_by(Assignment.state)
    )
    for state, count in rows:
        counts[state.value] = count
    return counts
