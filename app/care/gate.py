"""What must have happened before a HIT's page is shown; what has not is asked for in its place."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.care.texts import text_for_task
from app.frames import Frame
from app.services import Services
from hits.attempts import check_ids
from hits.consent import has_agreed, require_consent, text_of
from hits.errors import ConsentMissing, NotWarned, WrongWorker
from hits.models import Assignment, ConsentText, Hit
from hits.states import AssignmentState
from hits.tasks import task


class ConsentWanted(ConsentMissing):
    """The page of a HIT was opened by a worker who has not agreed to the current text; answered by the text."""

    def __init__(self, hit: Hit, text: ConsentText) -> None:
        super().__init__()
        self.hit = hit
        self.text = text


class WarningWanted(NotWarned):
    """The page of a HIT with disturbing texts was opened for the first time; answered by its warning."""

    def __init__(self, assignment: Assignment) -> None:
        super().__init__()
        self.assignment = assignment


def consent_text(session: Session, known: Services, hit: Hit) -> ConsentText:
    """Return the version that holds for the HIT's task now. Flushes, never commits."""
    body = text_for_task(known.consent_text, task(hit.batch.round.task_code))
    return text_of(session, body, known.clock.now())


def before_opening(session: Session, known: Services, hit: Hit, frame: Frame) -> ConsentText | None:
    """Return what the worker has agreed to; None for work that is handed in already, which wants nothing any more.

    Raises ConsentWanted while nothing of the worker is stored, and what open_assignment raises for a wrong claim.
    """
    check_ids(frame.assignment_id or "", frame.worker_id)
    row = session.scalar(select(Assignment).where(Assignment.mturk_assignment_id == frame.assignment_id))
    if row is not None:
        if row.hit_id != hit.id or row.worker.mturk_worker_id != frame.worker_id:
            raise WrongWorker
        if row.state is not AssignmentState.OPENED:
            return None
    text = consent_text(session, known, hit)
    if not has_agreed(session, frame.worker_id, text):
        raise ConsentWanted(hit, text)
    return text


def after_opening(assignment: Assignment) -> None:
    """Raise WarningWanted while the worker has not gone on behind the task's warning."""
    if assignment.state is AssignmentState.OPENED and must_be_warned(assignment):
        raise WarningWanted(assignment)


def must_be_warned(assignment: Assignment) -> bool:
    """Tell whether the task has a warning that was not gone on behind in this assignment."""
    return task(assignment.hit.batch.round.task_code).content_warning is not None and assignment.warned_at is None


def require_care(assignment: Assignment) -> None:
    """Raise ConsentMissing or NotWarned for a form that was sent past the pages before it."""
    if assignment.state is not AssignmentState.OPENED:
        return
    require_consent(assignment)
    if must_be_warned(assignment):
        raise NotWarned


def go_on(assignment: Assignment, now: datetime) -> None:
    """Note that the worker goes on behind the warning; the first time stays."""
    if assignment.warned_at is None:
        assignment.warned_at = now
