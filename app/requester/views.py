"""Rounds with their figures, flags that wait for a decision, assignments that a person must look at."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user
from sqlalchemy import func, select

from app.extensions import db
from app.models import AuditEntry
from app.operations.move_round import standing
from app.operations.review import accept_reviewed, waiting_assignment
from app.requester.figures import figures, kinds
from app.requester.outages import outage
from app.services import services
from app.staff.access import audit
from app.validator.views import readers_answer, readers_context
from app.worker.answers import Piece, overlap_percent
from hits.attempts import stored_answer
from hits.errors import InvalidAnswer, NotFound
from hits.models import Assignment, Attempt, Example, Hit, HitBatch, Round, Vote
from hits.states import AssignmentState, RoundState, Verdict
from hits.tasks import TaskSpec, task
from hits.validations import FLAG_REASON_MAX_CHARACTERS, moderate
from qualification.practice import waiting

#: So many flagged examples are shown at a time, those that wait longest first.
FLAGS_SHOWN = 20

bp = Blueprint("requester", __name__, url_prefix="/rounds")


@dataclass(frozen=True)
class Flagged:
    """An example whose flags wait for the requester."""

    public_id: str
    texts: tuple[tuple[str, tuple[Piece, ...]], ...]
    goal: str
    model: str
    writer: str
    reasons: tuple[str, ...]
    votes: str
    collected_at: object


@bp.get("")
def rounds() -> ResponseReturnValue:
    """List the rounds, the newest first."""
    found = db.session.scalars(select(Round).order_by(Round.created_at.desc(), Round.id.desc())).all()
    rows = [(one, task(one.task_code), figures(db.session(), one)) for one in found]
    return render_template("requester/rounds.html", rows=rows, practising=len(waiting(db.session())))


@bp.get("/<task_code>/<int(max=10000):number>")
def round_page(task_code: str, number: int) -> ResponseReturnValue:
    """Show one round: five figures, then what needs a hand, then batches and verdicts."""
    round_ = _round(task_code, number)
    return render_template("requester/round.html", **_round_fields(round_))


@bp.post("/flags/<public_id>")
def decide_flag(public_id: str) -> ResponseReturnValue:
    """Uphold or dismiss the flags of an example, with a reason that is kept."""
    example = db.session.scalar(
        select(Example).join(Example.attempt).where(Attempt.public_id == public_id).with_for_update()
    )
    if example is None:
        raise NotFound("This flagged statement is not there any more. Go back to the round.")
    decision, reason = request.form.get("decision", ""), request.form.get("reason", "")
    try:
        if decision not in ("uphold", "dismiss"):
            raise InvalidAnswer("decision", "Choose whether to uphold or to dismiss the flag.")
        outcome = moderate(
            db.session(), example, upheld=decision == "uphold", reason=reason, now=services().clock.now()
        )
    except InvalidAnswer as error:
        db.session.rollback()
        round_ = db.session.get_one(Example, example.id).round
        refused = {"public_id": public_id, "field": error.field, "message": str(error), "reason": reason}
        return render_template("requester/round.html", **_round_fields(round_), refused=refused), 422
    audit(f"flag.{decision}", f"example {public_id}", reason=reason, verdict=outcome.verdict.value)
    task_code, number = example.round.task_code, example.round.number
    db.session.commit()
    flash("The flag is upheld: the statement is out." if decision == "uphold" else "The flag is dismissed.")
    return redirect(url_for("requester.round_page", task_code=task_code, number=number))


@bp.post("/assignments/<assignment_id>/accept")
def accept_assignment(assignment_id: str) -> ResponseReturnValue:
    """Let an assignment that a person has looked at be approved by the next pass of the jobs."""
    round_ = waiting_assignment(db.session(), assignment_id).hit.batch.round
    task_code, number = round_.task_code, round_.number
    accept_reviewed(db.session(), services().clock, assignment_id, by=current_user.name)
    flash("The assignment will be approved and paid by the next pass of the jobs.")
    return redirect(url_for("requester.round_page", task_code=task_code, number=number))


def _round(task_code: str, number: int) -> Round:
    found = db.session.scalar(select(Round).where(Round.task_code == task_code, Round.number == number))
    if found is None:
        raise NotFound(f"There is no round {number} of {task_code!r}.")
    return found


def _round_fields(round_: Round) -> dict[str, object]:
    session = db.session()
    spec = task(round_.task_code)
    flagged = session.scalars(
        select(Example)
        .where(Example.round_id == round_.id, Example.verdict == Verdict.FLAGGED, Example.retracted_at.is_(None))
        .order_by(Example.collected_at, Example.id)
        .limit(FLAGS_SHOWN)
    ).all()
    strange = session.scalars(
        select(Assignment)
        .join(Assignment.hit)
        .join(Hit.batch)
        .where(HitBatch.round_id == round_.id, Assignment.review_reason.is_not(None))
        .where(Assignment.state == AssignmentState.SUBMITTED)
        .order_by(Assignment.auto_approval_at)
    ).all()
    batches = session.scalars(select(HitBatch).where(HitBatch.round_id == round_.id).order_by(HitBatch.id.desc())).all()
    decisions = session.scalars(
        select(AuditEntry)
        .join(Attempt, Attempt.public_id == func.substr(AuditEntry.subject, len("example ") + 1))
        .join(Example, Example.attempt_id == Attempt.id)
        .where(AuditEntry.action.startswith("flag."), Example.round_id == round_.id)
        .order_by(AuditEntry.id.desc())
        .limit(20)
    ).all()
    found = figures(session, round_)
    return {
        "round": round_,
        "spec": spec,
        "figures": found,
        "kinds": kinds(session, round_),
        "flags_behind": found.verdicts.get(Verdict.FLAGGED, 0) - len(flagged),
        "outage": outage(session, round_, services().clock.now()),
        "flagged": [_flagged(spec, example) for example in flagged],
        "strange": strange,
        "batches": batches,
        "decisions": decisions,
        "reason_max": FLAG_REASON_MAX_CHARACTERS,
        "verdict_words": VERDICT_WORDS,
        "standing": standing(session, round_, services().clock.now()),
        "state_words": STATE_WORDS,
    }


#: How people read a round's state, and the shape of its status.
STATE_WORDS: dict[RoundState, tuple[str, str]] = {
    RoundState.DRAFT: ("Draft: nothing is on offer yet", "off"),
    RoundState.PILOTING: ("Piloting: the rest waits for your word", "wait"),
    RoundState.COLLECTING: ("Collecting", "good"),
    RoundState.VALIDATING: ("Validating: readers finish, writers get no more", "wait"),
    RoundState.FROZEN: ("Frozen: the data stay as they are", "good"),
    RoundState.TRAINED: ("Trained: a model has learned from it", "good"),
    RoundState.ARCHIVED: ("Archived", "off"),
}


#: How people read a verdict, and the shape of its status.
VERDICT_WORDS: dict[Verdict, tuple[str, str]] = {
    Verdict.VALID_AND_MODEL_WRONG: ("Verified: sound, and the model was wrong", "good"),
    Verdict.PENDING: ("Waiting for votes", "wait"),
    Verdict.FLAGGED: ("Flagged, waits for you", "wait"),
    Verdict.VALID_AND_MODEL_RIGHT: ("Sound, but readers agree with the model", "off"),
    Verdict.INVALID: ("Rejected by readers or by you", "bad"),
    Verdict.UNRESOLVED: ("Readers could not agree", "off"),
    Verdict.NOT_VALIDATED: ("The model was right; not shown to readers", "off"),
}


def _model_said(spec: TaskSpec, example: Example) -> str:
    said = stored_answer(example.attempt)
    if said is None:
        return spec.label(example.model_label).name
    overlap = overlap_percent(example.attempt.answer_f1 or 0.0)
    return f"“{said.text}”, overlap {overlap}"


def _flagged(spec: TaskSpec, example: Example) -> Flagged:
    votes = db.session.scalars(
        select(Vote).where(Vote.example_id == example.id, Vote.counted_at.is_not(None)).order_by(Vote.id)
    ).all()
    labels = [spec.label(vote.label).name for vote in votes if vote.label is not None]
    return Flagged(
        public_id=example.attempt.public_id,
        texts=(
            *readers_context(spec, example.context.fields, example.attempt.answer),
            *readers_answer(spec, example.attempt.answer),
        ),
        goal=spec.label(example.goal_label).name,
        model=_model_said(spec, example),
        writer=example.writer.pseudonym,
        reasons=tuple(vote.flag_reason for vote in votes if vote.flag_reason is not None),
        votes=", ".join(labels),
        collected_at=example.collected_at,
    )
