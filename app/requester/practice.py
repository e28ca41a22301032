"""The practice round: a new writer's first examples, graded one by one in words that reach their writer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import func, select

from app.extensions import db
from app.operations.practice import grade_practice
from app.requester.views import bp
from app.services import services
from app.validator.views import readers_answer
from app.worker.answers import Piece, passages
from hits.attempts import stored_answer
from hits.errors import InvalidAnswer
from hits.models import Example
from hits.tasks import task
from qualification import practice
from qualification.limits_models import PracticeGrade

#: As many on one page: a reviewer grades one at a time.
SHOWN = 20


@dataclass(frozen=True)
class Waiting:
    """One practice example as its reviewer sees it."""

    public_id: str
    item_name: str
    round_name: str
    disturbing: bool
    texts: tuple[tuple[str, tuple[Piece, ...]], ...]
    goal: str
    model: str
    fooled: bool
    why: str
    writer: str
    before: str
    collected_at: datetime


@bp.get("/practice")
def practice_page() -> ResponseReturnValue:
    """List the practice examples that wait, the oldest first."""
    return _page()


@bp.post("/practice/<public_id>")
def grade_example(public_id: str) -> ResponseReturnValue:
    """Keep a grade with its words."""
    decision, words = request.form.get("decision", ""), request.form.get("words", "")
    try:
        if decision not in ("pass", "fail"):
            raise InvalidAnswer("decision", "Choose whether it passes or not.")
        grade_practice(
            db.session(),
            services().clock,
            public_id,
            passed=decision == "pass",
            words=words.replace("\r\n", "\n"),
            by=current_user.name,
        )
    except InvalidAnswer as error:
        db.session.rollback()
        return _page({"public_id": public_id, "message": str(error), "words": words}), 422
    flash("It passed, and the writer is told why." if decision == "pass" else "Not passed; the writer is told why.")
    return redirect(url_for("requester.practice_page"))


def _page(refused: dict[str, str] | None = None) -> str:
    found = practice.waiting(db.session())
    return render_template(
        "requester/practice.html",
        waiting=[_waiting(example) for example in found[:SHOWN]],
        total=len(found),
        refused=refused,
        words_max=practice.WORDS_MAX_CHARACTERS,
    )


def _waiting(example: Example) -> Waiting:
    spec = task(example.round.task_code)
    said = stored_answer(example.attempt)
    return Waiting(
        public_id=example.attempt.public_id,
        item_name=spec.item_name,
        round_name=f"{example.round.task_code.capitalize()}, round {example.round.number}",
        disturbing=spec.content_warning is not None,
        texts=(
            *((one.label, one.pieces) for one in passages(spec, example.context.fields, example.attempt)),
            *readers_answer(spec, example.attempt.answer),
        ),
        goal=spec.label(example.goal_label).name,
        model=spec.label(example.model_label).name if said is None else f"“{said.text}”",
        fooled=example.fooled,
        why=example.attempt.assignment.why,
        writer=example.writer.pseudonym,
        before=_before(example.writer_id, example.round.task_code),
        collected_at=example.collected_at,
    )


def _before(writer_id: int, task_code: str) -> str:
    rows = db.session.execute(
        select(PracticeGrade.passed, func.count())
        .join(PracticeGrade.example)
        .join(Example.round)
        .where(Example.writer_id == writer_id)
        .where(Example.round.has(task_code=task_code))
        .group_by(PracticeGrade.passed)
    ).all()
    counts = {passed: count for passed, count in rows}  # noqa: C416 - dict() of rows has no types
    if not counts:
        return "none yet"
    return f"{counts.get(True, 0)} passed, {counts.get(False, 0)} not"
