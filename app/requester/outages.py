"""Questions that a round's model left unanswered: nobody loses pay by them, but the round loses examples."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, literal_column, select
from sqlalchemy.orm import Session

from hits.models import Attempt, Hit, HitBatch, Round
from hits.states import AttemptState

LOOKED_BACK = timedelta(hours=24)


@dataclass(frozen=True)
class Outage:
    """How many of the questions of the last day got no answer; ``reason`` is of the latest one."""

    unanswered: int
    asked: int
    last_at: datetime
    reason: str


def outage(session: Session, round_: Round, now: datetime) -> Outage | None:
    """Return what the model left unanswered in the last 24 hours, or None if it answered everything."""
    of_round = (
        select(Attempt)
        .join(Hit, Hit.id == Attempt.hit_id)
        .join(HitBatch, HitBatch.id == Hit.batch_id)
        .where(HitBatch.round_id == round_.id, Attempt.asked_at > now - LOOKED_BACK)
    )
    last = session.scalar(
        # Written out: by a parameter SQLite would not find the index of what is unanswered.
        of_round.where(Attempt.state == literal_column("'unanswered'"))
        .order_by(Attempt.asked_at.desc(), Attempt.id.desc())
        .limit(1)
    )
    if last is None:
        return None
    states = of_round.with_only_columns(Attempt.state, func.count()).group_by(Attempt.state)
    counts = {state: count for state, count in session.execute(states)}  # noqa: C416 - dict() of rows has no types
    return Outage(counts[AttemptState.UNANSWERED], sum(counts.values()), last.asked_at, last.failure or "")
