"""The practice round from a reviewer's grade to its writer, whom the marketplace and the next page tell the words."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.models import AuditEntry
from hits.clock import Clock
from hits.errors import NotFound
from hits.models import Assignment, Attempt, Example
from hits.mturk.client import MTurk
from hits.mturk.errors import MTurkRefused
from hits.states import AssignmentState
from hits.tasks import task
from qualification import practice
from qualification.limits_models import PracticeGrade

log = logging.getLogger(__name__)

#: Of NotifyWorkers.
SUBJECT_CHARACTERS, MESSAGE_CHARACTERS = 200, 4096
#: The marketplace's word for "later".
SOFT_FAILURE = "SoftFailure"


def grade_practice(session: Session, clock: Clock, public_id: str, *, passed: bool, words: str, by: str) -> None:
    """Store a reviewer's grade of the practice example with this name, with an audit entry. Commits.

    Raises NotFound, Refused for an example that somebody has graded meanwhile, InvalidAnswer for words that can't be
    sent.
    """
    example = session.scalar(
        select(Example)
        .join(Example.attempt)
        .where(Attempt.public_id == public_id)
        .with_for_update(of=Example)
        .execution_options(populate_existing=True)
    )
    if example is None:
        raise NotFound("This practice example is not there any more. Go back to the list.")
    now = clock.now()
    grade = practice.grade(session, example, passed=passed, words=words, by=by, now=now)
    session.add(
        AuditEntry(
            at=now,
            staff_name=by,
            action="practice.pass" if passed else "practice.fail",
            subject=f"example {public_id}",
            # The words stand in the grade: they are for one person, and the trail forgets nothing.
            detail={"grade": grade.id},
        )
    )
    session.commit()


def tell_writers(session: Session, mturk: MTurk, clock: Clock) -> int:
    """Write to the writers of graded practice examples and return how many were written to. Commits after each.

    The marketplace passes on messages only to people whose work was reviewed, so that a grade waits for the approval.
    What it refuses for good is not sent again: the writer's next page has the words anyway. A crash between sending
    and storing sends a message twice at most. Raises MTurkUnavailable.
    """
    told = 0
    for ids in _untold(session):
        grades = session.scalars(
            select(PracticeGrade).where(PracticeGrade.id.in_(ids)).order_by(PracticeGrade.id)
        ).all()
        if not grades:
            continue
        writer, task_code = grades[0].example.writer, grades[0].example.round.task_code
        worker_id, pseudonym = writer.mturk_worker_id, writer.pseudonym
        subject, message = words_for(task_code, grades)
        session.commit()
        try:
            failures = mturk.notify([worker_id], subject, message)
        except MTurkRefused as error:
            failures = [error.code]
        if SOFT_FAILURE in failures:
            continue
        if failures:
            log.info("The marketplace passes no message on to %s (%s); their next page has it.", pseudonym, failures[0])
        told += not failures
        _mark(session, ids, clock.now())
    return told


def words_for(task_code: str, grades: Sequence[PracticeGrade]) -> tuple[str, str]:
    """Return subject and text of the message about some grades of one writer, as short as the marketplace wants it."""
    spec = task(task_code)
    subject = f"Your first {spec.item_name}s were looked at: {spec.title}"[:SUBJECT_CHARACTERS]
    lines = [f"{'Passed' if one.passed else 'Not passed'}: {one.words}" for one in grades]
    end = "Your pay does not hang on this. The next HIT that you open shows it again."
    text = "\n\n".join(lines)
    most = MESSAGE_CHARACTERS - len(end) - 2
    return subject, f"{text if len(text) <= most else text[: most - 1] + '…'}\n\n{end}"


def _untold(session: Session) -> list[list[int]]:
    """Return the ids of grades that can be sent by now, those of one writer and task together."""
    rows = session.execute(
        select(PracticeGrade.id, Example.writer_id, Example.round_id)
        .join(PracticeGrade.example)
        .join(Example.attempt)
        .join(Attempt.assignment)
        .where(PracticeGrade.notified_at.is_(None))
        .where(Assignment.state.in_((AssignmentState.APPROVED, AssignmentState.REJECTED)))
        .order_by(PracticeGrade.id)
    ).all()
    session.commit()
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for grade_id, writer_id, round_id in rows:
        found[writer_id, round_id].append(grade_id)
    return list(found.values())


def _mark(session: Session, ids: Sequence[int], now: datetime) -> None:
    for grade in session.scalars(select(PracticeGrade).where(PracticeGrade.id.in_(ids))):
        grade.notified_at = now
    session.commit()
