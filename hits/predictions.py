"""What a model says and why: the values that cross package borders, and the ports that inference fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hits.errors import HitsError


class ModelUnavailable(HitsError):
    """The model gave no usable answer (loading, busy, too slow, broken). Never counts as a try, never costs pay."""


@dataclass(frozen=True)
class AnswerSpan:
    """A stretch of a passage, ``passage[start:end] == text``; offsets count Unicode characters, not UTF-16 units."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class MemberAnswer:
    """What one model of an ensemble said; fields as in Prediction."""

    model_id: str
    revision: str
    label: str
    probabilities: Mapping[str, float]
    span: AnswerSpan | None = None
    confidence: float | None = None
    truncated: bool = False
    characters_read: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Prediction:
    """A model's answer to one input.

    Of a classifier: ``label`` is its likeliest label and ``probabilities`` is by label name, in the task's order, and
    sums to 1. Of a reader of passages: ``span`` is its answer, ``confidence`` the probability that it gives this span
    among all, ``label`` is empty and ``probabilities`` too. ``characters_read`` tells, by model field, how many
    characters the model saw when ``truncated``.

    Of an ensemble: what is shown to the worker stands here, every member that was asked in ``members``, and ``policy``
    names the rule; with ``wrong_members_needed`` the model counts as fooled when at least so many members are wrong.
    """

    model_id: str
    revision: str
    label: str
    probabilities: Mapping[str, float]
    latency_ms: float
    truncated: bool = False
    span: AnswerSpan | None = None
    confidence: float | None = None
    characters_read: Mapping[str, int] | None = None
    members: tuple[MemberAnswer, ...] = ()
    policy: str | None = None
    wrong_members_needed: int | None = None

    def as_member(self) -> MemberAnswer:
        """Return what this model said as the answer of one of several."""
        return MemberAnswer(
            self.model_id,
            self.revision,
            self.label,
            self.probabilities,
            self.span,
            self.confidence,
            self.truncated,
            self.characters_read,
        )


@dataclass(frozen=True)
class WordAttribution:
    """How much one word, ``text[start:end]`` of one model field, spoke for (+) or against (-) the target.

    ``field`` names the model field; empty in what was stored before fields were told apart, and then the last one.
    """

    start: int
    end: int
    text: str
    score: float
    field: str = ""


@dataclass(frozen=True)
class Attribution:
    """Word attributions of one prediction; ``convergence_delta`` is in logits, None for methods that have none.

    ``target`` is a label, or ``start-end`` (characters of the passage) for a span.
    """

    model_id: str
    revision: str
    method: str
    steps: int
    target: str
    words: tuple[WordAttribution, ...]
    convergence_delta: float | None
    converged: bool
    seconds: float


class Predictor(Protocol):
    """Answers an input of a task (model field -> text). Raises ModelUnavailable when no usable answer comes in time.

    ``key`` identifies the attempt: a policy that draws a member draws the same one for the same key.
    """

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction: ...


class Pending(Protocol):
    """A question that is being answered while the caller does something else; asked for once, or dropped.

    Dropping one whose answer was asked for, or that was dropped before, does nothing. ``seconds`` is how long the
    answer is waited for; None means the engine's deadline.
    """

    def answer(self, seconds: float | None = None) -> Prediction: ...

    def drop(self) -> None: ...


class Explainer(Protocol):
    """Explains a prediction. Raises ModelUnavailable when no explanation can be given in time.

    ``target`` as in Attribution. ``model`` is (model id, revision) of the member of an ensemble that is to be
    explained; None means the only one. ``method`` None means the engine's default. ``gone`` tells whether whoever
    asked has left; an engine may ask it now and then and end the work.
    """

    def explain(
        self,
        task_code: str,
        fields: Mapping[str, str],
        target: str,
        *,
        model: tuple[str, str] | None = None,
        method: str | None = None,
        gone: Callable[[], bool] | None = None,
    ) -> Attribution: ...
