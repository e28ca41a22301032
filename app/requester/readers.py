"""A round's readers and votes: error rates, agreement, validators; and single statements that the requester judges."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flask import abort, flash, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import joinedload

from app.extensions import db
from app.operations.override import lift_override, override_example, retract_example
from app.operations.round_stats import round_stats
from app.requester.views import VERDICT_WORDS, bp
from app.services import services
from app.validator.views import readers_answer, readers_context
from app.worker.answers import Piece
from hits.errors import InvalidAnswer, NotFound
from hits.models import Attempt, Example, Round, Vote
from hits.states import Verdict
from hits.tasks import TaskSpec, task
from hits.validations import REASON_MAX_CHARACTERS

PER_PAGE = 50
#: The names of app.requester.plots.PLOTS, which is slow to import.
PLOT_NAMES = ("error-rates", "gold-and-agreement", "seconds-per-item")


@dataclass(frozen=True)
class Given:
    """One vote as the requester sees it."""

    validator: str
    said: str
    correction: str
    seconds: float | None
    at: datetime
    is_flag: bool


@dataclass(frozen=True)
class Line:
    """One statement in the list."""

    public_id: str
    text: str
    goal: str
    final: str
    verdict: tuple[str, str]
    votes: int
    overridden: bool
    retracted: bool


@bp.get("/<task_code>/<int(max=10000):number>/readers")
def readers_page(task_code: str, number: int) -> ResponseReturnValue:
    """Show how a round's readers and votes stand."""
    found = round_stats(db.session(), task_code, number)
    return render_template("requester/readers.html", stats=found, verdict_words=VERDICT_WORDS)


@bp.get("/<task_code>/<int(max=10000):number>/readers/<name>.svg")
def readers_plot(task_code: str, number: int, name: str) -> ResponseReturnValue:
    """Draw one of the figures."""
    if name not in PLOT_NAMES:
        abort(404)
    # matplotlib takes longer to import than the rest of the service together.
    from app.requester.plots import PLOTS

    response = make_response(PLOTS[name](round_stats(db.session(), task_code, number)))
    response.headers["Content-Type"] = "image/svg+xml; charset=utf-8"
    response.headers["Cache-Control"] = "private, no-store"
    return response


