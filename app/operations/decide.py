"""Let counted votes decide examples."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits import validations
from hits.clock import Clock
from hits.models import Example, Vote
from hits.states import Verdict


def decide_pending(session: Session, clock: Clock) -> int:
    """Decide the examples that have votes to be counted, each in its own transaction; return how many changed.

    Those are pending ones, and decided ones with a vote that was collected later: it may be a flag, which stops the
    bonus. A flag that another process collected at the moment of the decision is found by itself.
    """
    unseen_flag = (
        Vote.flag_reason.is_not(None)
        & (Example.moderation.is_(None) | (Vote.counted_at > Example.moderated_at))
        & Example.verdict.not_in((Verdict.FLAGGED, Verdict.NOT_VALIDATED))
    )
    waiting = session.scalars(
        select(Example.id)
        .join(Vote, Vote.example_id == Example.id)
        .where(Vote.counted_at.is_not(None), Example.retracted_at.is_(None))
        .where((Example.verdict == Verdict.PENDING) | (Vote.counted_at >= Example.decided_at) | unseen_flag)
        .group_by(Example.id)
        .having(func.count() > 0)
        .order_by(Example.id)
    ).all()
    session.commit()
    decided = 0
    for example_id in waiting:
        [example] = validations.locked_examples(session, [example_id])
        before = (example.verdict, example.final_label)
        validations.decide(session, example, clock.now())
        decided += before != (example.verdict, example.final_label)
        session.commit()
    return decided
