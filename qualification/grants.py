"""Levels and grants: what somebody holds, and each step of a grant as one change of its row. The caller commits.

The order that keeps it safe, whatever crashes: plan, commit; claim, commit; ask the marketplace outside any
transaction; mark, commit. Granting and taking away may be asked for twice with the same result, so that a row that was
claimed and not marked is simply asked for again.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.errors import NotFound, Refused
from hits.models import Worker
from qualification.models import (
    LIVE,
    Ending,
    GrantState,
    Level,
    LevelChange,
    QualificationGrant,
    QuizResult,
    QuizVersion,
)

#: What the validators of all tasks hold; its name on the marketplace is a setting.
VALIDATOR = "validator"
#: What the experts of one task hold, before the task's code: they break ties where validators pass quizzes.
_EXPERT = "expert"
#: The marketplace is still to be asked about these.
_WAITING = (GrantState.PLANNED, GrantState.GRANTING, GrantState.ENDING)
_CAUSE_MAX_CHARACTERS = 500

_RANK = {level: rank for rank, level in enumerate(Level)}


def expert_kind(task_code: str) -> str:
    """Return the kind of the qualification that the experts of a task hold."""
    return f"{_EXPERT}:{task_code}"


def task_of_experts(kind: str) -> str | None:
    """Return the task whose experts hold qualifications of this kind, None for other kinds."""
    audience, _, task_code = kind.partition(":")
    return task_code if audience == _EXPERT else None


def has_no_quiz(kind: str) -> bool:
    """Tell whether no single quiz earns it: the validators' qualification of all tasks, and the experts' ones."""
    return kind == VALIDATOR or task_of_experts(kind) is not None


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


def was_expert(session: Session, worker_id: int, task_code: str) -> bool:
    """Tell whether somebody is or ever was an expert of a task: whoever was lowered is raised by a person alone."""
    raised = select(LevelChange.id).where(
        LevelChange.worker_id == worker_id, LevelChange.task_code == task_code, LevelChange.level == Level.EXPERT
    )
    return session.scalar(raised.limit(1)) is not None


def level_before_expert(session: Session, worker_id: int, task_code: str) -> Level:
    """Return the level that somebody had before they were made an expert."""
    newest = (
        select(LevelChange.level)
        .where(LevelChange.worker_id == worker_id, LevelChange.task_code == task_code)
        .where(LevelChange.level != Level.EXPERT)
        .order_by(LevelChange.id.desc())
        .limit(1)
    )
    return session.scalar(newest) or Level.NOVICE


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


def type_name(kind: str, *, prefix: str, validators: str) -> str:
    """Return what a qualification is called on the marketplace, by the two settings that say so."""
    if kind == VALIDATOR:
        return validators
    audience, _, task_code = kind.partition(":")
    return f"{prefix} {task_code} {audience}"


def type_description(kind: str) -> str:
    """Return the description of a qualification on the marketplace."""
    if (of_experts := task_of_experts(kind)) is not None:
        return (
            f"Says that you may decide where validators of the {of_experts} task differ. It is earned by their quiz and"
            " by judging known items right, or granted by the requester."
        )
    audience, _, task_code = kind.partition(":")
    does = "write" if audience == "writer" else "judge what others wrote"
    of_task = f" for the {task_code} task" if task_code else ""
    return f"Says that you may {does}{of_task}. It is earned by a quiz about the rules, or granted by the requester."


@dataclass(frozen=True)
class Order:
    """A claimed grant, whole, so that nothing is read from the database while the marketplace is asked.

    ``ends``: it is to be taken away, not given. The worker id stays out of its repr.
    """

    grant_id: int
    claim: int
    kind: str
    value: int
    ends: bool
    reason: str
    pseudonym: str
    worker_id: str = field(repr=False)


def months_later(at: datetime, months: int) -> datetime:
    """Return the same day and time so many months later, the month's last day where that day is missing."""
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    day = min(at.day, calendar.monthrange(year, month + 1)[1])
    return at.replace(year=year, month=month + 1, day=day)


