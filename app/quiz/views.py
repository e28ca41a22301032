"""The quiz HIT: preview, questions, and after the answers what was right and why. The key stays on the server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
from hits.errors import AlreadySubmitted, DayIsFull, InvalidAnswer, NotShown, Refused
from hits.exposure import break_due, quiz_subject, show, shown_in
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
    """One question as its page shows it; nothing in it depends on the key. A covered one has no texts yet."""

    item_id: str
    field: str
    texts: tuple[Text, ...]
    given: str
    covered: bool


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
    if assignment.state is AssignmentState.OPENED and _covered(assignment, given):
        raise NotShown
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


@bp.post("/reveal")
@limiter.limit(limits.VOTE)
def reveal() -> ResponseReturnValue:
    """Show a question, of a task whose texts are shown only to those who ask for them; answers on the page stay."""
    known = services()
    assignment = claimed_assignment(HitKind.QUALIFICATION)
    assignment_id = assignment.id
    given, item_id = _given(), request.form.get("question", "")
    result = result_of(db.session(), assignment)
    if result is None or item_id not in result.items:
        raise Refused("This question is not asked in this HIT. Nothing was stored; load the page again.")
    try:
        if assignment.state is AssignmentState.OPENED and _covered(assignment, (item_id,)):
            subject = quiz_subject(item_id)
            show(db.session(), assignment, subject, cap=known.settings.exposure_cap, now=known.clock.now())
        db.session.commit()
    except DayIsFull as error:
        db.session.rollback()
        return _page(db.session.get_one(Assignment, assignment_id), given=given, refusal=str(error)), 409
    return _page(db.session.get_one(Assignment, assignment_id), given=given, shown=item_id)


def _covered(assignment: Assignment, item_ids: Iterable[str]) -> set[str]:
    """Return which of these questions the worker has not asked for yet, of a task with disturbing texts."""
    if task(assignment.hit.batch.round.task_code).content_warning is None:
        return set()
    seen = shown_in(db.session(), assignment)
    return {item_id for item_id in item_ids if quiz_subject(item_id) not in seen}


def _given() -> dict[str, str]:
    fields = [name for name in request.form if name.startswith(FIELD)]
    if any(len(request.form.getlist(name)) > 1 for name in fields):
        raise Refused("A question came with several answers. Nothing was stored; load the page again.")
    return {name.removeprefix(FIELD): request.form[name] for name in fields}


def _page(
    assignment: Assignment,
    *,
    given: Mapping[str, str] | None = None,
    field_error: FieldError | None = None,
    refusal: str = "",
    shown: str = "",
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
        questions=_questions(result, given or {}, _covered(assignment, result.items)),
        field_error=field_error,
        refusal=refusal,
        shown=shown,
        break_due=break_due(shown_in(db.session(), assignment).values(), known.settings.break_after),
        support_line=known.settings.support_line,
        seconds_left=(assignment.deadline_at - now).total_seconds() if assignment.deadline_at else None,
    )


def _questions(result: QuizResult, given: Mapping[str, str], covered: Collection[str]) -> list[Question]:
    asked = from_json(result.version.content)
    items = [asked.item(item_id).asked for item_id in result.items]
    return [
        Question(
            item.id,
            FIELD + item.id,
            () if item.id in covered else texts_of(item.parts),
            given.get(item.id, ""),
            item.id in covered,
        )
        for item in items
    ]


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
