"""A round as it stands: one object per collected attempt, workers by the pseudonyms that they have here.

It is for looking into one's own collection while it goes on; what is published is made by ``hits.export.folder``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import NotFound
from hits.export.stored import PAGE, StoredExample, stored_examples
from hits.models import Attempt, Example, Round
from hits.states import PracticeState
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
    how many the writer had used by then. Retracted examples, practice that no reviewer has graded yet, worker and
    assignment ids never appear; practice that did not pass is ``invalid``.
    """
    round_ = find_round(session, task_code, number)
    of_round = (
        select(Example.id)
        .join(Example.attempt)
        .where(Example.round_id == round_.id, Example.retracted_at.is_(None))
        .where(Example.practice_state.is_distinct_from(PracticeState.WAITING))
        .order_by(Attempt.asked_at, Attempt.id)
    )
    ids = session.scalars(of_round).all()
    for start in range(0, len(ids), PAGE):
        for stored in stored_examples(session, ids[start : start + PAGE]):
            yield _row(round_, stored)


def _row(round_: Round, stored: StoredExample) -> dict[str, Any]:
    return {
        "format": FORMAT_VERSION,
        "id": stored.public_id,
        "task": round_.task_code,
        "task_version": round_.task_version,
        "round": round_.number,
        "context": stored.context,
        "answer": stored.answer,
        "goal_label": stored.goal_label,
        "final_label": stored.final_label,
        "verdict": stored.verdict.value,
        "model": stored.model,
        "fooled": stored.fooled,
        "answer_f1": stored.answer_f1,
        "attribution": stored.attribution,
        "goal_attribution": stored.goal_attribution,
        "tries": stored.tries,
        "seconds": stored.seconds,
        "why": stored.why or None,
        "votes": [
            {
                "validator": vote.validator,
                "label": vote.label,
                "flag_reason": vote.flag_reason,
                "details": vote.details,
            }
            for vote in stored.votes
        ],
        "writer": stored.writer,
        "asked_at": stored.asked_at.isoformat(),
    }
