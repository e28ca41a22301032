"""What a batch's HIT type asks of workers, and the marketplace's copy of our lists of workers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.settings import Settings
from hits.clock import Clock
from hits.models import Assignment, Round, Worker
from hits.mturk.client import MTurk, Requirement
from hits.mturk.errors import MTurkRefused
from hits.states import HitKind
from qualification.admission import rounds_written, work_of, workers_with
from qualification.limits_models import EVERY_ROUND, LimitPer, ListEntry, ListKind, RoundExclusion, Work, WorkLimit
from qualification.requirements import (
    MOST_REQUIREMENTS,
    WorkerList,
    check_requirements,
    limit_of,
    lists_asked,
    read_wanted,
    resolved,
)

log = logging.getLogger(__name__)

#: Who adds and ends entries that follow from what people did.
FROM_THE_WORK = "dynahit"
#: What the marketplace says where there is nothing to take away, which is as good as done.
_NOT_HELD = ("QualificationDoesNotExist", "InvalidQualificationState", "QualificationTypeDoesNotExist")


def requirements_for(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    task_code: str,
    round_number: int,
    kind: HitKind,
    written: Sequence[str] = (),
    *,
    besides: int = 0,
) -> tuple[Requirement, ...]:
    """Return what a batch asks for: what the requester wrote, then as many of our lists as a HIT type has room for.

    ``besides`` counts requirements that the caller adds. Qualification types of our lists are made where there are
    none; lists that found no room are kept by our own database alone, and the log says so. Commits first. Raises
    InvalidInput for requirements that can't be met, MTurkError.
    """
    work = work_of(kind)
    lists = lists_asked(session, task_code, round_number, work) if work is not None else []
    session.commit()
    asked = [resolved(mturk, read_wanted(one)) for one in written]
    room = max(MOST_REQUIREMENTS - besides - len(asked), 0)
    for left_out in lists[room:]:
        log.warning("No room for %r on the HIT type; our own pages ask.", left_out.name(settings.qualification_prefix))
    asked += [_requirement(mturk, settings, one) for one in lists[:room]]
    check_requirements(asked)
    return tuple(asked)


def _requirement(mturk: MTurk, settings: Settings, asked: WorkerList) -> Requirement:
    name = asked.name(settings.qualification_prefix)
    type_id = mturk.find_or_create_qualification(name, asked.description)
    return Requirement(type_id, comparator=asked.comparator, name=name)


@dataclass
class Mirrored:
    """What the marketplace was told of our lists; ``findings`` are workers whom it did not take, by pseudonym."""

    granted: int = 0
    revoked: int = 0
    findings: list[str] = field(default_factory=list)


def mirror_lists(session: Session, mturk: MTurk, settings: Settings, clock: Clock) -> Mirrored:
    """Bring our lists up to the work that was done, and tell the marketplace what it does not know of them yet.

    An entry is stored before the marketplace is told and marked afterwards, so that a crash in between tells it again,
    which changes nothing there. Commits around every call. Raises MTurkUnavailable.
    """
    follow_the_work(session, clock.now())
    return _tell_all(session, mturk, settings, clock, _untold(session, mturk.endpoint))


def leave_lists(
    session: Session, mturk: MTurk, settings: Settings, clock: Clock, worker_id: int, *, by: str
) -> list[str]:
    """Take somebody off every list, and off the marketplace's copies while their id is known; return what is left.

    What the marketplace refuses, or what is on another one, is left, each in words; what is ended and not told is told
    by every pass of the jobs until it is done. Commits around every call. Raises MTurkUnavailable.
    """
    mine = ListEntry.worker_id == worker_id
    for entry in session.scalars(select(ListEntry).where(mine, ListEntry.ended_at.is_(None)).with_for_update()).all():
        entry.ended_at, entry.ended_by = clock.now(), by[:80]
    found = _tell_all(session, mturk, settings, clock, _untold(session, mturk.endpoint, mine))
    return found.findings + [
        f"The marketplace at {endpoint} shows a list's qualification still. Erase with that marketplace configured."
        for endpoint in session.scalars(held_elsewhere(worker_id, mturk.endpoint))
    ]


def held_elsewhere(worker_id: int, endpoint: str) -> Select[str | None]:
    """Return the query for the other marketplaces that show somebody on one of our lists."""
    return (
        select(ListEntry.endpoint)
        .where(ListEntry.worker_id == worker_id, ListEntry.endpoint != endpoint)
        .where(ListEntry.granted_at.is_not(None), ListEntry.revoked_at.is_(None))
        .distinct()
    )


def _tell_all(session: Session, mturk: MTurk, settings: Settings, clock: Clock, entry_ids: Sequence[int]) -> Mirrored:
    found = Mirrored()
    types: dict[str, str] = {}
    for entry_id in entry_ids:
        _tell(session, mturk, settings, clock.now(), entry_id, types, found)
    return found


def _untold(session: Session, endpoint: str, *which: ColumnElement[bool]) -> list[int]:
    to_grant = and_(ListEntry.ended_at.is_(None), or_(ListEntry.granted_at.is_(None), ListEntry.endpoint != endpoint))
    to_revoke = and_(
        ListEntry.ended_at.is_not(None),
        ListEntry.granted_at.is_not(None),
        ListEntry.revoked_at.is_(None),
        ListEntry.endpoint == endpoint,
    )
    known = select(Worker.id).where(Worker.erased_at.is_(None))
    wanted = (or_(to_grant, to_revoke), ListEntry.worker_id.in_(known), *which)
    ids = session.scalars(select(ListEntry.id).where(*wanted).order_by(ListEntry.id)).all()
    session.commit()
    return list(ids)


def _tell(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    now: datetime,
    entry_id: int,
    types: dict[str, str],
    found: Mirrored,
) -> None:
    entry = session.get_one(ListEntry, entry_id, populate_existing=True)
    listed = WorkerList(entry.kind, entry.task_code, entry.round_number, entry.work)
    name, ended = listed.name(settings.qualification_prefix), entry.ended_at is not None
    worker_id, pseudonym = entry.worker.mturk_worker_id, entry.worker.pseudonym
    again = ended and session.scalar(select(ListEntry.id).where(*_current(entry.worker_id, listed)))
    session.commit()
    try:
        if name not in types:
            types[name] = mturk.find_or_create_qualification(name, listed.description)
        if not ended:
            mturk.grant(types[name], worker_id)
        elif not again:
            mturk.revoke(types[name], worker_id)
    except MTurkRefused as error:
        # Its message may name the worker.
        if not (ended and error.code.endswith(_NOT_HELD)):
            verb = "take {name!r} from" if ended else "grant {name!r} to"
            said = f"{verb.format(name=name)} {pseudonym}: {error.code}."
            found.findings.append(f"The marketplace did not {said} The next pass of the jobs tries again.")
            return
    entry = session.get_one(ListEntry, entry_id, populate_existing=True)
    if ended:
        entry.revoked_at = now
        found.revoked += 1
    else:
        entry.granted_at, entry.endpoint = now, mturk.endpoint
        found.granted += 1
    session.commit()


def follow_the_work(session: Session, now: datetime) -> int:
    """Put workers on the lists of writers and of those who did the most, and take them off; return how many changes.

    Only rounds that a rule speaks of have such lists. Commits if there was something to change.
    """
    changes = 0
    for listed in _kept_lists(session):
        should = _should_be_on(session, listed, now)
        on = {entry.worker_id: entry for entry in session.scalars(select(ListEntry).where(*_current(None, listed)))}
        for worker_id in sorted(should - set(on)):
            changes += add_to_list(session, listed, worker_id, reason="by the work done", by=FROM_THE_WORK, now=now)
        for worker_id in sorted(set(on) - should):
            # A HIT lapsed with nothing done in it, or the limit was raised.
            on[worker_id].ended_at, on[worker_id].ended_by = now, FROM_THE_WORK
            changes += 1
    if changes:
        session.commit()
    return changes


def add_to_list(session: Session, listed: WorkerList, worker_id: int, *, reason: str, by: str, now: datetime) -> bool:
    """Put a worker on a list and tell whether they were not on it before. Flushes, never commits."""
    if session.scalar(select(ListEntry.id).where(*_current(worker_id, listed))) is not None:
        return False
    try:
        with session.begin_nested():
            session.add(
                ListEntry(
                    worker_id=worker_id,
                    kind=listed.kind,
                    task_code=listed.task_code,
                    round_number=listed.round_number,
                    work=listed.work,
                    reason=reason[:500],
                    added_at=now,
                    added_by=by[:80],
                )
            )
    except IntegrityError:
        # Another process was faster; its entry is the one.
        return False
    return True


def take_off_list(session: Session, listed: WorkerList, worker_id: int, *, by: str, now: datetime) -> bool:
    """Take a worker off a list and tell whether they were on it. Flushes, never commits."""
    entry = session.scalar(select(ListEntry).where(*_current(worker_id, listed)).with_for_update())
    if entry is None:
        return False
    entry.ended_at, entry.ended_by = now, by[:80]
    session.flush()
    return True


def _current(worker_id: int | None, listed: WorkerList) -> list[ColumnElement[bool]]:
    of_list = [
        ListEntry.kind == listed.kind,
        ListEntry.task_code == listed.task_code,
        ListEntry.round_number == listed.round_number,
        ListEntry.work == listed.work,
        ListEntry.ended_at.is_(None),
    ]
    return of_list if worker_id is None else [*of_list, ListEntry.worker_id == worker_id]


def _kept_lists(session: Session) -> list[WorkerList]:
    """Return the lists that follow from the work: of writers whom a rule keeps out elsewhere, and of limited rounds."""
    rounds = session.execute(select(Round.task_code, Round.number).order_by(Round.task_code, Round.number)).all()
    rules = session.execute(select(RoundExclusion.task_code, RoundExclusion.other_number)).all()
    whole_tasks = {task_code for task_code, other in rules if other == EVERY_ROUND}
    limited = set(session.scalars(select(WorkLimit.task_code).where(WorkLimit.per == LimitPer.ROUND)))
    # A limit that was lifted leaves entries behind, which are to end.
    limited |= set(
        session.scalars(
            select(ListEntry.task_code).where(ListEntry.kind == ListKind.FULL, ListEntry.ended_at.is_(None)).distinct()
        )
    )
    found = [
        WorkerList(ListKind.WROTE, task_code, number)
        for task_code, number in rounds
        if task_code in whole_tasks or (task_code, number) in {(code, other) for code, other in rules}
    ]
    found += [
        WorkerList(ListKind.FULL, task_code, number, work)
        for task_code, number in rounds
        if task_code in limited
        for work in Work
    ]
    return found


def _should_be_on(session: Session, listed: WorkerList, now: datetime) -> set[int]:
    of_round = (Round.task_code == listed.task_code, Round.number == listed.round_number)
    if listed.kind is ListKind.WROTE:
        return set(session.scalars(rounds_written(now).with_only_columns(Assignment.worker_id).where(*of_round)))
    limit = limit_of(session, listed.task_code, listed.round_number, listed.work, LimitPer.ROUND)
    if limit is None:
        return set()
    return workers_with(session, listed.work, limit.most, now, *of_round)
