"""What several models say about one input, each with its explanation or why there is none. Stores nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hits.errors import InvalidInput, trace_of
from hits.predictions import Attribution, Explainer, MemberAnswer, ModelUnavailable, Prediction, Predictor
from hits.tasks import TaskSpec

logger = logging.getLogger(__name__)

BROKE = "The model failed on this text; the log of the service says how."


class Asked(Predictor, Explainer, Protocol):
    """A model that answers and explains."""


@dataclass(frozen=True)
class Said:
    """What one model said. Without an answer ``failure`` says why, without an explanation ``unexplained`` does."""

    reference: str
    model_id: str = ""
    revision: str = ""
    answer: MemberAnswer | None = None
    latency_ms: float | None = None
    failure: str = ""
    attribution: Attribution | None = None
    unexplained: str = ""


def ask_models(
    spec: TaskSpec,
    fields: Mapping[str, str],
    models: Sequence[tuple[str, Callable[[], Asked]]],
    *,
    label: str | None = None,
    method: str | None = None,
    gone: Callable[[], bool] | None = None,
) -> list[Said]:
    """Return what each model says about an input (model field -> text), in the order of ``models`` (reference, engine).

    An ensemble is followed by its members. What is explained is each model's own answer, or with ``label`` that label.
    Raises InvalidInput for a text that can't be read; every other failure stands with its model.
    """
    found: list[Said] = []
    for reference, engine_of in models:
        try:
            engine = engine_of()
            prediction = engine.predict(spec.code, fields, key="compare")
        except ModelUnavailable as error:
            found.append(Said(reference, failure=str(error)))
            continue
        except InvalidInput:
            raise
        except Exception as error:
            logger.error("%s raised while models were compared: %s", reference, trace_of(error))  # noqa: TRY400  # its words may quote the text
            found.append(Said(reference, failure=BROKE))
            continue
        found += _explained(spec, fields, engine, reference, prediction, label, method, gone)
    return found


def _explained(
    spec: TaskSpec,
    fields: Mapping[str, str],
    engine: Asked,
    reference: str,
    prediction: Prediction,
    label: str | None,
    method: str | None,
    gone: Callable[[], bool] | None,
) -> list[Said]:
    whole = Said(
        reference, prediction.model_id, prediction.revision, prediction.as_member(), latency_ms=prediction.latency_ms
    )
    parts = [Said(reference, one.model_id, one.revision, one) for one in prediction.members]
    if parts:
        whole = replace(whole, unexplained="The rule of an ensemble has no words of its own; its members follow.")
    explained = []
    for said in parts or [whole]:
        target = _target(spec, said.answer, label)
        if target is None:
            explained.append(replace(said, unexplained="It marked no answer, so there is nothing to explain."))
            continue
        try:
            model = (said.model_id, said.revision) if parts else None
            words = engine.explain(spec.code, fields, target, model=model, method=method, gone=gone)
            explained.append(replace(said, attribution=words))
        except ModelUnavailable as error:
            explained.append(replace(said, unexplained=str(error)))
        except Exception as error:
            logger.error("%s raised while it was explained: %s", reference, trace_of(error))  # noqa: TRY400  # as above
            explained.append(replace(said, unexplained=BROKE))
    return [whole, *explained] if parts else explained


def _target(spec: TaskSpec, said: MemberAnswer | None, label: str | None) -> str | None:
    if said is None:
        return None
    if spec.span_input is None:
        return label or said.label
    return f"{said.span.start}-{said.span.end}" if said.span is not None and said.span.end > said.span.start else None