def latest_grant(session: Session, worker_id: int, kind: str, endpoint: str) -> QualificationGrant | None:
    """Return the newest grant of a kind, whatever became of it."""
    return session.scalar(
        select(QualificationGrant)
        .where(
            QualificationGrant.worker_id == worker_id,
            QualificationGrant.kind == kind,
            QualificationGrant.endpoint == endpoint,
        )
        .order_by(QualificationGrant.id.desc())
        .limit(1)
        .execution_options(populate_existing=True)
    )


def is_held(grant: QualificationGrant, now: datetime) -> bool:
    """Tell whether a grant stands, on the marketplace or on its way there."""
    if grant.state not in (GrantState.PLANNED, GrantState.GRANTING, GrantState.GRANTED):
        return False
    return grant.expires_at is None or grant.expires_at > now


def is_barred(grant: QualificationGrant) -> bool:
    """Tell whether a person took it away, and no reset has lifted that: it can't be earned again."""
    return grant.ending is Ending.REVOKED and grant.lifted_at is None


def plan_grant(
    session: Session,
    worker_id: int,
    kind: str,
    *,
    version: int,
    value: int,
    endpoint: str,
    reason: str,
    by: str,
    now: datetime,
    months: int = 0,
    result_id: int | None = None,
) -> QualificationGrant | None:
    """Plan a grant and return it; None when it is held so already, or this result has earned one. Flushes.

    It replaces one of another version or value, which is overwritten on the marketplace. After ``months`` it expires;
    0 means never. Two planners at once are safe: the second one finds the row there.
    """
    if result_id is not None and session.scalar(
        select(QualificationGrant.id).where(QualificationGrant.result_id == result_id)
    ):
        return None
    session.execute(select(Worker.id).where(Worker.id == worker_id).with_for_update())
    before = _live(session, worker_id, kind, endpoint)
    if before is not None:
        if (before.version, before.value) == (version, value) and is_held(before, now):
            return None
        before.ending = before.ending or Ending.REPLACED
        before.state, before.revoked_at = GrantState.ENDED, now
        session.flush()
    grant = QualificationGrant(
        worker_id=worker_id,
        kind=kind,
        version=version,
        value=value,
        endpoint=endpoint,
        result_id=result_id,
        planned_at=now,
        expires_at=months_later(now, months) if months else None,
        reason=reason[:500],
        by=by[:80],
    )
    try:
        with session.begin_nested():
            session.add(grant)
    except IntegrityError:
        if _live(session, worker_id, kind, endpoint) is None:
            raise
        return None
    return grant


def _live(session: Session, worker_id: int, kind: str, endpoint: str) -> QualificationGrant | None:
    return session.scalar(
        select(QualificationGrant)
        .where(
            QualificationGrant.worker_id == worker_id,
            QualificationGrant.kind == kind,
            QualificationGrant.endpoint == endpoint,
            QualificationGrant.state.in_(LIVE),
        )
        .execution_options(populate_existing=True)
        .with_for_update()
    )


def count_result(session: Session, assignment_id: int, worker_id: int, *, months: int, now: datetime) -> bool:
    """Let a quiz count whose assignment the marketplace has shown with this worker; a passed one earns its grant.

    Returns whether it was counted now: counting again, or one that was answered by somebody else or not at all,
    changes nothing. Flushes, never commits.
    """
    result = session.scalar(
        select(QuizResult)
        .where(QuizResult.assignment_id == assignment_id, QuizResult.worker_id == worker_id)
        .execution_options(populate_existing=True)
        .with_for_update()
    )
    if result is None or result.answered_at is None or result.counted_at is not None:
        return False
    result.counted_at = now
    version: QuizVersion = result.version
    endpoint = result.assignment.hit.batch.endpoint
    latest = latest_grant(session, worker_id, version.kind, endpoint)
    # A quiz that was passed long ago and is submitted only now takes no newer version away.
    newer = latest is not None and is_held(latest, now) and latest.version > version.number
    if result.passed and not newer and not (latest is not None and is_barred(latest)):
        plan_grant(
            session,
            worker_id,
            version.kind,
            version=version.number,
            value=version.number,
            endpoint=endpoint,
            reason=f"Passed the quiz, version {version.number}, with {result.score} of {len(result.items)} right.",
            by="quiz",
            now=now,
            months=months,
            result_id=result.id,
        )
    session.flush()
    return True


