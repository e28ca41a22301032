"""A target model in another process, asked in this package's own protocol (see inference.remote.service)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from hits.predictions import Attribution, Prediction
from inference.errors import BadModelAnswer, EngineRefused, ModelFailed, NothingToRead
from inference.remote.service import NOTHING_TO_READ
from inference.remote.wire import attribution_from_json, prediction_from_json
from inference.target import ModelCard, ModelInput, card_from_json


class Door(Protocol):
    """How one server takes a request and gives its answer; raises ModelUnavailable."""

    def ask(self, name: str, request: Mapping[str, Any], *, explain: bool) -> Any: ...


class RemoteModel:
    """A TargetModel whose weights are elsewhere; its card is asked for at the start, and when another one answers."""

    def __init__(self, door: Door, name: str, labels: Sequence[str]) -> None:
        """Meet the server. Raises ModelUnavailable, EngineRefused when its labels are not the task's."""
        self._door = door
        self.name = name
        self._labels = sorted(labels)
        self.card: ModelCard = self._met()

    @property
    def model_id(self) -> str:
        return self.card.model_id

    @property
    def revision(self) -> str:
        return self.card.revision

    def _met(self) -> ModelCard:
        card = card_from_json(_part(self._door.ask(self.name, {"describe": True}, explain=False), "card"))
        if sorted(card.labels) != self._labels:
            raise EngineRefused(
                self.name, f"it knows the labels {sorted(card.labels)}, but the task has {self._labels}"
            )
        return card

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        """Return the answers to several inputs, in their order. Raises ModelUnavailable, NothingToRead."""
        started = time.perf_counter()
        answer = self._door.ask(self.name, {"inputs": [list(item) for item in inputs]}, explain=False)
        latency_ms = (time.perf_counter() - started) * 1000
        rows = _part(answer, "predictions")
        if not isinstance(rows, list) or len(rows) != len(inputs):
            raise BadModelAnswer(f"it gave no list of {len(inputs)} answers")
        found = [prediction_from_json(row, latency_ms) for row in rows]
        names = {(one.model_id, one.revision) for one in found}
        if names - {(self.model_id, self.revision)}:
            # It was deployed anew: the registry gets the card of the version that answers.
            self.card = self._met()
        if names - {(self.model_id, self.revision)}:
            raise BadModelAnswer("it answered as another model than its card says")
        return found

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        """Return the explanation that the server computes. Raises ModelUnavailable, NothingToRead."""
        request = {"explain": {"input": list(item), "target": target, "method": method}}
        return attribution_from_json(_part(self._door.ask(self.name, request, explain=True), "attribution"))


def _part(answer: object, name: str) -> Any:
    if not isinstance(answer, Mapping):
        raise BadModelAnswer(f"it answered with {type(answer).__name__} instead of an object")
    if isinstance(error := answer.get("error"), Mapping):
        if error.get("kind") == NOTHING_TO_READ:
            raise NothingToRead
        raise ModelFailed(str(error.get("message"))[:200])
    if name not in answer:
        raise BadModelAnswer(f"its answer has no {name!r}")
    return answer[name]
