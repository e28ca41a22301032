"""A quiz on our own page: draw the questions, score the answers. Each is one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy.orm import Session

from app.settings import Settings
from hits.clock import Clock
from hits.models import Assignment
from qualification.models import QuizResult
from qualification.quizzes import answer_quiz, open_quiz


def draw_quiz(session: Session, settings: Settings, clock: Clock, assignment_id: int) -> QuizResult:
    """Return the try that the assignment (by row id) is at, drawn on first sight; commits. Raises as open_quiz."""
    assignment = session.get_one(Assignment, assignment_id)
    result = open_quiz(session, assignment, retry_delay=timedelta(hours=settings.quiz_retry_hours), now=clock.now())
    session.commit()
    return result


def score_quiz(session: Session, clock: Clock, assignment_id: int, answers: Mapping[str, str]) -> QuizResult:
    """Score the answers, by item id, store them and save the assignment (by row id); commits. Raises as answer_quiz.

    Nothing is earned by it yet: the qualification follows when the marketplace has shown the assignment with this
    worker, since until then both are what an address claims.
    """
    result = answer_quiz(session, session.get_one(Assignment, assignment_id), answers, clock.now())
    session.commit()
    return result
