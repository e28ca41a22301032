"""HITs that ask for a passed quiz: which versions they accept, and the check of it by our own database."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from hits.errors import NotFound
from hits.models import Hit, Worker
from hits.mturk.client import Requirement
from qualification.errors import NotAdmitted
from qualification.grants import holds, task_of_experts
from qualification.models import QuizType, QuizVersion
from qualification.requirements import MOST_VALUES, from_json


def accepted_versions(session: Session, kind: str) -> tuple[int, ...]:
    """Return the versions of a quiz that new HITs accept: the newest that are not retired. Raises NotFound for none."""
    numbers = session.scalars(
        select(QuizVersion.number)
        .where(QuizVersion.kind == kind, QuizVersion.retired_at.is_(None))
        .order_by(QuizVersion.number.desc())
        .limit(MOST_VALUES)
    ).all()
    if not numbers:
        raise NotFound(
            f"Nobody can have passed the quiz {kind!r}: it has no version that is accepted."
            " `dynahit qualification quiz launch` or `publish` makes one."
        )
    return tuple(sorted(numbers))


def quiz_requirement(qualification_type_id: str, versions: tuple[int, ...]) -> Requirement:
    """Return what HITs ask for: the quiz's qualification with one of these versions as its value."""
    return Requirement(qualification_type_id, comparator="In", values=versions)


def note_type(session: Session, kind: str, endpoint: str, qualification_type_id: str) -> None:
    """Store by which id a marketplace knows a quiz's qualification. Flushes, never commits."""
    known = select(QuizType).where(QuizType.kind == kind, QuizType.endpoint == endpoint)
    row = session.scalar(known)
    if row is None:
        row = QuizType(kind=kind, endpoint=endpoint, qualification_type_id=qualification_type_id)
        try:
            with session.begin_nested():
                session.add(row)
        except IntegrityError:
            row = session.execute(known).scalar_one()
    row.qualification_type_id = qualification_type_id
    session.flush()


def retire_version(session: Session, kind: str, number: int, now: datetime) -> bool:
    """Let new HITs accept a version no more; tell whether that is new. Raises NotFound. Flushes, never commits."""
    row = session.scalar(select(QuizVersion).where(QuizVersion.kind == kind, QuizVersion.number == number))
    if row is None:
        raise NotFound(
            f"There is no version {number} of the quiz {kind!r}. `dynahit qualification quiz list` shows them."
        )
    if row.retired_at is not None:
        return False
    row.retired_at = now
    session.flush()
    return True


def check_quizzes(session: Session, hit: Hit, worker: Worker, now: datetime) -> None:
    """Raise NotAdmitted for somebody who does not hold, by our own database, the quizzes that the HIT asks for.

    What the marketplace shows and our database does not know yet does not count; it follows within minutes.
    """
    for kept in hit.batch.requirements or ():
        requirement = from_json(kept)
        kind = session.scalar(
            select(QuizType.kind).where(
                QuizType.qualification_type_id == requirement.qualification_type_id,
                QuizType.endpoint == hit.batch.endpoint,
            )
        )
        if kind is None:
            continue
        comparator, values = requirement.compared
        if comparator not in ("Exists", "In", "EqualTo"):
            # Other comparisons are the marketplace's alone.
            continue
        if holds(session, worker.id, kind, None if comparator == "Exists" else frozenset(values), now):
            continue
        if (of_experts := task_of_experts(kind)) is not None:
            raise NotAdmitted(
                f"This HIT is for experts of the {of_experts} task, who decide where others differ. Your qualification"
                " has not arrived yet, or has ended. Return this HIT; it costs you nothing."
            )
        audience, _, task_code = kind.partition(":")
        raise NotAdmitted(
            f"This HIT is for people who have passed the {audience}s' quiz of the {task_code} task. Your qualification"
            " has not arrived yet, has ended, or is of another version of the quiz. If you have passed it just now, try"
            " again in a few minutes. Return this HIT; it costs you nothing."
        )
