"""Let counted votes decide examples."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits import validations
from hits.clock import Clock
from hits.models import Example, Vote
from hits.states import Verdict


def decide_pending(session: Session, clock: Clock) -> int:
    """Decide every pending example that has counted votes, each in its own transaction; return how many changed."""
    waiting = session.scalars(
        select(Example.id)
        .join(Vote, Vote.example_id == Example.id)
        .where(Example.verdict == Verdict.PENDING, Vote.counted_at.is_not(None))
        .group_by(Example.id)
        .having(func.count() > 0)
        .order_by(Example.id)
    ).all()
    session.commit()
    decided = 0
    for example_id in waiting:
        example = session.get_one(Example, example_id, populate_existing=True, with_for_update=True)
        outcome = validations.decide(session, example, clock.now())
        decided += outcome.verdict is not Verdict.PENDING
        session.commit()
    return decided