def waiting(session: Session, endpoint: str) -> list[tuple[int, int]]:
    """Return id and claims of the grants that the marketplace is to be asked about, oldest first."""
    rows = session.execute(
        select(QualificationGrant.id, QualificationGrant.claims)
        .where(QualificationGrant.state.in_(_WAITING), QualificationGrant.endpoint == endpoint)
        .order_by(QualificationGrant.id)
    ).all()
    return [(grant_id, claims) for grant_id, claims in rows]


def claim(session: Session, grant_id: int, claims_seen: int) -> Order | None:
    """Claim a grant and return all that asking takes; None if another process has dealt with it since it was listed.

    The caller commits before it asks the marketplace.
    """
    grant = session.get(QualificationGrant, grant_id, populate_existing=True, with_for_update=True)
    if grant is None or grant.claims != claims_seen or grant.state not in _WAITING:
        return None
    grant.claims += 1
    if grant.state is GrantState.PLANNED:
        grant.state = GrantState.GRANTING
    session.flush()
    return Order(
        grant_id=grant.id,
        claim=grant.claims,
        kind=grant.kind,
        value=grant.value,
        ends=grant.state is GrantState.ENDING,
        reason=grant.reason,
        pseudonym=grant.worker.pseudonym,
        worker_id=grant.worker.mturk_worker_id,
    )


def mark_done(session: Session, order: Order, now: datetime) -> bool:
    """Note that the marketplace has granted, or taken away, what the order says. Flushes, never commits.

    When that is not wanted any more, because the row was ended, replaced or planned anew while the marketplace was
    asked, what is wanted now is asked for again; False then.
    """
    grant = session.get_one(QualificationGrant, order.grant_id, populate_existing=True, with_for_update=True)
    if grant.state is not (GrantState.ENDING if order.ends else GrantState.GRANTING):
        _ask_again(session, grant)
        return False
    if grant.claims != order.claim:
        # Whoever claimed it since asks for the same and marks it.
        return False
    if order.ends:
        grant.state, grant.revoked_at = GrantState.ENDED, now
    else:
        grant.state, grant.granted_at, grant.cause = GrantState.GRANTED, now, None
    session.flush()
    return True


def _ask_again(session: Session, grant: QualificationGrant) -> None:
    """Have the marketplace asked anew for what is wanted: a call that was overtaken may have undone it."""
    wanted = _live(session, grant.worker_id, grant.kind, grant.endpoint)
    if wanted is None:
        if grant.state is not GrantState.ENDED:
            return
        wanted, grant.state = grant, GrantState.ENDING
    elif wanted.state is not GrantState.ENDING:
        wanted.state = GrantState.PLANNED
    wanted.claims += 1
    session.flush()


def mark_failed(session: Session, order: Order, cause: str) -> None:
    """Note that the marketplace refused to grant it. Flushes, never commits."""
    session.execute(
        update(QualificationGrant)
        .where(
            QualificationGrant.id == order.grant_id,
            QualificationGrant.claims == order.claim,
            QualificationGrant.state == GrantState.GRANTING,
        )
        .values(state=GrantState.FAILED, cause=cause[:_CAUSE_MAX_CHARACTERS])
        .execution_options(synchronize_session=False)
    )