@bp.get("/<task_code>/<int(max=10000):number>/statements")
def statements(task_code: str, number: int) -> ResponseReturnValue:
    """List a round's statements, of one verdict or of all, a page at a time."""
    round_ = db.session.scalar(select(Round).where(Round.task_code == task_code, Round.number == number))
    if round_ is None:
        raise NotFound(f"There is no round {number} of {task_code!r}.")
    chosen = request.args.get("verdict", "")
    conditions: list[ColumnElement[bool]] = [Example.round_id == round_.id]
    if chosen in set(Verdict):
        conditions.append(Example.verdict == Verdict(chosen))
    else:
        chosen = ""
    total = db.session.scalar(select(func.count()).select_from(Example).where(*conditions)) or 0
    pages = max(-(-total // PER_PAGE), 1)
    page = min(max(request.args.get("page", 1, type=int), 1), pages)
    counted = (
        select(func.count())
        .select_from(Vote)
        .where(Vote.example_id == Example.id, Vote.counted_at.is_not(None))
        .scalar_subquery()
    )
    rows = db.session.execute(
        select(Example, counted)
        .where(*conditions)
        .options(joinedload(Example.attempt))
        .order_by(Example.collected_at, Example.id)
        .limit(PER_PAGE)
        .offset((page - 1) * PER_PAGE)
    ).all()
    spec = task(round_.task_code)
    return render_template(
        "requester/statements.html",
        round=round_,
        spec=spec,
        lines=[_line(spec, example, count) for example, count in rows],
        chosen=chosen,
        total=total,
        page=page,
        pages=pages,
        verdict_words=VERDICT_WORDS,
    )


@bp.get("/statements/<public_id>")
def statement_page(public_id: str) -> ResponseReturnValue:
    """Show one statement with its votes, and what the requester may decide about it."""
    return render_template("requester/statement.html", **_statement_fields(_example(public_id)))


@bp.post("/statements/<public_id>")
def decide_statement(public_id: str) -> ResponseReturnValue:
    """Override the readers, let their votes count again, or take the statement out; each is kept with who and why."""
    session, clock, by = db.session(), services().clock, str(current_user.name)
    decision, reason = request.form.get("decision", ""), request.form.get("reason", "")
    try:
        if decision == "override":
            label = request.form.get("label", "")
            if not label:
                raise InvalidAnswer("label", "Choose the label that holds, or that the statement is out.")
            override_example(session, clock, public_id, label=None if label == "-" else label, reason=reason, by=by)
            said = "Your decision stands above the readers' votes."
        elif decision == "lift":
            lift_override(session, clock, public_id, by=by)
            said = "The readers' votes count again."
        elif decision == "retract":
            if request.form.get("sure") != "1":
                raise InvalidAnswer("sure", "Tick that you are sure: there is no way back.")
            retract_example(session, clock, public_id, reason=reason, by=by)
            said = "The statement is out of the data."
        else:
            raise InvalidAnswer("label", "Choose what to do with the statement.")
    except InvalidAnswer as error:
        session.rollback()
        shown_at = decision if decision == "retract" else "override"
        refused = {"decision": shown_at, "field": error.field, "message": str(error), "reason": reason}
        fields = _statement_fields(_example(public_id))
        return render_template("requester/statement.html", **fields, refused=refused), 422
    flash(said)
    return redirect(url_for("requester.statement_page", public_id=public_id))


def _example(public_id: str) -> Example:
    found = db.session.scalar(select(Example).join(Example.attempt).where(Attempt.public_id == public_id))
    if found is None:
        raise NotFound("There is no such statement. Go back to the round.")
    return found


def _line(spec: TaskSpec, example: Example, votes: int) -> Line:
    text = " / ".join(example.attempt.answer[item.name] for item in spec.answer_fields)
    return Line(
        public_id=example.attempt.public_id,
        text="" if spec.content_warning else text,
        goal=spec.label(example.goal_label).name,
        final=spec.label(example.final_label).name if example.final_label is not None else "",
        verdict=VERDICT_WORDS[example.verdict],
        votes=votes,
        overridden=example.overridden_at is not None,
        retracted=example.retracted_at is not None,
    )


def _statement_fields(example: Example) -> dict[str, object]:
    spec = task(example.round.task_code)
    votes = db.session.scalars(
        select(Vote)
        .where(Vote.example_id == example.id, Vote.counted_at.is_not(None))
        .options(joinedload(Vote.validator))
        .order_by(Vote.created_at, Vote.id)
    ).all()
    texts: tuple[tuple[str, tuple[Piece, ...]], ...] = (
        *readers_context(spec, example.context.fields, example.attempt.answer),
        *readers_answer(spec, example.attempt.answer),
    )
    return {
        "example": example,
        "round": example.round,
        "spec": spec,
        "texts": texts,
        "votes": [_given(spec, vote) for vote in votes],
        "goal": spec.label(example.goal_label).name,
        "model": spec.label(example.model_label).name,
        "final": spec.label(example.final_label).name if example.final_label is not None else "none",
        "verdict": VERDICT_WORDS[example.verdict],
        "may_override": example.retracted_at is None
        and example.verdict is not Verdict.FLAGGED
        and (example.moderation is None or example.moderation.value != "upheld"),
        "labels": [*((label.code, label.name) for label in spec.labels), ("-", "none: it is out")],
        "reason_max": REASON_MAX_CHARACTERS,
    }


def _given(spec: TaskSpec, vote: Vote) -> Given:
    name = spec.span_input.name if spec.span_input is not None else ""
    return Given(
        validator=vote.validator.pseudonym,
        said=spec.label(vote.label).name if vote.label is not None else f"flagged: {vote.flag_reason}",
        correction=(vote.correction or {}).get(name, ""),
        seconds=vote.seconds,
        at=vote.created_at,
        is_flag=vote.label is None,
    )
