"""Texts that may disturb are shown one by one, to those who ask for them, and only so many in a day."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.errors import DayIsFull
from hits.models import Assignment, Exposure, Worker


def shown_today(session: Session, worker_id: int, now: datetime) -> int:
    """Return how many such texts the worker was shown on this UTC day. Reads only."""
    today = (Exposure.worker_id == worker_id) & (Exposure.day == now.astimezone(UTC).date())
    return session.scalar(select(func.max(Exposure.number)).where(today)) or 0


def show(session: Session, assignment: Assignment, subject: str, *, cap: int, now: datetime) -> Exposure:
    """Store that the worker asks for a text of this assignment; asking again is no new text. Flushes, never commits.

    Raises DayIsFull when the worker was shown ``cap`` texts today.
    """
    # The worker's row lock makes counting and storing one step, so that two windows can't pass the cap together.
    session.execute(select(Worker.id).where(Worker.id == assignment.worker_id).with_for_update())
    known = session.scalar(select(Exposure).where(Exposure.assignment_id == assignment.id, Exposure.subject == subject))
    if known is not None:
        return known
    seen = shown_today(session, assignment.worker_id, now)
    if seen >= cap:
        raise DayIsFull(cap)
    made = Exposure(
        worker_id=assignment.worker_id,
        assignment_id=assignment.id,
        subject=subject,
        day=now.astimezone(UTC).date(),
        number=seen + 1,
        shown_at=now,
    )
    session.add(made)
    session.flush()
    return made


def shown_in(session: Session, assignment: Assignment) -> dict[str, int]:
    """Return the texts that were asked for in this assignment, each with its number of the day."""
    rows = session.execute(select(Exposure.subject, Exposure.number).where(Exposure.assignment_id == assignment.id))
    return {subject: number for subject, number in rows}  # noqa: C416 - dict() of rows has no types


def example_subject(example_id: int) -> str:
    """Return the name under which the text of an example is counted."""
    return f"example:{example_id}"


def context_subject(context_id: int) -> str:
    """Return the name under which what a writer starts from is counted."""
    return f"context:{context_id}"


def quiz_subject(item_id: str) -> str:
    """Return the name under which a question of a quiz is counted."""
    return f"quiz:{item_id}"


def break_due(numbers: Iterable[int], break_after: int) -> bool:
    """Tell whether one of these texts of the day is one after which a break is due."""
    return any(number % break_after == 0 for number in numbers)
