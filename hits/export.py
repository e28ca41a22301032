"""A round's data as it leaves the house: one object per collected attempt, workers by pseudonym only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import NotFound
from hits.models import Assignment, Attempt, Example, Round, Vote
from hits.tasks import task

#: Rises when a field changes its name or meaning.
FORMAT_VERSION = 1


def find_round(session: Session, task_code: str, number: int) -> Round:
    """Return the round. Raises NotFound with the rounds that there are."""
    spec = task(task_code)
    found = session.scalar(select(Round).where(Round.task_code == spec.code, Round.number == number))
    if found is None:
        known = session.scalars(select(Round.number).where(Round.task_code == spec.code).order_by(Round.number)).all()
        there = f"Its rounds are {', '.join(map(str, known))}." if known else "It has none yet; launch one first."
        raise NotFound(f"There is no round {number} of the {spec.code} task. {there}")
    return found


def export_round(session: Session, task_code: str, number: int) -> Iterator[dict[str, Any]]:
    """Yield the round's collected attempts, oldest first, the same rows in the same order every time.

    ``answer`` holds a marked answer as text and ``NAME_start``, counted in Unicode characters of the context field; the
    model's own, ``model.answer``, likewise. ``verdict`` is ``not_validated`` where the model was right. ``tries`` is
    how many the writer had used by then. Worker and assignment ids never appear.
    """
    round_ = find_round(session, task_code, number)
    of_round = select(Example).join(Example.attempt).where(Example.round_id == round_.id)
    rows = session.scalars(of_round.order_by(Attempt.asked_at, Attempt.id))
    for example in rows:
        yield _row(session, round_, example)


def _row(session: Session, round_: Round, example: Example) -> dict[str, Any]:
    attempt = example.attempt
    votes = session.scalars(
        select(Vote).where(Vote.example_id == example.id, Vote.counted_at.is_not(None)).order_by(Vote.id)
    )
    return {
        "format": FORMAT_VERSION,
        "id": attempt.public_id,
        "task": round_.task_code,
        "task_version": round_.task_version,
        "round": round_.number,
        "context": example.context.fields,
        "answer": attempt.answer,
        "goal_label": example.goal_label,
        "final_label": example.final_label,
        "verdict": example.verdict.value,
        "model": {
            "id": attempt.model_id,
            "revision": attempt.model_revision,
            "label": attempt.predicted_label,
            "probabilities": attempt.probabilities,
            "answer": attempt.predicted_answer,
            "confidence": attempt.confidence,
            "truncated": attempt.truncated,
            "characters_read": attempt.characters_read,
            "policy": attempt.policy,
            "members": attempt.members,
        },
        "fooled": example.fooled,
        "answer_f1": attempt.answer_f1,
        "attribution": attempt.attribution,
        "goal_attribution": attempt.goal_attribution,
        "tries": attempt.try_number,
        "seconds": attempt.seconds,
        "why": _why(session, attempt),
        "votes": [
            {
                "validator": vote.validator.pseudonym,
                "label": vote.label,
                "flag_reason": vote.flag_reason,
                "details": vote.details,
            }
            for vote in votes
        ],
        "writer": example.writer.pseudonym,
        "asked_at": attempt.asked_at.isoformat(),
    }


def _why(session: Session, attempt: Attempt) -> str | None:
    """Return the writer's remark; it was given in a later assignment if the HIT was returned after the attempt."""
    return session.scalar(
        select(Assignment.why)
        .where(Assignment.hit_id == attempt.hit_id, Assignment.worker_id == attempt.worker_id, Assignment.why != "")
        .order_by(Assignment.id.desc())
        .limit(1)
    )
