"""Who may work on a HIT by our own database: what a browser or the marketplace lets through is asked here again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Literal

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, func, or_, select
from sqlalchemy.orm import Session

from hits.models import Assignment, Attempt, Hit, HitBatch, Round, Vote, Worker
from hits.states import AssignmentState, HitKind
from qualification.errors import NotAdmitted
from qualification.grants import VALIDATOR, is_held, latest_grant
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
from qualification.models import GrantState
from qualification.quiz_requirements import check_quizzes
from qualification.requirements import allow_list_of, excluded_by, limit_of

#: load: a HIT's page is opened. submit: something is sent from it.
Phase = Literal["load", "submit"]

_WORK = {HitKind.CREATION: Work.WRITING, HitKind.VALIDATION: Work.JUDGING}
_KINDS = {work: kind for kind, work in _WORK.items()}


def check_admission(session: Session, hit: Hit, worker: Worker, now: datetime, *, phase: Phase) -> None:
    """Let the worker go on with the HIT, or raise NotAdmitted with the reason in plain words.

    On load the worker's row stays locked until the caller commits, so that of several HITs that are opened at once no
    more are let in than the limits say. Who has begun a HIT, with a question to the model or a judgement, may finish
    it whatever was decided since; HITs of other kinds than writing and judging are open to all. Writes nothing.
    """
    work = _WORK.get(hit.batch.kind)
    if work is None:
        return
    if phase == "load":
        # Not the whole lock: attempts of the same worker that are being stored refer to the row and need not wait.
        session.execute(select(Worker.id).where(Worker.id == worker.id).with_for_update(key_share=True))
    round_ = hit.batch.round
    stands = session.execute(_STANDS[work], _names(hit, round_, worker)).one()
    if stands.begun:
        return
    check_quizzes(session, hit, worker, now)
    _check_validator(session, hit, worker, now)
    if stands.set_aside:
        raise NotAdmitted("The requester does not offer you HITs of this task at the moment.")
    if stands.by_invitation:
        _check_invited(session, round_, worker, work)
    if work is Work.WRITING and stands.exclusive:
        _check_exclusions(session, hit, round_, worker, now)
    # A place that was given stays given: on submit, and when the page is loaded again.
    if phase == "load" and not _has_place(session, hit, worker, now):
        _check_limits(session, hit, round_, worker, work, now)


def work_of(kind: HitKind) -> Work | None:
    """Return what people do in HITs of this kind, None for kinds that lists and limits say nothing about."""
    return _WORK.get(kind)


def places_taken(now: datetime) -> ColumnElement[bool]:
    """Return which assignments take a place: sent in, or open with time left. One that was let lapse takes none."""
    return or_(Assignment.state != AssignmentState.OPENED, Assignment.deadline_at > now)


def workers_with(session: Session, work: Work, most: int, now: datetime, *where: ColumnElement[bool]) -> set[int]:
    """Return the ids of the workers who do or have done at least so many HITs, each HIT counted once. Reads only."""
    query = (
        select(Assignment.worker_id)
        .join(Assignment.hit)
        .join(Hit.batch)
        .join(HitBatch.round)
        .where(HitBatch.kind == _KINDS[work], places_taken(now), *where)
        .group_by(Assignment.worker_id)
        .having(func.count(Assignment.hit_id.distinct()) >= most)
    )
    return set(session.scalars(query))


def _hits_done(session: Session, worker: Worker, work: Work, now: datetime, *where: ColumnElement[bool]) -> int:
    count = session.scalar(
        select(func.count(Assignment.hit_id.distinct()))
        .join(Assignment.hit)
        .join(Hit.batch)
        .join(HitBatch.round)
        .where(Assignment.worker_id == worker.id, HitBatch.kind == _KINDS[work], places_taken(now), *where)
    )
    return count or 0


def _names(hit: Hit, round_: Round, worker: Worker) -> dict[str, object]:
    return {"of_hit": hit.id, "of_worker": worker.id, "of_task": round_.task_code}


def _stands(begun: Select[int]) -> Select[bool, bool, bool, bool]:
    """Return what decides for most people at once: whether they have begun, and which rules there are at all."""
    of_task: BindParameter[str] = bindparam("of_task")
    set_aside = select(ListEntry.id).where(
        ListEntry.worker_id == bindparam("of_worker"),
        ListEntry.kind == ListKind.SET_ASIDE,
        ListEntry.task_code == of_task,
        ListEntry.round_number == EVERY_ROUND,
        ListEntry.ended_at.is_(None),
    )
    return select(
        begun.exists().label("begun"),
        set_aside.exists().label("set_aside"),
        select(AllowList.id).where(AllowList.task_code == of_task).exists().label("by_invitation"),
        select(RoundExclusion.id).where(RoundExclusion.task_code == of_task).exists().label("exclusive"),
    )


#: Built once: every question to the model asks this, and building it takes longer than answering it.
_STANDS = {
    Work.WRITING: _stands(
        select(Attempt.id).where(Attempt.hit_id == bindparam("of_hit"), Attempt.worker_id == bindparam("of_worker"))
    ),
    Work.JUDGING: _stands(
        select(Vote.id)
        .join(Vote.assignment)
        .where(Assignment.hit_id == bindparam("of_hit"), Vote.validator_id == bindparam("of_worker"))
    ),
}


def _has_place(session: Session, hit: Hit, worker: Worker, now: datetime) -> bool:
    mine = and_(Assignment.hit_id == hit.id, Assignment.worker_id == worker.id, places_taken(now))
    return session.scalar(select(Assignment.id).where(mine).limit(1)) is not None


def _check_invited(session: Session, round_: Round, worker: Worker, work: Work) -> None:
    allowed = allow_list_of(session, round_.task_code, round_.number)
    if allowed is None:
        return
    # Who is invited to the whole task is invited to each of its rounds.
    if not any(
        _listed(session, worker, ListKind.ALLOWED, round_.task_code, number)
        for number in {allowed.round_number, EVERY_ROUND}
    ):
        what = "writing" if work is Work.WRITING else "judging"
        raise NotAdmitted(
            f"This HIT is for people whom the requester has invited, and you are not invited to {what} it."
        )


def _check_validator(session: Session, hit: Hit, worker: Worker, now: datetime) -> None:
    """Raise NotAdmitted for a validator whose qualification ended here; the marketplace may not know it yet.

    Of whom our database knows nothing the marketplace alone decides: requesters grant it there as well.
    """
    if hit.batch.kind is not HitKind.VALIDATION or hit.batch.qualification_type_id is None:
        return
    latest = latest_grant(session, worker.id, VALIDATOR, hit.batch.endpoint)
    if latest is not None and latest.state is not GrantState.FAILED and not is_held(latest, now):
        raise NotAdmitted(
            "This HIT is for people who hold the validators' qualification. Yours has been taken back, or has ended."
            " Return this HIT; it costs you nothing."
        )
    least = hit.batch.senior_value
    if least is not None and latest is not None and is_held(latest, now) and latest.value < least:
        raise NotAdmitted(
            f"This HIT is for senior validators, whose qualification has the value {least} or more. Yours has"
            f" {latest.value}. Return this HIT; it costs you nothing."
        )


def _listed(session: Session, worker: Worker, kind: ListKind, task_code: str, round_number: int) -> bool:
    entry = select(ListEntry.id).where(
        ListEntry.worker_id == worker.id,
        ListEntry.kind == kind,
        ListEntry.task_code == task_code,
        ListEntry.round_number == round_number,
        ListEntry.ended_at.is_(None),
    )
    return session.scalar(entry.limit(1)) is not None


def _check_exclusions(session: Session, hit: Hit, round_: Round, worker: Worker, now: datetime) -> None:
    excluding = excluded_by(session, round_.task_code, round_.number)
    if not excluding:
        return
    # Of two HITs that were opened before the rule was made, the first one stays.
    own = select(func.min(Assignment.id)).where(Assignment.hit_id == hit.id, Assignment.worker_id == worker.id)
    first = session.scalar(own)
    before = [Assignment.id < first] if first is not None else []
    wrote = session.scalar(
        rounds_written(now)
        .where(
            Assignment.worker_id == worker.id, Round.task_code == round_.task_code, Round.number.in_(excluding), *before
        )
        .order_by(Round.number)
        .limit(1)
    )
    if wrote is not None:
        raise NotAdmitted(
            f"You wrote in round {wrote} of this task, and round {round_.number} is kept for people who did not."
        )


def rounds_written(now: datetime) -> Select[int]:
    """Return the query for the numbers of rounds that somebody writes in, or has shown the model something in."""
    asked = select(Attempt.id).where(Attempt.assignment_id == Assignment.id).exists()
    return (
        select(Round.number)
        .select_from(Assignment)
        .join(Assignment.hit)
        .join(Hit.batch)
        .join(HitBatch.round)
        .where(HitBatch.kind == HitKind.CREATION, or_(places_taken(now), asked))
    )


def _check_limits(session: Session, hit: Hit, round_: Round, worker: Worker, work: Work, now: datetime) -> None:
    of_task = Round.task_code == round_.task_code
    of_round = Round.id == round_.id
    for per in LimitPer:
        limit = limit_of(session, round_.task_code, round_.number, work, per)
        if limit is None:
            continue
        where: Sequence[ColumnElement[bool]]
        if per is LimitPer.DAY:
            where = (of_task if limit.round_number == EVERY_ROUND else of_round, _begun_on_the_day_of(now))
        elif per is LimitPer.ROUND:
            where = (of_round,)
        else:
            where = (_same_hit_type(hit),)
        done = _hits_done(session, worker, work, now, *where)
        if done >= limit.most:
            raise NotAdmitted(_limit_words(limit, done, round_))


def _begun_on_the_day_of(now: datetime) -> ColumnElement[bool]:
    start = datetime.combine(now.astimezone(UTC).date(), time(), UTC)
    begun = func.coalesce(Assignment.opened_at, Assignment.accepted_at, Assignment.submitted_at)
    return and_(begun >= start, begun < start + timedelta(days=1))


def _same_hit_type(hit: Hit) -> ColumnElement[bool]:
    # Batches of equal properties have one HIT type; until the marketplace has named it, the batch stands for it.
    if hit.batch.hit_type_id is None:
        return HitBatch.id == hit.batch_id
    return HitBatch.hit_type_id == hit.batch.hit_type_id


def _limit_words(limit: WorkLimit, done: int, round_: Round) -> str:
    hits = "1 HIT" if done == 1 else f"{done} HITs"
    if limit.per is LimitPer.DAY:
        return f"You have begun {hits} of this task today, and one person does at most {limit.most} in a day (UTC)."
    where = f"of round {round_.number}" if limit.per is LimitPer.ROUND else "of this kind"
    return f"You have done or begun {hits} {where}, and one person does at most {limit.most}, so that many take part."
