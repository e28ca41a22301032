"""A round's readers and votes: error rates, agreement, validators; and single statements that the requester judges."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from flask import abort, flash, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import select
from sqlalchemy.orm import joinedload

from app.extensions import db
from app.operations.override import lift_override, override_example, retract_example
from app.operations.round_stats import round_stats
from app.requester.browse import history, members_of, seen_by_the_writer
from app.requester.views import VERDICT_WORDS, bp
from app.services import services
from app.validator.views import readers_answer, readers_context
from app.worker.answers import Piece
from hits.errors import InvalidAnswer, NotFound
from hits.models import Attempt, Example, Vote
from hits.states import Verdict
from hits.tasks import TaskSpec, task
from hits.validations import REASON_MAX_CHARACTERS

#: The names of app.requester.plots.PLOTS, which is slow to import.
PLOT_NAMES = ("error-rates", "gold-and-agreement", "seconds-per-item")


@dataclass(frozen=True)
class Given:
    """One vote as the requester sees it."""

    validator: str
    said: str
    besides: str
    correction: str
    seconds: float | None
    at: datetime
    is_flag: bool


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
    view = seen_by_the_writer(spec, example)
    return {
        "example": example,
        "view": view,
        "members": members_of(spec, example.attempt.members, example.goal_label),
        "events": history(example, votes),
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
        besides=_besides(spec, vote),
        correction=(vote.correction or {}).get(name, ""),
        seconds=vote.seconds,
        at=vote.created_at,
        is_flag=vote.label is None,
    )


def _besides(spec: TaskSpec, vote: Vote) -> str:
    said = vote.details or {}
    words = {choices.name: dict(choices.options) for choices in spec.vote_choices}
    return ", ".join(words.get(name, {}).get(code, code) for name, code in said.items())
