"""Set by hand how far somebody has come in a task; experts hold a qualification that follows the level."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.grant import Settled, grant_by_hand, revoke
from app.settings import Settings
from hits.clock import Clock
from hits.errors import Refused
from hits.models import Worker
from hits.mturk.client import MTurk
from hits.tasks import task
from qualification import grants
from qualification.models import Level


def level_now(session: Session, worker: Worker, task_code: str) -> Level:
    """Return the level of somebody in a task. Reads only. Raises NotFound for an unknown task."""
    return grants.level_of(session, worker.id, task(task_code).code)


def set_level(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    worker: Worker,
    task_code: str,
    level: Level,
    *,
    reason: str,
    by: str,
) -> Settled:
    """Raise or lower somebody, and give or take the experts' qualification with it. Commits.

    Work that counts stays counted. Who was lowered from expert is not raised again by gold items. Raises Refused
    without a reason and for the level that it is already, NotFound, MTurkUnavailable; the next pass of the jobs tells
    the marketplace then.
    """
    before = level_now(session, worker, task_code)
    if level is before:
        session.rollback()
        raise Refused(f"{worker.pseudonym} is {_a(level)} in {task_code} already. Nothing was changed.")
    if not reason.strip():
        session.rollback()
        raise Refused("A level is set for a reason only. Say which (--reason); it stays among staff.")
    done, kind = Settled(), grants.expert_kind(task_code)
    common = (session, mturk, settings, clock, worker, kind)
    now = clock.now()
    order = list(Level)
    if order.index(level) > order.index(before):
        grants.raise_level(session, worker.id, task_code, level, by=by, reason=reason, now=now)
    else:
        grants.lower_level(session, worker.id, task_code, level, by=by, reason=reason, now=now)
    # The reason stands with the level: it is about a person, and the trail forgets nothing.
    detail = {"task": task_code, "from": before.value, "to": level.value}
    entry = AuditEntry(
        at=now, staff_name=by[:80], action="qualification.level", subject=worker.pseudonym, detail=detail
    )
    session.add(entry)
    held = grants.latest_grant(session, worker.id, kind, mturk.endpoint)
    is_live = held is not None and grants.is_held(held, now)
    session.commit()
    if level is Level.EXPERT and not is_live:
        done = grant_by_hand(*common, reason=reason, by=by)
    if before is Level.EXPERT and is_live:
        done = revoke(*common, reason="", by=by)
    return done


def _a(level: Level) -> str:
    return f"{'an' if level is Level.EXPERT else 'a'} {level.value}"
