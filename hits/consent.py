"""What people agree to before anything of theirs is kept: texts in versions that never change, and who agreed."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.errors import ConsentMissing, NotFound, Refused
from hits.models import Assignment, Consent, ConsentText
from hits.models.people import Worker, worker_for


def text_of(session: Session, body: str, now: datetime) -> ConsentText:
    """Return the version that has exactly this text, made when it is new. Flushes, never commits.

    A text that was used before has the version of that time, so that nobody is asked again about what they know.
    """
    digest = hashlib.sha256(body.encode()).hexdigest()
    known = select(ConsentText).where(ConsentText.digest == digest)
    found = session.scalar(known)
    if found is None:
        found = ConsentText(digest=digest, body=body, created_at=now)
        try:
            with session.begin_nested():
                session.add(found)
        except IntegrityError:
            # Another request met the new text in the same moment; its version is the one.
            found = session.scalar(known)
            if found is None:
                raise
    return found


def text_by_version(session: Session, version: int) -> ConsentText:
    """Return a version, also an old one. Raises NotFound."""
    found = session.get(ConsentText, version)
    if found is None:
        raise NotFound(f"There is no version {version} of the consent text here.")
    return found


def has_agreed(session: Session, mturk_worker_id: str, text: ConsentText) -> bool:
    """Tell whether the worker has agreed to exactly this version."""
    return session.scalar(_consent(mturk_worker_id, text)) is not None


def agree(
    session: Session, mturk_worker_id: str, text: ConsentText, version: str, *, key: str, now: datetime
) -> Consent:
    """Store that the worker agrees; agreeing again changes nothing. Flushes, never commits.

    ``version`` is the one that the worker has read. Raises Refused when it is not the current one.
    """
    if version != str(text.id):
        raise Refused(
            f"You agreed to version {version[:20]!r} of the text, but version {text.id} holds now. Nothing was stored."
            " Read the new one and decide again."
        )
    found: Consent | None = session.scalar(_consent(mturk_worker_id, text))
    if found is None:
        try:
            with session.begin_nested():
                worker = worker_for(session, mturk_worker_id, key=key, now=now)
                found = Consent(worker_id=worker.id, consent_text_id=text.id, given_at=now)
                session.add(found)
        except IntegrityError:
            # A second tab was faster.
            found = session.scalar(_consent(mturk_worker_id, text))
            if found is None:
                raise
    return found


def require_consent(assignment: Assignment) -> None:
    """Raise ConsentMissing unless the worker had agreed when the assignment's page was opened."""
    if assignment.consent_text_id is None:
        raise ConsentMissing


def _consent(mturk_worker_id: str, text: ConsentText) -> Select[Any]:
    return (
        select(Consent)
        .join(Worker, Worker.id == Consent.worker_id)
        .where(Worker.mturk_worker_id == mturk_worker_id, Consent.consent_text_id == text.id)
    )