def note_held(
    session: Session,
    worker_id: int,
    kind: str,
    *,
    version: int,
    value: int,
    endpoint: str,
    granted_at: datetime,
    reason: str,
    months: int = 0,
) -> QualificationGrant | None:
    """Take over a grant that the marketplace shows and that did not go through us. Flushes, never commits.

    None when it is known, or was ended since it was granted. What a person took away and the marketplace gave back, as
    its own quiz does, is taken away again.
    """
    session.execute(select(Worker.id).where(Worker.id == worker_id).with_for_update())
    latest = latest_grant(session, worker_id, kind, endpoint)
    if latest is not None:
        if latest.state in LIVE:
            return None
        if is_barred(latest):
            latest.state = GrantState.ENDING
            session.flush()
            return None
        if latest.revoked_at is not None and granted_at <= latest.revoked_at:
            return None
    grant = QualificationGrant(
        worker_id=worker_id,
        kind=kind,
        version=version,
        value=value,
        endpoint=endpoint,
        state=GrantState.GRANTED,
        planned_at=granted_at,
        granted_at=granted_at,
        expires_at=months_later(granted_at, months) if months else None,
        reason=reason[:500],
        by="marketplace",
    )
    session.add(grant)
    session.flush()
    return grant


def end_grant(
    session: Session, worker_id: int, kind: str, endpoint: str, *, reason: str, by: str, now: datetime
) -> QualificationGrant:
    """Let a person take a grant away: from here on it does not count, and the marketplace is told next. Flushes.

    Raises NotFound when nothing of the kind is held.
    """
    grant = _live(session, worker_id, kind, endpoint)
    if grant is None or grant.ending is not None:
        raise NotFound(f"This person holds no qualification {kind!r} at {endpoint}. Nothing was changed.")
    _end(grant, Ending.REVOKED, reason, by)
    session.flush()
    return grant


def end_expired(session: Session, endpoint: str, now: datetime) -> int:
    """Begin to take away what has expired, and return how many. Flushes, never commits.

    The quizzes that earned it use no try any more, so that they can be taken again.
    """
    due = session.scalars(
        select(QualificationGrant)
        .where(
            QualificationGrant.endpoint == endpoint,
            QualificationGrant.state == GrantState.GRANTED,
            QualificationGrant.expires_at <= now,
        )
        .order_by(QualificationGrant.id)
        .with_for_update(skip_locked=True)
        .execution_options(populate_existing=True)
    ).all()
    for grant in due:
        _end(
            grant, Ending.EXPIRED, f"It was granted until {grant.expires_at:%d %B %Y}. You can earn it again.", "expiry"
        )
        set_aside(session, grant.worker_id, grant.kind, now)
    session.flush()
    return len(due)


def _end(grant: QualificationGrant, ending: Ending, reason: str, by: str) -> None:
    grant.state = GrantState.ENDING
    grant.ending, grant.reason, grant.by = ending, reason[:500], by[:80]
    grant.claims += 1


def set_aside(session: Session, worker_id: int, kind: str, now: datetime) -> int:
    """Let somebody's answered quizzes of a kind use no try any more; return how many. Flushes, never commits."""
    rows = session.scalars(
        select(QuizResult)
        .join(QuizResult.version)
        .where(
            QuizResult.worker_id == worker_id,
            QuizVersion.kind == kind,
            QuizResult.answered_at.is_not(None),
            QuizResult.set_aside_at.is_(None),
        )
    ).all()
    for row in rows:
        row.set_aside_at = now
    session.flush()
    return len(rows)


def reset(session: Session, worker_id: int, kind: str, now: datetime) -> int:
    """Give somebody all tries at a quiz again, after a revocation too; return how many were set aside. Flushes.

    What is held stays held.
    """
    ended = session.scalars(
        select(QualificationGrant).where(
            QualificationGrant.worker_id == worker_id,
            QualificationGrant.kind == kind,
            QualificationGrant.ending == Ending.REVOKED,
            QualificationGrant.lifted_at.is_(None),
        )
    ).all()
    for grant in ended:
        grant.lifted_at = now
    return set_aside(session, worker_id, kind, now)
