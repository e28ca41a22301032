"""The names of the ways to explain, and the one that needs predictions only and so works over every engine."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from hits.predictions import Attribution, Prediction, WordAttribution
from inference.errors import MethodNotSupported as MethodNotSupported
from inference.errors import ModelNotLoaded
from inference.right_of_way import pass_checkpoint
from inference.target import ModelInput, TargetModel
from inference.words import Span, word_spans

INTEGRATED_GRADIENTS = "integrated-gradients"
CAPTUM_INTEGRATED_GRADIENTS = "captum-integrated-gradients"
GRADIENT_SHAP = "gradient-shap"
INPUT_X_GRADIENT = "input-x-gradient"
LEAVE_ONE_WORD_OUT = "leave-one-word-out"
METHODS = (INTEGRATED_GRADIENTS, CAPTUM_INTEGRATED_GRADIENTS, GRADIENT_SHAP, INPUT_X_GRADIENT, LEAVE_ONE_WORD_OUT)
"""Every method, the default first. A model in this process has them all, one elsewhere perhaps the last only."""

MOST_WORDS = 400
"""One question to the model per word; longer texts are left to other methods."""
AT_ONCE = 16
SMALLEST = 1e-7


def leave_one_word_out(model: TargetModel, item: ModelInput, target: str, *, fields: Sequence[str]) -> Attribution:
    """Return by how many logits the target's probability falls (+) or rises (-) when a word is taken away.

    ``target`` is a label, or ``start-end`` for a span; of a span the probability without a word is that of the same
    words as an answer, or where the model answers otherwise the most that this can be. Scores don't add up to
    anything, so there is no convergence delta.
    Raises MethodNotSupported for more than MOST_WORDS words, ModelNotLoaded for a target that the model can't give.
    """
    started = time.perf_counter()
    whole = model.predict_all([item])[0]
    places = [
        (number, span)
        for number, text in enumerate(item)
        for span in word_spans(text[: (whole.characters_read or {}).get(fields[number], len(text))])
    ]
    if len(places) > MOST_WORDS:
        raise MethodNotSupported(
            f"{LEAVE_ONE_WORD_OUT} of {len(places)} words (at most {MOST_WORDS})", model.model_id, METHODS[:-1]
        )
    answer = _answer(item, whole, target)
    before = _log_odds(_probability(whole, answer))
    scores: list[float] = []
    for start in range(0, len(places), AT_ONCE):
        pass_checkpoint()
        without = [_without(item, number, span) for number, span in places[start : start + AT_ONCE]]
        scores += [before - _log_odds(_probability(found, answer)) for found in model.predict_all(without)]
    return Attribution(
        model_id=model.model_id,
        revision=model.revision,
        method=LEAVE_ONE_WORD_OUT,
        steps=len(places),
        target=target,
        words=tuple(
            WordAttribution(start, end, item[number][start:end], score, fields[number])
            for (number, (start, end)), score in zip(places, scores, strict=True)
        ),
        convergence_delta=None,
        converged=True,
        seconds=time.perf_counter() - started,
    )


def _answer(item: ModelInput, whole: Prediction, target: str) -> str:
    if whole.span is None:
        if target not in whole.probabilities:
            raise ModelNotLoaded(f"{whole.model_id} can't explain {target!r}: it knows {list(whole.probabilities)}.")
        return target
    start, _, end = target.partition("-")
    if not (start.isdecimal() and end.isdecimal() and int(start) < int(end) <= len(item[0])):
        raise ModelNotLoaded(f"{target!r} is no stretch of the passage; write start-end in characters.")
    return item[0][int(start) : int(end)]


def _probability(found: Prediction, answer: str) -> float:
    if found.span is None:
        return found.probabilities[answer]
    confidence = found.confidence or 0.0
    return confidence if found.span.text == answer else min(confidence, 1 - confidence)


def _without(item: ModelInput, number: int, span: Span) -> ModelInput:
    text = item[number]
    left = text[: span[0]] + text[span[1] :]
    # A text without any word can't be asked about; a full stop says as little as can be said.
    return (*item[:number], left if word_spans(left) else ".", *item[number + 1 :])


def _log_odds(probability: float) -> float:
    bounded = min(max(probability, SMALLEST), 1 - SMALLEST)
    return math.log(bounded / (1 - bounded))
