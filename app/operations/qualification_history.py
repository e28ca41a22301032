"""What somebody took, held and lost, in one list by time. Never worker ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.models import Worker
from qualification.models import LevelChange, QualificationGrant, QuizResult


@dataclass(frozen=True)
class Event:
    """One thing that happened to somebody's right to work."""

    at: datetime
    kind: str
    what: str
    detail: str
    by: str

    def as_json(self) -> dict[str, Any]:
        """Return the event as JSON types."""
        return {
            "at": self.at.isoformat(),
            "kind": self.kind,
            "what": self.what,
            "detail": self.detail,
            "by": self.by,
        }


def history(session: Session, worker: Worker) -> list[Event]:
    """Return everything that is known, oldest first. Reads only."""
    events = [
        *_quizzes(session, worker),
        *_grants(session, worker),
        *(
            Event(change.at, f"level:{change.task_code}", f"level {change.level.value}", change.reason, change.by)
            for change in session.scalars(select(LevelChange).where(LevelChange.worker_id == worker.id))
        ),
    ]
    return sorted(events, key=lambda event: event.at)


def _quizzes(session: Session, worker: Worker) -> list[Event]:
    found = []
    for result in session.scalars(select(QuizResult).where(QuizResult.worker_id == worker.id)):
        name = f"version {result.version.number}, try {result.number}"
        found.append(Event(result.opened_at, result.version.kind, "quiz opened", name, "worker"))
        if result.answered_at is not None:
            outcome = "passed" if result.passed else "not passed"
            score = f"{name}: {result.score} of {len(result.items)} right"
            found.append(Event(result.answered_at, result.version.kind, f"quiz {outcome}", score, "worker"))
        if result.set_aside_at is not None:
            found.append(Event(result.set_aside_at, result.version.kind, "quiz set aside", name, "dynahit"))
    return found


def _grants(session: Session, worker: Worker) -> list[Event]:
    found = []
    for grant in session.scalars(select(QualificationGrant).where(QualificationGrant.worker_id == worker.id)):
        version = f"version {grant.version}, value {grant.value}" if grant.version else f"value {grant.value}"
        until = f", until {grant.expires_at:%Y-%m-%d}" if grant.expires_at is not None else ""
        # The reason and the name are those of the end once there is one.
        ended = grant.ending is not None
        said = "" if ended or not grant.reason else f": {grant.reason}"
        by = "" if ended else grant.by
        found.append(Event(grant.planned_at, grant.kind, "grant planned", f"{version}{until}{said}", by))
        if grant.granted_at is not None:
            found.append(Event(grant.granted_at, grant.kind, "granted", version, "marketplace"))
        if grant.revoked_at is not None and grant.ending is not None:
            found.append(Event(grant.revoked_at, grant.kind, grant.ending.value, grant.reason, grant.by))
        if grant.lifted_at is not None:
            found.append(Event(grant.lifted_at, grant.kind, "revocation lifted", "", "requester"))
        if grant.cause is not None:
            found.append(Event(grant.planned_at, grant.kind, "refused by the marketplace", grant.cause, "marketplace"))
    return found
