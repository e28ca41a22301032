"""What a model server of ours answers: the one place that TorchServe's handler and Ray's replicas share.

Requests and answers are JSON objects:

- ``{"describe": true}`` -> ``{"card": {...}}``
- ``{"inputs": [[text, ...], ...]}`` -> ``{"predictions": [...]}``, texts in the order of the task's model fields
- ``{"explain": {"input": [text, ...], "target": label, "method": name or null}}`` -> ``{"attribution": {...}}``
- anything that failed -> ``{"error": {"kind": ..., "message": ...}}`` in the place of its answer
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hits.errors import InvalidInput, trace_of
from hits.predictions import ModelUnavailable, Prediction
from inference.errors import NothingToRead
from inference.remote.wire import attribution_to_json, prediction_to_json
from inference.target import ModelInput, TargetModel, card_to_json

logger = logging.getLogger(__name__)

NOTHING_TO_READ, MALFORMED, UNAVAILABLE, FAILED = "nothing_to_read", "malformed", "unavailable", "failed"


@dataclass
class ModelService:
    """One loaded model behind the protocol above. ``texts`` is how many texts one input has."""

    model: TargetModel
    texts: int

    def answer(self, requests: Sequence[object]) -> list[dict[str, Any]]:
        """Answer a batch of requests, one answer each, in their order; the texts of all of them share batches."""
        answers: list[dict[str, Any] | None] = [None] * len(requests)
        wanted: dict[int, list[ModelInput]] = {}
        for place, request in enumerate(requests):
            try:
                fields = _object(request)
                if fields.get("describe"):
                    answers[place] = {"card": card_to_json(self.model.card)}
                elif "explain" in fields:
                    answers[place] = self._explain(_object(fields["explain"]))
                else:
                    wanted[place] = [self._input(item) for item in _list(fields.get("inputs"))]
            except (TypeError, ValueError) as error:
                answers[place] = _error(MALFORMED, str(error))
        self._predict(wanted, answers)
        return [answer if answer is not None else _error(FAILED, "no answer was made") for answer in answers]

    def _predict(self, wanted: Mapping[int, list[ModelInput]], answers: list[dict[str, Any] | None]) -> None:
        everything = [item for items in wanted.values() for item in items]
        if not everything:
            for place in wanted:
                answers[place] = {"predictions": []}
            return
        try:
            found = iter(self.model.predict_all(everything))
            for place, items in wanted.items():
                answers[place] = _predictions([next(found) for _ in items])
        except Exception as error:  # one bad text must not fail its neighbours: they are asked alone
            for place, items in wanted.items():
                answers[place] = self._alone(items) if len(wanted) > 1 else _failure(error)

    def _alone(self, items: list[ModelInput]) -> dict[str, Any]:
        try:
            return _predictions(self.model.predict_all(items))
        except Exception as error:  # the caller gets it as an answer, the log has it whole
            return _failure(error)

    def _explain(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        item, target, method = self._input(fields.get("input")), fields.get("target"), fields.get("method")
        if not isinstance(target, str) or not (method is None or isinstance(method, str)):
            raise TypeError(f"target and method must be text, got {target!r} and {method!r}")
        try:
            return {"attribution": attribution_to_json(self.model.explain(item, target, method))}
        except Exception as error:  # the caller gets it as an answer, the log has it whole
            return _failure(error)

    def _input(self, item: object) -> ModelInput:
        texts = _list(item)
        if len(texts) != self.texts or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"an input is a list of {self.texts} texts, got {str(item)[:80]}")
        return tuple(texts)


def _predictions(predictions: Sequence[Prediction]) -> dict[str, Any]:
    return {"predictions": [prediction_to_json(prediction) for prediction in predictions]}


def _failure(error: Exception) -> dict[str, Any]:
    if isinstance(error, NothingToRead):
        return _error(NOTHING_TO_READ, str(error))
    if isinstance(error, ModelUnavailable | InvalidInput):
        return _error(UNAVAILABLE, str(error))
    logger.error("the model failed: %s", trace_of(error))
    return _error(FAILED, f"{type(error).__name__}: {error}")


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message}}


def _object(item: object) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        raise TypeError(f"an object is needed, got {str(item)[:80]}")
    return item


def _list(item: object) -> list[Any]:
    if not isinstance(item, list | tuple):
        raise TypeError(f"a list is needed, got {str(item)[:80]}")
    return list(item)
