"""What people do on quiz pages, without the pages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from app.operations.launch_quiz import QuizTerms, launch_quiz
from app.operations.score_quiz import draw_quiz, score_quiz
from tests.app.operations.people import Crowd, assignment_row
from tests.qualification.quiz_hits import answers

TERMS = {"task_code": "sentiment", "quiz_for": "writer", "places": 20, "reward": Decimal("0.50")}


def quiz_terms(**changes: Any) -> QuizTerms:
    """The usual terms with some changed."""
    return QuizTerms(**{**TERMS, **changes})


def launched(crowd: Crowd, **changes: Any) -> list[str]:
    """Launch the quiz and return the marketplace's ids of its HITs, in order."""
    before = {hit["HITId"] for hit in crowd.market.hits()}
    launch_quiz(crowd.session, crowd.market.mturk, crowd.settings, crowd.clock, quiz_terms(**changes))
    new = [hit for hit in crowd.market.hits() if hit["HITId"] not in before]
    return [hit["HITId"] for hit in sorted(new, key=lambda hit: hit["RequesterAnnotation"])]


def take(crowd: Crowd, worker_id: str, hit_id: str, *, right: int = 7, submit: bool = True) -> str:
    """Accept a quiz HIT, answer so many questions right, and submit; return the assignment's id."""
    assignment_id = crowd.open(worker_id, hit_id)
    row = assignment_row(crowd.session, assignment_id)
    result = draw_quiz(crowd.session, crowd.settings, crowd.clock, row.id)
    score_quiz(crowd.session, crowd.clock, row.id, answers(result, right))
    if submit:
        crowd.market.submit(assignment_id)
    return assignment_id
