"""Stores a file of contexts in a round: all that is new of it, or nothing. Commits once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.models import AuditEntry
from hits.clock import Clock
from hits.contexts import ContextsFile, lock_contexts, read_lines
from hits.contexts.uploads import NAME_CHARACTERS, Repeat, Sorted, retire, sort_out, store, take_back
from hits.db import only_reads
from hits.errors import InvalidInput
from hits.export import find_round
from hits.frozen import require_collecting, require_open
from hits.models import Context, Round
from hits.rounds import begun
from hits.tasks import TaskSpec, task

Advance = Callable[[int], None]


@dataclass(frozen=True)
class UploadTerms:
    """Which file goes to which round, whose texts they are, and what of it is left out."""

    task_code: str
    number: int
    path: Path
    source: str
    licence: str
    keep_near: bool = False
    new_only: bool = False


@dataclass(frozen=True)
class UploadReport:
    """What of a file was, or would be, stored; ``upload_id`` is None while nothing is."""

    terms: UploadTerms
    file_sha256: str
    read: int
    found: Sorted
    upload_id: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the report as it is printed."""
        return {
            "task": self.terms.task_code,
            "round": self.terms.number,
            "file": self.terms.path.name,
            "file_sha256": self.file_sha256,
            "source": self.terms.source,
            "licence": self.terms.licence,
            "read": self.read,
            "added": len(self.found.new),
            "repeats": [_as_json(one) for one in self.found.repeats],
            "near_repeats": [_as_json(one) for one in self.found.near],
            "in_other_rounds": [_as_json(one) for one in self.found.elsewhere],
            "upload": self.upload_id,
        }


def plan_upload(session: Session, terms: UploadTerms, *, advance: Advance = lambda count: None) -> UploadReport:
    """Return what would be stored. Changes nothing. Raises InvalidContexts, InvalidInput, Refused."""
    spec, given = _read(terms)
    only_reads(session)
    round_ = _round(session, terms)
    if round_ is not None:
        require_collecting(session, round_.id)
    found = _sorted(session, spec, given, terms, round_, advance)
    session.rollback()
    return UploadReport(terms, given.sha256, len(given.lines), found)


def upload_contexts(
    session: Session, clock: Clock, terms: UploadTerms, *, by: str, advance: Advance = lambda count: None
) -> UploadReport:
    """Store what is new of the file; the round is made if it is new. Raises as plan_upload; nothing is stored then."""
    spec, given = _read(terms)
    while True:
        # Comparing takes long for many contexts, and nobody waits for it: it is done before anything is locked.
        only_reads(session)
        round_ = _round(session, terms)
        if round_ is not None:
            require_collecting(session, round_.id)
        last = _last(session, round_)
        found = _sorted(session, spec, given, terms, round_, advance)
        session.rollback()
        report = UploadReport(terms, given.sha256, len(given.lines), found)
        if not found.new:
            return report
        try:
            upload_id = _stored(session, clock, given, found, terms, last, by)
        except IntegrityError:
            # The round itself was made by somebody else at this moment.
            session.rollback()
            continue
        if upload_id is not None:
            return replace(report, upload_id=upload_id)


def retire_contexts(
    session: Session,
    clock: Clock,
    task_code: str,
    number: int,
    names: list[str],
    *,
    reason: str,
    undo: bool = False,
    by: str,
    plan_only: bool = False,
) -> list[str]:
    """Retire contexts of a round, or with ``undo`` let HITs have them again; return the changed digests. Commits.

    Raises NotFound, InvalidInput, and Refused for a frozen round. With ``plan_only`` nothing is kept.
    """
    found = find_round(session, task_code, number)
    # Of two who retire the same contexts the second waits, and finds them retired.
    round_ = session.get_one(Round, found.id, populate_existing=True, with_for_update={"key_share": True})
    require_open(session, round_.id)
    if undo:
        changed = take_back(session, round_, names)
    else:
        changed = retire(session, round_, names, reason=reason, by=by, now=clock.now())
    if plan_only or not changed:
        session.rollback()
        return changed
    detail = {"contexts": [digest[:12] for digest in changed], "reason": reason}
    action = "contexts.unretire" if undo else "contexts.retire"
    subject = f"round {number} of {task_code}"
    session.add(AuditEntry(at=clock.now(), staff_name=by[:80], action=action, subject=subject, detail=detail))
    session.commit()
    return changed


def _read(terms: UploadTerms) -> tuple[TaskSpec, ContextsFile]:
    spec = task(terms.task_code)
    if not spec.context_fields:
        raise InvalidInput(f"The {spec.code} task has no contexts: its writers start from nothing.")
    if not 1 <= terms.number <= 10_000:
        raise InvalidInput(f"A round's number must be 1 to 10000, not {terms.number}.")
    return spec, read_lines(terms.path, spec)


def _round(session: Session, terms: UploadTerms) -> Round | None:
    return session.scalar(select(Round).where(Round.task_code == terms.task_code, Round.number == terms.number))


def _sorted(
    session: Session, spec: TaskSpec, given: ContextsFile, terms: UploadTerms, round_: Round | None, advance: Advance
) -> Sorted:
    own = Round.id == (round_.id if round_ is not None else 0)
    return sort_out(
        given,
        _known(session, spec, own),
        _known(session, spec, ~own),
        keep_near=terms.keep_near,
        new_only=terms.new_only,
        advance=advance,
    )


def _known(session: Session, spec: TaskSpec, where: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield name and fields of the task's contexts, those of the earliest round first."""
    rows = session.execute(
        select(Round.number, Context.digest, Context.fields)
        .join(Context, Context.round_id == Round.id)
        .where(Round.task_code == spec.code, where)
        .order_by(Round.number, Context.id)
        .execution_options(yield_per=1000)
    )
    for number, digest, fields in rows:
        yield f"round {number}, {digest[:NAME_CHARACTERS]}", fields


def _last(session: Session, round_: Round | None) -> int:
    own = Context.round_id == (round_.id if round_ is not None else 0)
    return session.scalar(select(func.max(Context.id)).where(own)) or 0


def _stored(
    session: Session, clock: Clock, given: ContextsFile, found: Sorted, terms: UploadTerms, last: int, by: str
) -> int | None:
    """Store what is new in one transaction and return the upload's id; None when the round has further contexts now."""
    now = clock.now()
    round_ = _round(session, terms)
    if round_ is None:
        version = task(terms.task_code).version
        round_ = Round(task_code=terms.task_code, number=terms.number, task_version=version, created_at=now)
        session.add(round_)
        begun(session, round_, by=by, now=now, note="by an upload of contexts")
    lock_contexts(session, round_.id)
    require_collecting(session, round_.id)
    if _last(session, round_) != last:
        session.rollback()
        return None
    upload = store(
        session,
        round_,
        given,
        found,
        file_name=terms.path.name,
        source=terms.source,
        licence=terms.licence,
        by=by,
        now=now,
    )
    detail = {"upload": upload.id, "file_sha256": given.sha256, "added": len(found.new)}
    subject = f"round {terms.number} of {terms.task_code}"
    session.add(AuditEntry(at=now, staff_name=by[:80], action="contexts.upload", subject=subject, detail=detail))
    upload_id = upload.id
    session.commit()
    return upload_id


def _as_json(one: Repeat) -> dict[str, Any]:
    return {"line": one.line, "of": one.of, "similarity": round(one.similarity, 3)}
