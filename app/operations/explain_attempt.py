"""The explanation of one answered attempt: computed once, outside any transaction, and stored with it."""

from __future__ import annotations

import logging

from sqlalchemy.orm import Session

from app.operations.submit_attempt import ModelBroke, own_attempt
from hits.attempts import store_attribution, stored_attribution
from hits.errors import Refused
from hits.models import Attempt
from hits.predictions import Attribution, Explainer, ModelUnavailable
from hits.tasks import task

logger = logging.getLogger(__name__)


def explain_attempt(session: Session, explainer: Explainer, assignment_id: int, public_id: str) -> Attribution:
    """Return which words spoke for and against the model's answer to an attempt of this assignment.

    Commits. Raises Refused for another worker's attempt or one without an answer, ModelUnavailable when no
    explanation can be given; nothing is stored then.
    """
    attempt = own_attempt(session, assignment_id, public_id)
    if attempt.predicted_label is None:
        raise Refused("The model has not answered this statement, so there is nothing to explain.")
    known = stored_attribution(attempt)
    if known is not None:
        session.commit()
        return known
    attempt_id, target = attempt.id, attempt.predicted_label
    spec = task(attempt.hit.batch.round.task_code)
    context = attempt.hit.context.fields if attempt.hit.context is not None else {}
    question = spec.model_input(context, attempt.answer)
    asked_of = (attempt.model_id, attempt.model_revision)
    session.commit()
    try:
        attribution = explainer.explain(spec.code, question, target)
    except ModelUnavailable:
        raise
    except Exception as error:
        logger.exception("no explanation of attempt %s", public_id)
        raise ModelBroke from error
    if (attribution.model_id, attribution.revision) != asked_of:
        raise ModelUnavailable("Another model answers now than the one that read this statement.")
    store_attribution(session, session.get_one(Attempt, attempt_id), attribution)
    session.commit()
    return attribution
