"""The explanation of one answered attempt: computed once, outside any transaction, and stored with it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sqlalchemy.orm import Session

from app.operations.submit_attempt import ModelBroke, own_attempt
from hits.arms import arm_of
from hits.attempts import store_attribution, stored_answer, stored_attribution
from hits.errors import Refused, trace_of
from hits.models import Attempt
from hits.predictions import Attribution, Explainer, ModelUnavailable
from hits.tasks import TaskSpec, task

logger = logging.getLogger(__name__)


def explain_attempt(
    session: Session,
    explainer: Explainer,
    assignment_id: int,
    public_id: str,
    *,
    of_goal: bool = False,
    method: str | None = None,
    gone: Callable[[], bool] | None = None,
) -> Attribution:
    """Return which words spoke for and against the model's answer to an attempt of this assignment.

    ``of_goal`` asks about the label that the writer aimed at instead, or the answer that the writer marked. ``gone``
    tells whether the writer has gone on meanwhile; the work is ended then. Commits.
    Raises Refused for another worker's attempt, one without an answer, or one of an arm without explanations,
    ModelUnavailable when no explanation can be given; nothing is stored then.
    """
    attempt = own_attempt(session, assignment_id, public_id)
    arm = arm_of(session, attempt.hit.batch.round, attempt.worker_id)
    if arm is not None and not arm.explanations:
        raise Refused("In this HIT no explanations are shown. Your answer and your pay are not affected.")
    if attempt.predicted_label is None:
        raise Refused("The model has not answered this, so there is nothing to explain.")
    known = stored_attribution(attempt, of_goal=of_goal)
    if known is not None:
        session.commit()
        return known
    spec = task(attempt.hit.batch.round.task_code)
    attempt_id, target = attempt.id, target_of(spec, attempt, of_goal=of_goal)
    context = attempt.hit.context.fields if attempt.hit.context is not None else {}
    question = spec.model_input(context, attempt.answer)
    asked_of = (str(attempt.model_id), str(attempt.model_revision))
    members = {(member["model_id"], member["revision"]) for member in attempt.members or ()}
    session.commit()
    try:
        attribution = explainer.explain(
            spec.code,
            question,
            target,
            model=asked_of if members or (arm is not None and arm.model is not None) else None,
            method=method,
            gone=gone,
        )
    except ModelUnavailable:
        raise
    except Exception as error:
        logger.error("no explanation of attempt %s: %s", public_id, trace_of(error))  # noqa: TRY400  # its words may quote the text
        raise ModelBroke from error
    if (attribution.model_id, attribution.revision) not in {asked_of, *members}:
        raise ModelUnavailable("Another model answers now than the one that read this.")
    store_attribution(session, session.get_one(Attempt, attempt_id), attribution, of_goal=of_goal)
    session.commit()
    return attribution


def target_of(spec: TaskSpec, attempt: Attempt, *, of_goal: bool) -> str:
    """Return what is explained: a label, or the characters of the passage that a span covers, as ``start-end``."""
    item = spec.span_input
    if item is None:
        return attempt.goal_label if of_goal else str(attempt.predicted_label)
    if of_goal:
        start = int(attempt.answer[item.start_name])
        return f"{start}-{start + len(attempt.answer[item.name])}"
    span = stored_answer(attempt)
    if span is None:
        raise Refused("The model has not answered this, so there is nothing to explain.")
    return f"{span.start}-{span.end}"
