"""Explains a prediction word by word of the submitted texts; one interface over several methods."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from hits.predictions import Attribution, WordAttribution
from inference.bert import LoadedModel
from inference.encoding import Encoded
from inference.errors import BadModelAnswer, MethodNotSupported
from inference.methods import (
    CAPTUM_INTEGRATED_GRADIENTS,
    GRADIENT_SHAP,
    INPUT_X_GRADIENT,
    INTEGRATED_GRADIENTS,
    LEAVE_ONE_WORD_OUT,
    METHODS,
    leave_one_word_out,
)
from inference.runtime import single_threaded_torch
from inference.score import Score
from inference.target import ModelInput, TargetModel
from inference.words import gather, word_spans

if TYPE_CHECKING:
    from torch import Tensor

STEPS = (12, 36)
"""Midpoints tried first, and when they don't converge; the second must be three times the first, which it reuses."""
CAPTUM_STEPS = 50
SAMPLES = 20
TOKENS_AT_ONCE = 1024
"""How many positions run through the model together: enough to fill the matrix product, little enough for memory."""
TOLERANCE_LOGITS = 0.05
TOLERANCE_RELATIVE = 0.05
PATIENCE_SECONDS = 15.0
"""A long text on a busy machine keeps its first result, marked as not converged, rather than miss every deadline."""


@dataclass(frozen=True)
class Scores:
    """What a method found: one number per position, and how far their sum is from what they should explain."""

    by_position: Sequence[float]
    steps: int
    delta: float | None
    converged: bool


class Reader(TargetModel, Protocol):
    """A model in this process, whose scores have gradients."""

    @property
    def loaded(self) -> LoadedModel: ...

    @property
    def fields(self) -> tuple[str, ...]: ...

    def score(self, item: ModelInput, target: str) -> Score: ...


Method = Callable[[Score, Any, float], Scores]
"""Takes the score, another way through the model's weights that is made for this, and the seconds it may take."""


class LocalExplainer:
    """Explains one model in this process; makes what the methods need once, when it is first asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ways: dict[bool, Any] = {}

    def attribution(
        self,
        reader: Reader,
        item: ModelInput,
        target: str,
        method: str | None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> Attribution:
        """Return how much each word that the model read spoke for (+) or against (-) the target.

        Of the gradient methods the scores are in logits. Words of a passage outside the window that the answer was
        found in have no part in its score, and get 0. Raises MethodNotSupported with the list of methods,
        NothingToRead, ModelNotLoaded for a target that the model can't give, BadModelAnswer.
        """
        name = INTEGRATED_GRADIENTS if method is None else method
        if name == LEAVE_ONE_WORD_OUT:
            return leave_one_word_out(reader, item, target, fields=reader.fields)
        if name not in GRADIENT_METHODS:
            raise MethodNotSupported(repr(name), reader.model_id, METHODS)
        started = time.perf_counter()
        score = reader.score(item, target)
        way = self._way(reader.loaded.model, may_be_half=name in AVERAGING_METHODS)
        found = GRADIENT_METHODS[name](score, way, patience_seconds)
        if not all(math.isfinite(value) for value in found.by_position):
            raise BadModelAnswer("its gradients are not finite numbers")
        return Attribution(
            model_id=reader.model_id,
            revision=reader.revision,
            method=name,
            steps=found.steps,
            target=target,
            words=words_of(reader.fields, item, score.sequence, found.by_position),
            convergence_delta=found.delta,
            converged=found.converged,
            seconds=time.perf_counter() - started,
        )

    def _way(self, model: Any, *, may_be_half: bool) -> Any:
        from inference.lean_bert import lean_bert_of
        from inference.twin import half_is_fast, twin_of

        half = may_be_half and half_is_fast()
        with self._lock:
            if half not in self._ways:
                self._ways[half] = lean_bert_of(model, half=half) or twin_of(model, half=half)
            return self._ways[half]


def integrated_gradients(score: Score, way: Any, patience_seconds: float) -> Scores:
    """Integrated gradients by the midpoint rule: 12 steps, then 36 when they don't converge and there is time."""
    started = time.perf_counter()
    difference = _difference(score)
    few, many = STEPS
    total = _gradients(score, way, [(step + 0.5) / few for step in range(few)])
    found = _completed(score, total / few, few, difference)
    if not found.converged and (time.perf_counter() - started) * many / few <= patience_seconds:
        # The few are the middle one of each three of the many.
        total = total + _gradients(score, way, [(step + 0.5) / many for step in range(many) if step % 3 != 1])
        found = _completed(score, total / many, many, difference)
    return found


