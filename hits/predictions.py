"""What a model says and why: the values that cross package borders, and the ports that inference fills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hits.errors import HitsError


class ModelUnavailable(HitsError):
    """The model gave no usable answer (loading, busy, too slow, broken). Never counts as a try, never costs pay."""


@dataclass(frozen=True)
class Prediction:
    """A model's answer to one input. ``probabilities`` is by label name, in the task's order, and sums to 1."""

    model_id: str
    revision: str
    label: str
    probabilities: Mapping[str, float]
    latency_ms: float
    truncated: bool = False


@dataclass(frozen=True)
class WordAttribution:
    """How much one word, ``text[start:end]`` of the submitted text, spoke for (+) or against (-) the target label."""

    start: int
    end: int
    text: str
    score: float


@dataclass(frozen=True)
class Attribution:
    """Word attributions of one prediction; ``convergence_delta`` is in logits."""

    model_id: str
    revision: str
    method: str
    steps: int
    target: str
    words: tuple[WordAttribution, ...]
    convergence_delta: float
    converged: bool
    seconds: float


class Predictor(Protocol):
    """Answers an input of a task. Raises ModelUnavailable when no usable answer can be given in time."""

    def predict(self, task_code: str, answer: Mapping[str, str]) -> Prediction: ...


class Explainer(Protocol):
    """Explains a prediction. Raises ModelUnavailable when no explanation can be given in time."""

    def explain(self, task_code: str, answer: Mapping[str, str], target: str) -> Attribution: ...
