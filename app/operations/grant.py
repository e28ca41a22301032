"""Grant qualifications and take them away: the row first, then the marketplace, then the row again."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from app.settings import Settings
from hits.clock import Clock
from hits.errors import InvalidInput, NotFound
from hits.models import Worker
from hits.models.people import worker_for
from hits.mturk.client import MTurk, Requirement
from hits.mturk.errors import MTurkRefused
from hits.tasks import TASKS
from qualification import grants
from qualification.models import LIVE, Level, QualificationGrant, QuizForm, QuizVersion
from qualification.quiz_requirements import accepted_versions, note_type, quiz_requirement
from qualification.quizzes import QuizFor, kind_of, stored_version

log = logging.getLogger(__name__)

#: On the marketplace's side this is what taking away asks for.
_NOT_HELD = "QualificationDoesNotExist"


@dataclass
class Settled:
    """What the marketplace was asked; ``findings`` are grants that it refused, by pseudonym, each with its cause."""

    granted: int = 0
    ended: int = 0
    found: int = 0
    findings: list[str] = field(default_factory=list)


def kinds() -> tuple[str, ...]:
    """Return the kinds of qualifications that there are: of all tasks' validators, each task's quizzes and experts."""
    of_tasks = (
        (*(kind_of(audience, code) for audience in QuizFor), grants.expert_kind(code)) for code in sorted(TASKS)
    )
    return (grants.VALIDATOR, *(kind for kinds_of_task in of_tasks for kind in kinds_of_task))


def checked_kind(kind: str) -> str:
    """Return the kind. Raises InvalidInput with those that there are."""
    if kind not in kinds():
        raise InvalidInput(f"There is no qualification {kind!r}. There are {', '.join(kinds())}.")
    return kind


def name_of(settings: Settings, kind: str) -> str:
    """Return what a qualification is called on the marketplace."""
    return grants.type_name(kind, prefix=settings.qualification_prefix, validators=settings.validator_qualification)


def type_of(session: Session, mturk: MTurk, settings: Settings, kind: str) -> str:
    """Return the id of a qualification's type on the marketplace, created where there is none. Commits."""
    session.commit()
    type_id = mturk.find_or_create_qualification(name_of(settings, kind), grants.type_description(kind))
    if kind != grants.VALIDATOR:
        note_type(session, kind, mturk.endpoint, type_id)
        session.commit()
    return type_id


def asked_quiz(session: Session, mturk: MTurk, settings: Settings, task_code: str, quiz_for: QuizFor) -> Requirement:
    """Return what HITs ask for that only people who passed a task's quiz may do. Commits. Raises NotFound, MTurkError.

    They accept every version that is not retired.
    """
    kind = kind_of(quiz_for, task_code)
    versions = accepted_versions(session, kind)
    return quiz_requirement(type_of(session, mturk, settings, kind), versions)


def asked_experts(session: Session, mturk: MTurk, settings: Settings, task_code: str) -> Requirement:
    """Return what HITs ask for that only experts of a task may do. Commits. Raises MTurkError."""
    kind = grants.expert_kind(task_code)
    type_id = type_of(session, mturk, settings, kind)
    return Requirement(type_id, comparator="Exists", name=name_of(settings, kind))


def settle_grants(session: Session, mturk: MTurk, settings: Settings, clock: Clock) -> Settled:
    """Bring the marketplace to what the rows say: what it shows by itself, what has expired, what is planned.

    Safe to be killed anywhere, to run again, and to run in several processes. Raises MTurkUnavailable; what is not
    done by then is done by the next run.
    """
    done = take_over(session, mturk, settings, clock)
    grants.end_expired(session, mturk.endpoint, clock.now())
    session.commit()
    _tell(session, mturk, settings, clock, grants.waiting(session, mturk.endpoint), done)
    return done