def captum_integrated_gradients(score: Score, way: Any, patience_seconds: float) -> Scores:
    """The reference: captum's own integrated gradients as they come (50 Gauss-Legendre steps), single precision."""
    from captum.attr import IntegratedGradients

    attributions = IntegratedGradients(score.values).attribute(
        inputs=score.inputs,
        baselines=score.baseline,
        n_steps=CAPTUM_STEPS,
        internal_batch_size=_rows_at_once(score),
    )
    by_position: list[float] = attributions.detach().double().sum(-1)[0].tolist()
    return _measured(by_position, CAPTUM_STEPS, _difference(score))


def gradient_shap(score: Score, way: Any, patience_seconds: float) -> Scores:
    """Expected gradients at 20 random points between padding and text; the same text gets the same points."""
    torch = single_threaded_torch()
    seed = hashlib.sha256(repr(score.sequence.ids).encode()).digest()[:8]
    random = torch.Generator().manual_seed(int.from_bytes(seed, "big") >> 1)
    points: list[float] = torch.rand(SAMPLES, generator=random).tolist()
    return _completed(score, _gradients(score, way, points) / SAMPLES, SAMPLES, _difference(score))


def input_x_gradient(score: Score, way: Any, patience_seconds: float) -> Scores:
    """One gradient, at the text itself, times the embeddings; coarse, and its sum explains no difference."""
    gradients = _gradients(score, way, [1.0])
    return Scores((gradients * score.inputs).double().sum(-1)[0].tolist(), 1, None, False)


GRADIENT_METHODS: Mapping[str, Method] = MappingProxyType(
    {
        INTEGRATED_GRADIENTS: integrated_gradients,
        CAPTUM_INTEGRATED_GRADIENTS: captum_integrated_gradients,
        GRADIENT_SHAP: gradient_shap,
        INPUT_X_GRADIENT: input_x_gradient,
    }
)
#: Their rounding averages out over many points, so that a processor that multiplies bfloat16 may use it.
AVERAGING_METHODS = frozenset({INTEGRATED_GRADIENTS, GRADIENT_SHAP})


def words_of(
    fields: Sequence[str], texts: Sequence[str], sequence: Encoded, by_position: Sequence[float]
) -> tuple[WordAttribution, ...]:
    """Return the words of all texts with the scores of their pieces added up, field by field in order."""
    words: list[WordAttribution] = []
    for number, (field, text, read) in enumerate(zip(fields, texts, sequence.characters_read, strict=True)):
        mine = [
            ((piece.start, piece.end), score)
            for piece, score in zip(sequence.pieces, by_position, strict=True)
            if piece.field == number
        ]
        spans, owners = gather(word_spans(text[:read]), [offsets for offsets, _ in mine])
        totals = [0.0] * len(spans)
        # A piece without characters (a space of its own) counts for the word that it leads to, so that nothing is lost.
        following = next((owner for owner in reversed(owners) if owner is not None), None)
        for owner, (_, score) in zip(reversed(owners), reversed(mine), strict=True):
            following = following if owner is None else owner
            if following is not None:
                totals[following] += score
        words += [
            WordAttribution(start=start, end=end, text=text[start:end], score=total, field=field)
            for (start, end), total in zip(spans, totals, strict=True)
        ]
    return tuple(words)


def _difference(score: Score) -> float:
    """Return what the scores should add up to, by the model that predicts: rounding on another way is an error."""
    torch = single_threaded_torch()
    with torch.no_grad():
        here, there = score.values(torch.cat([score.inputs, score.baseline])).tolist()
    return float(here - there)


def _gradients(score: Score, way: Any, points: Sequence[float]) -> Tensor:
    """Return the sum of the gradients at the points, each a part of the way from the baseline (0) to the text (1)."""
    torch = single_threaded_torch()
    path = score.inputs - score.baseline
    total: Tensor = torch.zeros_like(path)
    rows = _rows_at_once(score)
    for start in range(0, len(points), rows):
        parts = torch.tensor(points[start : start + rows], dtype=path.dtype)[:, None, None]
        with torch.enable_grad():
            embeddings = (score.baseline + parts * path).requires_grad_()
            (gradients,) = torch.autograd.grad(score.values(embeddings, way).sum(), embeddings)
        total += gradients.sum(0, keepdim=True)
    return total


def _rows_at_once(score: Score) -> int:
    return max(1, TOKENS_AT_ONCE // score.inputs.shape[1])


def _completed(score: Score, mean_gradients: Tensor, steps: int, difference: float) -> Scores:
    attributions = mean_gradients * (score.inputs - score.baseline)
    return _measured(attributions.double().sum(-1)[0].tolist(), steps, difference)


def _measured(by_position: list[float], steps: int, difference: float) -> Scores:
    delta = sum(by_position) - difference
    bound = max(TOLERANCE_LOGITS, TOLERANCE_RELATIVE * abs(difference))
    return Scores(by_position, steps, delta, abs(delta) <= bound)
