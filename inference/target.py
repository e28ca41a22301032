"""What every target model is to the engine, wherever its weights are: texts in, predictions and explanations out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from hits.predictions import Attribution, Prediction
from inference.errors import BadModelAnswer

MOST_PARAMETERS, HIGHEST_SEED = 10**15, 2**31 - 1

ModelInput = tuple[str, ...]
"""The texts that a model reads, in the order of its task's model fields."""


@dataclass(frozen=True)
class ModelCard:
    """What the registry knows of a model. ``labels`` is in the order of the model's own outputs, task names.

    ``label_map`` is the model's own label names -> the task's. ``weights_sha256`` is over its weight files.
    """

    model_id: str
    revision: str
    labels: tuple[str, ...]
    label_map: Mapping[str, str] = field(default_factory=dict)
    weights_sha256: str | None = None
    licence: str | None = None
    parameters: int | None = None
    seed: int | None = None


class TargetModel(Protocol):
    """A loaded model. What it raises beside ModelUnavailable and InvalidInput counts as a failure on this input."""

    @property
    def model_id(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def card(self) -> ModelCard: ...

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]: ...

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution: ...


def card_to_json(card: ModelCard) -> dict[str, Any]:
    """Return a card as a JSON object."""
    return {**asdict(card), "labels": list(card.labels), "label_map": dict(card.label_map)}


def card_from_json(item: object) -> ModelCard:
    """Return the card of a JSON object. Raises BadModelAnswer that names what is amiss."""
    try:
        if not isinstance(item, Mapping):
            raise TypeError(f"an object is needed, not {type(item).__name__}")
        card = ModelCard(
            model_id=str(item["model_id"]),
            revision=str(item["revision"]),
            labels=tuple(str(label) for label in item["labels"]),
            label_map={str(name): str(label) for name, label in dict(item["label_map"]).items()},
            weights_sha256=_optional(str, item["weights_sha256"]),
            licence=_optional(str, item["licence"]),
            parameters=_optional(int, item["parameters"]),
            seed=_optional(int, item["seed"]),
        )
        if not 0 <= (card.parameters or 0) <= MOST_PARAMETERS or abs(card.seed or 0) > HIGHEST_SEED:
            raise ValueError("parameters or seed are out of range")
        if card.weights_sha256 is not None and not re.fullmatch("[0-9a-f]{64}", card.weights_sha256):
            raise ValueError("weights_sha256 is no SHA-256")
        return card
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadModelAnswer(f"its card can't be read ({type(error).__name__}: {error})") from error


def _optional(kind: Any, value: Any) -> Any:
    return None if value is None else kind(value)