def _tell(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    rows: Iterable[tuple[int, int]],
    done: Settled,
) -> None:
    session.commit()
    types: dict[str, str] = {}
    for grant_id, claims in rows:
        order = grants.claim(session, grant_id, claims)
        session.commit()
        if order is None:
            continue
        if order.kind not in types:
            types[order.kind] = type_of(session, mturk, settings, order.kind)
        try:
            if order.ends:
                mturk.revoke(types[order.kind], order.worker_id, order.reason)
            else:
                mturk.grant(types[order.kind], order.worker_id, order.value, notify=True)
        except MTurkRefused as error:
            # What is not held can't be taken away, which is as good as done.
            if not (order.ends and error.code.endswith(_NOT_HELD)):
                _refused(session, order, error, done)
                if not order.ends:
                    continue
        marked = grants.mark_done(session, order, clock.now())
        session.commit()
        done.ended += marked and order.ends
        done.granted += marked and not order.ends


def _refused(session: Session, order: grants.Order, error: MTurkRefused, done: Settled) -> None:
    # The marketplace's own words may name the worker; the code says enough. Asking again would bring the same answer,
    # so that what could not be taken away there is ended here, where it counts.
    verb = "take away" if order.ends else "grant"
    finding = f"The marketplace refused to {verb} {order.kind!r} for {order.pseudonym}: {error.code}."
    if not order.ends:
        grants.mark_failed(session, order, error.code)
        session.commit()
    done.findings.append(finding)
    log.warning("%s", finding)


def take_over(session: Session, mturk: MTurk, settings: Settings, clock: Clock) -> Settled:
    """Store who has passed the quizzes that stand on the marketplace itself; ``found`` says how many are new."""
    done = Settled()
    forms = session.execute(
        select(QuizForm.qualification_type_id, QuizVersion.kind, QuizVersion.number)
        .join(QuizForm.version)
        .where(QuizForm.endpoint == mturk.endpoint, QuizForm.published_at.is_not(None))
        .order_by(QuizForm.id)
    ).all()
    session.commit()
    versions: dict[tuple[str, str], set[int]] = {}
    for type_id, kind, number in forms:
        versions.setdefault((type_id, kind), set()).add(number)
    for (type_id, kind), numbers in versions.items():
        try:
            holders = list(mturk.holders(type_id))
        except MTurkRefused as error:
            done.findings.append(
                f"The quiz {kind!r} is not on the marketplace any more: {error.code}. Publish it again."
            )
            continue
        for seen in holders:
            if seen.value not in numbers:
                continue
            worker = worker_for(session, seen.worker_id, key=settings.pseudonym_key.get_secret_value(), now=clock.now())
            new = grants.note_held(
                session,
                worker.id,
                kind,
                version=seen.value,
                value=seen.value,
                endpoint=mturk.endpoint,
                granted_at=seen.granted_at,
                reason=f"Passed the marketplace's quiz, version {seen.value}.",
                months=settings.qualification_months,
            )
            done.found += new is not None
            session.commit()
    return done


def worker_named(session: Session, settings: Settings, clock: Clock, named: str) -> Worker:
    """Return somebody by pseudonym, or by the marketplace's id, which is stored on first sight. Flushes.

    Raises NotFound for a pseudonym that nobody has, InvalidInput for what is neither.
    """
    if named.startswith("w-"):
        worker = session.scalar(select(Worker).where(Worker.pseudonym == named))
        if worker is None:
            raise NotFound(
                f"Nobody has the pseudonym {named!r}. `dynahit qualification list --all` shows who has what."
            )
        return worker
    if not (named.isascii() and named.isalnum() and named.isupper() and named.startswith("A") and len(named) <= 64):
        raise InvalidInput(
            "This is neither a pseudonym (w-…) nor a worker id (A…, capital letters and digits). Nothing was changed."
        )
    return worker_for(session, named, key=settings.pseudonym_key.get_secret_value(), now=clock.now())


