"""Predictions and explanations as JSON, for the engines that run this package's own code behind HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hits.predictions import AnswerSpan, Attribution, Prediction, WordAttribution
from inference.errors import BadModelAnswer


def prediction_to_json(prediction: Prediction) -> dict[str, Any]:
    """Return a single model's prediction as a JSON object; what an ensemble adds is left out."""
    return {
        "model_id": prediction.model_id,
        "revision": prediction.revision,
        "label": prediction.label,
        "probabilities": dict(prediction.probabilities),
        "truncated": prediction.truncated,
        "span": asdict(prediction.span) if prediction.span is not None else None,
        "confidence": prediction.confidence,
        "characters_read": dict(prediction.characters_read) if prediction.characters_read is not None else None,
    }


def prediction_from_json(item: object, latency_ms: float) -> Prediction:
    """Return the prediction of a JSON object. Raises BadModelAnswer that names what is amiss."""
    try:
        fields = _object(item)
        span = fields["span"]
        read = fields["characters_read"]
        return Prediction(
            model_id=_text(fields["model_id"]),
            revision=_text(fields["revision"]),
            label=_text(fields["label"]),
            probabilities={_text(label): float(value) for label, value in _object(fields["probabilities"]).items()},
            latency_ms=latency_ms,
            truncated=bool(fields["truncated"]),
            span=None if span is None else _span(_object(span)),
            confidence=None if fields["confidence"] is None else float(fields["confidence"]),
            characters_read=None if read is None else {name: int(count) for name, count in _object(read).items()},
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadModelAnswer(f"its answer can't be read ({type(error).__name__}: {error})") from error


def attribution_to_json(attribution: Attribution) -> dict[str, Any]:
    """Return an explanation as a JSON object."""
    return asdict(attribution)


def attribution_from_json(item: object) -> Attribution:
    """Return the explanation of a JSON object. Raises BadModelAnswer that names what is amiss."""
    try:
        fields = _object(item)
        delta = fields["convergence_delta"]
        return Attribution(
            model_id=_text(fields["model_id"]),
            revision=_text(fields["revision"]),
            method=_text(fields["method"]),
            steps=int(fields["steps"]),
            target=_text(fields["target"]),
            words=tuple(_word(_object(word)) for word in fields["words"]),
            convergence_delta=None if delta is None else float(delta),
            converged=bool(fields["converged"]),
            seconds=float(fields["seconds"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadModelAnswer(f"its explanation can't be read ({type(error).__name__}: {error})") from error


def _object(item: object) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        raise TypeError(f"an object is needed, not {type(item).__name__}")
    return item


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text is needed, not {value!r}")
    return value


def _span(fields: Mapping[str, Any]) -> AnswerSpan:
    return AnswerSpan(int(fields["start"]), int(fields["end"]), _text(fields["text"]))


def _word(fields: Mapping[str, Any]) -> WordAttribution:
    return WordAttribution(
        start=int(fields["start"]),
        end=int(fields["end"]),
        text=_text(fields["text"]),
        score=float(fields["score"]),
        field=_text(fields["field"]),
    )
