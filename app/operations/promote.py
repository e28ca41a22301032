"""Make experts of validators who passed a task's quiz and agree with its gold items; experts break ties."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.settings import Settings
from hits.clock import Clock
from hits.models import GoldItem, Round, Vote
from qualification.grants import (
    expert_kind,
    holds,
    is_barred,
    latest_grant,
    level_of,
    plan_grant,
    raise_level,
    was_expert,
)
from qualification.models import Ending, Level
from qualification.quizzes import QuizFor, kind_of

#: Who raised the level, in its history.
BY = "gold"


def promote_validators(session: Session, endpoint: str, settings: Settings, clock: Clock) -> int:
    """Raise to expert whoever holds the validators' quiz of a task and judged enough of its gold items right.

    With the level the experts' qualification of the task is planned, which the next pass grants. Returns how many were
    raised; doing it again raises nobody twice. Nobody is lowered: that is a person's decision, and whoever was lowered
    is raised by a person alone. Commits.
    """
    raised = 0
    for worker_id, task_code, right, of in _gold(session, settings.gold_expert_items):
        now = clock.now()
        if 100 * right < settings.gold_expert_percent * of:
            continue
        if not holds(session, worker_id, kind_of(QuizFor.VALIDATOR, task_code), None, now):
            continue
        is_expert = level_of(session, worker_id, task_code) is Level.EXPERT
        granted = latest_grant(session, worker_id, expert_kind(task_code), endpoint)
        if not is_expert:
            if was_expert(session, worker_id, task_code) or (granted is not None and is_barred(granted)):
                continue
            reason = f"Passed the quiz, and judged {right} of {of} gold items right."
            raise_level(session, worker_id, task_code, Level.EXPERT, by=BY, reason=reason, now=now)
            raised += 1
        if granted is None or granted.ending is Ending.EXPIRED:
            plan_grant(
                session,
                worker_id,
                expert_kind(task_code),
                version=0,
                value=1,
                endpoint=endpoint,
                reason=f"Judged {right} of {of} gold items right.",
                by=BY,
                now=now,
                months=settings.qualification_months,
            )
    session.commit()
    return raised


def _gold(session: Session, least: int) -> list[tuple[int, str, int, int]]:
    """Return worker, task, right and all gold judgements of those who gave so many in a task."""
    right = func.count().filter(Vote.label == GoldItem.label)
    rows = session.execute(
        select(Vote.validator_id, Round.task_code, right, func.count())
        .select_from(Vote)
        .join(GoldItem, Vote.gold_item_id == GoldItem.id)
        .join(Round, GoldItem.round_id == Round.id)
        .where(Vote.counted_at.is_not(None))
        .group_by(Vote.validator_id, Round.task_code)
        .having(func.count() >= least)
        .order_by(Vote.validator_id, Round.task_code)
    ).all()
    return [(worker_id, task_code, good, every) for worker_id, task_code, good, every in rows]
