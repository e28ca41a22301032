"""Quiz HITs that exist, opened by somebody, and answers that are right or wrong as a test wants them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.models import Assignment, Hit, Round, Worker
from hits.states import HitKind
from qualification.models import QuizBatch, QuizResult
from qualification.quizzes import NEEDED, current_version, from_json, open_quiz, quiz_for
from tests import factories as make
from tests.factories import NOON

DAY = timedelta(hours=24)
#: Marks of a module for which one kind of database is enough: what differs between them is tested in
#: tests/qualification and test_score_quiz.
ON_SQLITE = [
    pytest.mark.usefixtures("database_url"),
    pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True),
]


def quiz_hit(session: Session, task_code: str = "sentiment", audience: str = "writer", **fields: Any) -> Hit:
    """A HIT on the marketplace that asks the quiz as the task's file has it."""
    quiz = quiz_for(task_code, audience)
    found = session.scalar(select(Round).where(Round.task_code == task_code, Round.number == 1))
    batch = make.make_batch(
        session,
        round=found or make.make_round(session, task_code=task_code),
        kind=HitKind.QUALIFICATION,
        title="Paid quiz",
        reward=Decimal("0.50"),
        bonus=Decimal("0.00"),
        tries=1,
    )
    session.add(QuizBatch(batch_id=batch.id, version_id=current_version(session, quiz, NOON).id))
    session.flush()
    return make.make_hit(session, batch=batch, max_assignments=20, **fields)


def opened(
    session: Session, hit: Hit, worker: Worker, *, after: timedelta = timedelta()
) -> tuple[Assignment, QuizResult]:
    """The HIT accepted and its quiz opened so long after noon."""
    now = NOON + after
    assignment = make.make_assignment(
        session, hit=hit, worker=worker, opened_at=now, deadline_at=now + timedelta(minutes=30)
    )
    return assignment, open_quiz(session, assignment, retry_delay=DAY, now=now)


def answers(result: QuizResult, right: int = NEEDED) -> dict[str, str]:
    """Answers to all items, so many of them right."""
    quiz = from_json(result.version.content)
    given = {}
    for place, item_id in enumerate(result.items):
        key = quiz.item(item_id).right
        given[item_id] = key if place < right else next(code for code in quiz.choice_codes if code != key)
    return given
