"""The quiz HIT: preview, questions, and after the answers what was right and why. The key stays on the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app import limits
from app.extensions import db, limiter
from app.frames import submit_address
from app.operations.score_quiz import draw_quiz, score_quiz
from app.services import services
from app.worker.answers import Piece, marked
from app.worker.guard import claimed_assignment, current_frame, hit_of, opened_assignment, token_for
from app.worker.views import FieldError, hand_in
from hits.errors import AlreadySubmitted, InvalidAnswer, Refused
from hits.models import Assignment, Hit
from hits.states import COLLECTED, AssignmentState, HitKind
from hits.tasks import task
from qualification import quizzes
from qualification.errors import QuizNotOpen
from qualification.models import QuizResult
from qualification.quizzes import Part, from_json, result_of, tries_used, version_of_batch

bp = Blueprint("quiz", __name__, url_prefix="/quiz")

#: Begins the names of the form's fields; the item's id follows.
FIELD = "answer-"


@dataclass(frozen=True)
class Text:
    """One text of a question, with a stretch of it marked where there is one."""

    label: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Question:
    """One question as its page shows it; nothing in it depends on the key."""

    field: str
    texts: tuple[Text, ...]
    given: str


@bp.get("/<reference>")
@limiter.limit(limits.OPEN)
def quiz(reference: str) -> ResponseReturnValue:
    """Show the preview, the questions, or for an assignment that is answered what was right."""
    hit = hit_of(reference, HitKind.QUALIFICATION)
    if current_frame().is_preview:
        return render_template("quiz/preview.html", **_terms(hit))
    assignment = opened_assignment(hit)
    db.session.commit()
    return _page(assignment)


@bp.post("/answers")
@limiter.limit(limits.SUBMIT)
def answers() -> ResponseReturnValue:
    """Score the answers and show what was right."""
    assignment = claimed_assignment(HitKind.QUALIFICATION)
    assignment_id = assignment.id
    given = _given()
    try:
        score_quiz(db.session(), services().clock, assignment_id, given)
    except InvalidAnswer as error:
        db.session.rollback()
        found = FieldError(FIELD + error.field, str(error))
        return _page(db.session.get_one(Assignment, assignment_id), given=given, field_error=found), 422
    except AlreadySubmitted:
        # A second tab, or the same form sent twice: what was answered first stands.
        db.session.rollback()
        return _page(db.session.get_one(Assignment, assignment_id)), 409
    return _page(db.session.get_one(Assignment, assignment_id))


def _given() -> dict[str, str]:
    fields = [name for name in request.form if name.startswith(FIELD)]
    if any(len(request.form.getlist(name)) > 1 for name in fields):
        raise Refused("A question came with several answers. Nothing was stored; load the page again.")
    return {name.removeprefix(FIELD): request.form[name] for name in fields}


def _page(
    assignment: Assignment, *, given: Mapping[str, str] | None = None, field_error: FieldError | None = None
) -> str:
    known = services()
    if assignment.state is not AssignmentState.OPENED:
        result = result_of(db.session(), assignment)
        return hand_in(assignment) if result is None or result.answered_at is None else _feedback(assignment, result)
    try:
        result = draw_quiz(db.session(), known.settings, known.clock, assignment.id)
    except QuizNotOpen as error:
        db.session.rollback()
        assignment = db.session.get_one(Assignment, assignment.id)
        fields = {"why": str(error), "again_at": error.again_at}
        return render_template("quiz/not_now.html", **_terms(assignment.hit), **fields)
    if result.answered_at is not None:
        # Passed in a HIT whose time ran out before it was submitted.
        return _feedback(assignment, result)
    now = known.clock.now()
    return render_template(
        "quiz/quiz.html",
        **_terms(assignment.hit),
        token=token_for(assignment),
        number=tries_used(db.session(), result) + 1,
        questions=_questions(result, given or {}),
        field_error=field_error,
        seconds_left=(assignment.deadline_at - now).total_seconds() if assignment.deadline_at else None,
    )


def _questions(result: QuizResult, given: Mapping[str, str]) -> list[Question]:
    asked = from_json(result.version.content)
    items = [asked.item(item_id).asked for item_id in result.items]
    return [Question(FIELD + item.id, texts_of(item.parts), given.get(item.id, "")) for item in items]


def texts_of(parts: tuple[Part, ...]) -> tuple[Text, ...]:
    """Return the parts of an item ready to be shown."""
    return tuple(
        Text(part.label, tuple(marked(part.text, {"mine": (part.start, part.end)} if part.end else {})))
        for part in parts
    )


def _feedback(assignment: Assignment, result: QuizResult) -> str:
    known = services()
    return render_template(
        "quiz/feedback.html",
        **_terms(assignment.hit),
        result=result,
        tries_left=max(from_json(result.version.content).tries - tries_used(db.session(), result), 0),
        questions=[(one, texts_of(one.parts)) for one in quizzes.marked(result)],
        assignment_id=assignment.mturk_assignment_id,
        receipt=known.tokens.receipt(assignment.mturk_assignment_id),
        submit_address=submit_address(known.settings),
        collected=assignment.state in COLLECTED,
        retry_hours=known.settings.quiz_retry_hours,
    )


def _terms(hit: Hit) -> dict[str, object]:
    known = services()
    version = version_of_batch(db.session(), hit.batch_id)
    asked = from_json(version.content)
    return {
        "hit": hit,
        "batch": hit.batch,
        "spec": task(hit.batch.round.task_code),
        "quiz_question": asked.question,
        "choices": asked.choices,
        "drawn": asked.drawn,
        "needed": asked.needed,
        "tries": asked.tries,
        "instructions": asked.instructions,
        "rules": asked.rules,
        "examples": [(texts_of(one.parts), one.label, one.note) for one in asked.examples],
        "does": "write" if asked.quiz_for is quizzes.QuizFor.WRITER else "judge",
        "months": known.settings.qualification_months,
        "contact": known.settings.contact,
    }
