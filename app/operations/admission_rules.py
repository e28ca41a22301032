"""The rules of who may work: set, lifted and listed, each with an entry in the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.operations.requirements import add_to_list, take_off_list
from hits.clock import Clock
from hits.errors import InvalidInput, Refused
from hits.models import Worker
from hits.tasks import task
from qualification.limits_models import (
    EVERY_ROUND,
    AllowList,
    LimitPer,
    ListEntry,
    ListKind,
    RoundExclusion,
    Work,
    WorkLimit,
)
from qualification.requirements import WorkerList

MOST_ROUND = 10_000
MOST_HITS = 1_000_000
REASON_CHARACTERS = 500


def set_limit(
    session: Session, clock: Clock, task_code: str, round_number: int, work: Work, per: LimitPer, most: int, *, by: str
) -> None:
    """Let each worker do at most so many HITs; setting it again replaces it. Commits. Raises NotFound, InvalidInput."""
    _check(task_code, round_number)
    if not 1 <= most <= MOST_HITS:
        raise InvalidInput(f"The limit is {most:,}; it must be from 1 to {MOST_HITS:,}. Lift it to have none.")
    row = _limit(session, task_code, round_number, work, per)
    if row is None:
        row = WorkLimit(task_code=task_code, round_number=round_number, work=work, per=per)
        session.add(row)
    row.most, row.set_at, row.set_by = most, clock.now(), by[:80]
    _note(session, clock.now(), by, "limit.set", task_code, round_number, work=work, per=per, most=most)
    session.commit()


def lift_limit(
    session: Session, clock: Clock, task_code: str, round_number: int, work: Work, per: LimitPer, *, by: str
) -> None:
    """Take a limit away. Commits. Raises NotFound, Refused when there is none."""
    _check(task_code, round_number)
    row = _limit(session, task_code, round_number, work, per)
    if row is None:
        session.rollback()
        raise Refused(f"There is no such limit on {_where(task_code, round_number)}. Nothing was changed.")
    session.delete(row)
    _note(session, clock.now(), by, "limit.lift", task_code, round_number, work=work, per=per)
    session.commit()


def exclude_writers(
    session: Session, clock: Clock, task_code: str, round_number: int, other_number: int, *, by: str
) -> bool:
    """Keep whoever wrote in the other round out of this one; EVERY_ROUND as the other makes this round exclusive.

    Returns whether the rule is new. Commits. Raises NotFound, InvalidInput.
    """
    _check(task_code, round_number, least=1)
    _check(task_code, other_number)
    if round_number == other_number:
        raise InvalidInput(f"Round {round_number} can't exclude its own writers. Name another round, or use a limit.")
    if _exclusion(session, task_code, round_number, other_number) is not None:
        session.rollback()
        return False
    session.add(
        RoundExclusion(
            task_code=task_code,
            round_number=round_number,
            other_number=other_number,
            set_at=clock.now(),
            set_by=by[:80],
        )
    )
    _note(session, clock.now(), by, "exclusion.set", task_code, round_number, other=other_number)
    session.commit()
    return True


def lift_exclusion(
    session: Session, clock: Clock, task_code: str, round_number: int, other_number: int, *, by: str
) -> None:
    """Let the other round's writers in again. Commits. Raises NotFound, Refused when there is no such rule."""
    _check(task_code, round_number)
    row = _exclusion(session, task_code, round_number, other_number)
    if row is None:
        session.rollback()
        raise Refused(f"Nobody is kept out of {_where(task_code, round_number)} by that rule. Nothing was changed.")
    session.delete(row)
    _note(session, clock.now(), by, "exclusion.lift", task_code, round_number, other=other_number)
    session.commit()


def begin_allow_list(session: Session, clock: Clock, task_code: str, round_number: int, *, by: str) -> bool:
    """Let only invited workers in from now on; returns whether that is new. Commits. Raises NotFound, InvalidInput."""
    _check(task_code, round_number)
    if _allow_list(session, task_code, round_number) is not None:
        session.rollback()
        return False
    session.add(AllowList(task_code=task_code, round_number=round_number, set_at=clock.now(), set_by=by[:80]))
    _note(session, clock.now(), by, "allow_list.begin", task_code, round_number)
    session.commit()
    return True