def grant_by_hand(
    session: Session,
    mturk: MTurk,
    settings: Settings,
    clock: Clock,
    worker: Worker,
    kind: str,
    *,
    value: int | None = None,
    months: int = 0,
    reason: str = "",
    by: str,
) -> Settled:
    """Grant a qualification to somebody without a quiz, and tell the marketplace at once.

    Of a quiz's qualification it grants the newest version unless ``value`` names another. Granting what is held
    already changes nothing. Raises NotFound for a quiz that has no version yet, MTurkUnavailable; the grant is stored
    then, and the next pass of the jobs goes on with it.
    """
    version = 0 if grants.has_no_quiz(kind) else stored_version(session, kind, value).number
    # Those who were told by the marketplace alone are known here from now on.
    _note_untold(session, mturk, settings, worker, kind)
    planned = grants.plan_grant(
        session,
        worker.id,
        kind,
        version=version,
        value=(value or 1) if grants.has_no_quiz(kind) else version,
        endpoint=mturk.endpoint,
        reason=reason or "Granted by the requester.",
        by=by,
        now=clock.now(),
        months=months,
    )
    if (task_code := grants.task_of_experts(kind)) is not None:
        why = reason or "Granted by the requester."
        grants.raise_level(session, worker.id, task_code, Level.EXPERT, by=by, reason=why, now=clock.now())
    _audit(session, clock, by, "qualification.grant", worker, {"kind": kind, "value": value})
    done = Settled()
    rows = [(planned.id, planned.claims)] if planned is not None else []
    _tell(session, mturk, settings, clock, rows, done)
    return done


def revoke(
    session: Session, mturk: MTurk, settings: Settings, clock: Clock, worker: Worker, kind: str, *, reason: str, by: str
) -> Settled:
    """Take a qualification away: from the commit on it does not count here, and the marketplace is told at once.

    Raises NotFound when it is not held, MTurkUnavailable; the next pass of the jobs goes on with it then.
    """
    _note_untold(session, mturk, settings, worker, kind)
    ended = grants.end_grant(session, worker.id, kind, mturk.endpoint, reason=reason, by=by, now=clock.now())
    task_code = grants.task_of_experts(kind)
    if task_code is not None and grants.level_of(session, worker.id, task_code) is Level.EXPERT:
        before = grants.level_before_expert(session, worker.id, task_code)
        why = reason.strip() or "The experts' qualification was taken away."
        grants.lower_level(session, worker.id, task_code, before, by=by, reason=why, now=clock.now())
    _audit(session, clock, by, "qualification.revoke", worker, {"kind": kind})
    done = Settled()
    _tell(session, mturk, settings, clock, [(ended.id, ended.claims)], done)
    return done


def _note_untold(session: Session, mturk: MTurk, settings: Settings, worker: Worker, kind: str) -> None:
    """Store a grant that the marketplace shows and that did not go through here, as that of an invitation."""
    worker_id, mturk_worker_id = worker.id, worker.mturk_worker_id
    latest = grants.latest_grant(session, worker_id, kind, mturk.endpoint)
    if latest is not None:
        return
    type_id = type_of(session, mturk, settings, kind)
    held = next((seen for seen in mturk.holders(type_id) if seen.worker_id == mturk_worker_id), None)
    if held is not None:
        grants.note_held(
            session,
            worker_id,
            kind,
            version=0 if grants.has_no_quiz(kind) else held.value,
            value=held.value,
            endpoint=mturk.endpoint,
            granted_at=held.granted_at,
            reason="Found on the marketplace.",
        )


def reset(session: Session, clock: Clock, worker: Worker, kind: str, *, by: str) -> int:
    """Give somebody all tries at a quiz again, and after a revocation the right to earn it; return how many tries."""
    count = grants.reset(session, worker.id, kind, clock.now())
    _audit(session, clock, by, "qualification.reset", worker, {"kind": kind, "tries": count})
    session.commit()
    return count


def live_grants(session: Session, endpoint: str, kind: str | None = None) -> list[QualificationGrant]:
    """Return the grants that stand or are on their way, by kind and age; of one kind if asked for. Reads only."""
    query = (
        select(QualificationGrant)
        .join(QualificationGrant.worker)
        .where(QualificationGrant.state.in_(LIVE), QualificationGrant.endpoint == endpoint)
        .order_by(QualificationGrant.kind, QualificationGrant.id)
    )
    return list(session.scalars(query if kind is None else query.where(QualificationGrant.kind == kind)))


def _audit(session: Session, clock: Clock, by: str, action: str, worker: Worker, detail: dict[str, object]) -> None:
    # The reason stands in the grant: it is about a person, and the trail forgets nothing.
    session.add(AuditEntry(at=clock.now(), staff_name=by[:80], action=action, subject=worker.pseudonym, detail=detail))
