"""Ask about texts that were handed in without a model in the loop, and that no model has answered yet.

Their writers were paid and know nothing of it; the bonus and the round's figures hang on the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session, joinedload

from app.operations.collect import UNFINISHED, add_examples
from app.operations.submit_attempt import ask_unseen
from hits.arms import Arm
from hits.attempts import INTERRUPTED_AFTER, UNREADABLE
from hits.clock import Clock
from hits.errors import InvalidInput
from hits.models import ArmAssignment, Assignment, Attempt, Hit, HitBatch, Round
from hits.predictions import Predictor
from hits.states import AssignmentState, AttemptState

#: At most so many in one pass, so that bonuses and approvals don't wait for a slow model.
AT_ONCE = 200


@dataclass
class AnsweredLater:
    """How many texts have an answer now, and how many became examples; ``findings`` says why others wait."""

    answered: int = 0
    examples: int = 0
    findings: list[str] = field(default_factory=list)


def waiting_unseen(
    session: Session, now: datetime | None, *, round_id: int | None = None, limit: int | None = None
) -> list[int]:
    """Return the attempts that wait for an answer, of one round or all, the oldest first. Reads only.

    Without ``now`` those count as well that a model may be reading at this moment.
    """
    found = []
    wanted = _unanswered(now)
    for row in session.execute(wanted if round_id is None else wanted.where(Round.id == round_id)):
        of_plan = row[2].plan.arms
        if not next(Arm.of(one).model_in_loop for one in of_plan if one["name"] == row[1]):
            found.append(row[0])
            if len(found) == limit:
                break
    return found


def answer_unseen(session: Session, predictor: Predictor, clock: Clock) -> AnsweredLater:
    """Ask about the texts that wait, each in transactions of its own, until the model gives no answer. Commits."""
    done = AnsweredLater()
    wanted = waiting_unseen(session, clock.now(), limit=AT_ONCE)
    session.commit()
    for place, attempt_id in enumerate(wanted):
        try:
            result = ask_unseen(session, predictor, clock, session.get_one(Attempt, attempt_id))
        except InvalidInput:
            continue  # noted with the text: no model can read it
        if result.failure is not None:
            left = len(wanted) - place
            some = "1 text waits" if left == 1 else f"{left} texts wait"
            done.findings.append(f"{some} for a model, written without one in the loop: {result.failure}")
            break
        done.answered += 1
        done.examples += _taken_over(session, attempt_id, clock)
        session.commit()
    return done


def _unanswered(now: datetime | None) -> Select[int, str, ArmAssignment]:
    readable = or_(Attempt.failure.is_(None), Attempt.failure.not_like(f"{UNREADABLE}%"))
    asking = Attempt.state == AttemptState.ASKING
    interrupted = asking if now is None else asking & (Attempt.asked_at <= now - INTERRUPTED_AFTER)
    return (
        select(Attempt.id, ArmAssignment.arm, ArmAssignment)
        .join(Hit, Hit.id == Attempt.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .join(Round, Round.id == HitBatch.round_id)
        .join(ArmAssignment, (ArmAssignment.round_id == Round.id) & (ArmAssignment.worker_id == Attempt.worker_id))
        .options(joinedload(ArmAssignment.plan))
        .where(Round.frozen_at.is_(None), Round.arms_version.is_not(None))
        .where(or_((Attempt.state == AttemptState.UNANSWERED) & readable, interrupted))
        .order_by(Attempt.id)
    )


def _taken_over(session: Session, attempt_id: int, clock: Clock) -> int:
    """Make an example of an answered text whose assignment was collected before; return how many were made."""
    attempt = session.get_one(Attempt, attempt_id)
    hit = session.execute(select(Hit).where(Hit.id == attempt.hit_id).with_for_update()).scalar_one()
    row = session.scalar(
        select(Assignment)
        .where(Assignment.hit_id == attempt.hit_id, Assignment.worker_id == attempt.worker_id)
        .where(Assignment.state.in_((AssignmentState.SUBMITTED, AssignmentState.APPROVED)))
        .where(or_(Assignment.review_reason.is_(None), Assignment.review_reason.in_(UNFINISHED)))
        .limit(1)
    )
    return add_examples(session, hit, row, clock.now()) if row is not None else 0