def end_allow_list(session: Session, clock: Clock, task_code: str, round_number: int, *, by: str) -> None:
    """Let everybody in again; who was invited stays on the list. Commits. Raises NotFound, Refused."""
    _check(task_code, round_number)
    row = _allow_list(session, task_code, round_number)
    if row is None:
        session.rollback()
        raise Refused(f"{_where(task_code, round_number)} is open to everybody already. Nothing was changed.")
    session.delete(row)
    _note(session, clock.now(), by, "allow_list.end", task_code, round_number)
    session.commit()


def invite(session: Session, clock: Clock, task_code: str, round_number: int, worker: Worker, *, by: str) -> bool:
    """Put a worker on the allow-list; returns whether they were not on it. Commits. Raises NotFound, InvalidInput."""
    _check(task_code, round_number)
    listed = WorkerList(ListKind.ALLOWED, task_code, round_number)
    return _add(session, clock, listed, worker, reason="invited", by=by, action="worker.invite")


def take_invitation_back(
    session: Session, clock: Clock, task_code: str, round_number: int, worker: Worker, *, by: str
) -> bool:
    """Take a worker off the allow-list; returns whether they were on it. Commits. Raises NotFound, InvalidInput."""
    _check(task_code, round_number)
    listed = WorkerList(ListKind.ALLOWED, task_code, round_number)
    return _remove(session, clock, listed, worker, by=by, action="worker.uninvite")


def set_aside(session: Session, clock: Clock, task_code: str, worker: Worker, *, reason: str, by: str) -> bool:
    """Offer the worker no HITs of the task until that is lifted; returns whether it is new. Commits.

    It is no block of the marketplace, and work that was begun may be finished. Raises NotFound, and InvalidInput
    without a reason.
    """
    _check(task_code, EVERY_ROUND)
    if not reason.strip():
        raise InvalidInput("Somebody is set aside for a reason only. Say which (--reason); it stays among staff.")
    if len(reason.strip()) > REASON_CHARACTERS:
        raise InvalidInput(f"The reason has {len(reason.strip())} characters; at most {REASON_CHARACTERS} are kept.")
    listed = WorkerList(ListKind.SET_ASIDE, task_code, EVERY_ROUND)
    return _add(session, clock, listed, worker, reason=reason.strip(), by=by, action="worker.set_aside")


def take_back(session: Session, clock: Clock, task_code: str, worker: Worker, *, by: str) -> bool:
    """Offer the worker HITs of the task again; returns whether they were set aside. Commits. Raises NotFound."""
    _check(task_code, EVERY_ROUND)
    listed = WorkerList(ListKind.SET_ASIDE, task_code, EVERY_ROUND)
    return _remove(session, clock, listed, worker, by=by, action="worker.take_back")


@dataclass(frozen=True)
class Rule:
    """One rule in force, in words; ``people`` is how many are on its list, if it has one."""

    task_code: str
    round_number: int
    kind: str
    words: str
    people: int | None
    since: datetime
    by: str

    def as_json(self) -> dict[str, Any]:
        """Return the rule as JSON types; round 0 is every round."""
        return {
            "task": self.task_code,
            "round": self.round_number,
            "kind": self.kind,
            "rule": self.words,
            "people": self.people,
            "since": self.since.isoformat(),
            "by": self.by,
        }


def rules_in_force(session: Session, task_code: str | None = None) -> list[Rule]:
    """Return every rule, of one task if asked for, by task and round. Reads only. Raises NotFound."""
    if task_code is not None:
        task(task_code)
    people = _people(session)
    found = [*_limit_rules(session), *_exclusion_rules(session), *_list_rules(session, people)]
    session.rollback()
    chosen = [one for one in found if task_code in (None, one.task_code)]
    return sorted(chosen, key=lambda one: (one.task_code, one.round_number, one.kind, one.words))


def _limit_rules(session: Session) -> list[Rule]:
    words = {LimitPer.HIT_TYPE: "of one HIT type", LimitPer.ROUND: "in a round", LimitPer.DAY: "in a day (UTC)"}
    return [
        Rule(
            row.task_code,
            row.round_number,
            "limit",
            f"{row.work.value}: each worker at most {row.most} {'HIT' if row.most == 1 else 'HITs'} {words[row.per]}",
            None,
            row.set_at,
            row.set_by,
        )
        for row in session.scalars(select(WorkLimit))
    ]


