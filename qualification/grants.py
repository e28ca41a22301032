"""Levels and grants: what somebody holds, and each step of a grant as one change of its row. The caller commits."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import Refused
from qualification.models import GrantState, Level, LevelChange, QualificationGrant

_RANK = {level: rank for rank, level in enumerate(Level)}


def level_of(session: Session, worker_id: int, task_code: str) -> Level:
    """Return how far somebody has come in a task; a novice where nothing is known."""
    newest = (
        select(LevelChange.level)
        .where(LevelChange.worker_id == worker_id, LevelChange.task_code == task_code)
        .order_by(LevelChange.id.desc())
        .limit(1)
    )
    return session.scalar(newest) or Level.NOVICE


def raise_level(
    session: Session, worker_id: int, task_code: str, level: Level, *, by: str, reason: str, now: datetime
) -> Level:
    """Raise somebody to a level and return the level they have now. Flushes, never commits.

    Somebody who is there already, or higher, stays there and nothing is stored.
    """
    present = level_of(session, worker_id, task_code)
    if _RANK[present] >= _RANK[level]:
        return present
    _note_level(session, worker_id, task_code, level, by=by, reason=reason, now=now)
    return level


def lower_level(
    session: Session, worker_id: int, task_code: str, level: Level, *, by: str, reason: str, now: datetime
) -> Level:
    """Take somebody back to a level and return the one they have now. Flushes, never commits.

    Raises Refused without a reason, and for a level that is not lower.
    """
    present = level_of(session, worker_id, task_code)
    if _RANK[present] <= _RANK[level]:
        raise Refused(f"The level is {present} and {level} is not lower. Nothing was changed.")
    if not reason.strip():
        raise Refused("A level is lowered for a reason only. Say which.")
    _note_level(session, worker_id, task_code, level, by=by, reason=reason, now=now)
    return level


def _note_level(
    session: Session, worker_id: int, task_code: str, level: Level, *, by: str, reason: str, now: datetime
) -> None:
    session.add(
        LevelChange(worker_id=worker_id, task_code=task_code, level=level, by=by[:80], reason=reason[:500], at=now)
    )
    session.flush()


def holds(session: Session, worker_id: int, kind: str, versions: frozenset[int] | None, now: datetime) -> bool:
    """Tell whether somebody holds a qualification of one of these versions by our own database; None means any.

    What is expired by now does not count, whether or not the marketplace has been told yet.
    """
    held = select(QualificationGrant.id).where(
        QualificationGrant.worker_id == worker_id,
        QualificationGrant.kind == kind,
        QualificationGrant.state == GrantState.GRANTED,
        QualificationGrant.expires_at.is_(None) | (QualificationGrant.expires_at > now),
    )
    if versions is not None:
        held = held.where(QualificationGrant.version.in_(versions))
    return session.scalar(held.limit(1)) is not None