def _exclusion_rules(session: Session) -> list[Rule]:
    return [
        Rule(
            row.task_code,
            row.round_number,
            "exclusion",
            "exclusive: its writers write in no other round, and no others write in it"
            if row.other_number == EVERY_ROUND
            else f"who wrote in round {row.other_number} does not write here",
            None,
            row.set_at,
            row.set_by,
        )
        for row in session.scalars(select(RoundExclusion))
    ]


def _list_rules(session: Session, people: Mapping[tuple[ListKind, str, int], int]) -> list[Rule]:
    found = [
        Rule(
            row.task_code,
            row.round_number,
            "allow-list",
            "only invited workers",
            people.get((ListKind.ALLOWED, row.task_code, row.round_number), 0),
            row.set_at,
            row.set_by,
        )
        for row in session.scalars(select(AllowList))
    ]
    first = session.execute(
        select(ListEntry.task_code, func.min(ListEntry.added_at))
        .where(ListEntry.kind == ListKind.SET_ASIDE, ListEntry.ended_at.is_(None))
        .group_by(ListEntry.task_code)
    )
    found += [
        Rule(
            task_code,
            EVERY_ROUND,
            "set aside",
            "workers who are offered other work for now",
            people.get((ListKind.SET_ASIDE, task_code, EVERY_ROUND), 0),
            since,
            "",
        )
        for task_code, since in first
    ]
    return found


def _people(session: Session) -> dict[tuple[ListKind, str, int], int]:
    rows = session.execute(
        select(ListEntry.kind, ListEntry.task_code, ListEntry.round_number, func.count())
        .where(ListEntry.ended_at.is_(None))
        .group_by(ListEntry.kind, ListEntry.task_code, ListEntry.round_number)
    )
    return {(kind, task_code, number): count for kind, task_code, number, count in rows}


def _add(
    session: Session, clock: Clock, listed: WorkerList, worker: Worker, *, reason: str, by: str, action: str
) -> bool:
    now = clock.now()
    is_new = add_to_list(session, listed, worker.id, reason=reason, by=by, now=now)
    if is_new:
        # The reason stands in the list: it is about a person, and the trail forgets nothing.
        _note(session, now, by, action, listed.task_code, listed.round_number, worker=worker.pseudonym)
    session.commit()
    return is_new


def _remove(session: Session, clock: Clock, listed: WorkerList, worker: Worker, *, by: str, action: str) -> bool:
    now = clock.now()
    was_on = take_off_list(session, listed, worker.id, by=by, now=now)
    if was_on:
        _note(session, now, by, action, listed.task_code, listed.round_number, worker=worker.pseudonym)
    session.commit()
    return was_on


def _note(
    session: Session, now: datetime, by: str, action: str, task_code: str, round_number: int, **detail: Any
) -> None:
    where = _where(task_code, round_number)
    session.add(AuditEntry(at=now, staff_name=by[:80], action=action, subject=where, detail=detail))


def _where(task_code: str, round_number: int) -> str:
    return f"every round of {task_code}" if round_number == EVERY_ROUND else f"round {round_number} of {task_code}"


def _check(task_code: str, round_number: int, *, least: int = EVERY_ROUND) -> None:
    task(task_code)
    if not least <= round_number <= MOST_ROUND:
        raise InvalidInput(f"The round is {round_number:,}; it must be from 1 to {MOST_ROUND:,}.")


def _limit(session: Session, task_code: str, round_number: int, work: Work, per: LimitPer) -> WorkLimit | None:
    return session.scalar(
        select(WorkLimit)
        .where(WorkLimit.task_code == task_code, WorkLimit.round_number == round_number)
        .where(WorkLimit.work == work, WorkLimit.per == per)
        .with_for_update()
    )


def _exclusion(session: Session, task_code: str, round_number: int, other_number: int) -> RoundExclusion | None:
    return session.scalar(
        select(RoundExclusion)
        .where(RoundExclusion.task_code == task_code, RoundExclusion.round_number == round_number)
        .where(RoundExclusion.other_number == other_number)
    )


def _allow_list(session: Session, task_code: str, round_number: int) -> AllowList | None:
    return session.scalar(
        select(AllowList).where(AllowList.task_code == task_code, AllowList.round_number == round_number)
    )
