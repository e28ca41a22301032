"""Explains a prediction by integrated gradients on the input embeddings, word by word of the submitted text."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from hits.predictions import Attribution, WordAttribution
from inference.bert import LoadedModel
from inference.errors import BadModelAnswer, ModelNotLoaded, NothingToRead
from inference.runtime import single_threaded_torch
from inference.words import gather, word_spans

if TYPE_CHECKING:
    from tokenizers import Encoding
    from torch import Tensor

METHOD = "captum.IntegratedGradients:inputs_embeds:gausslegendre:pad-baseline:logit"
STEPS = (20, 50)
ROWS_AT_ONCE = 10
TOLERANCE_LOGITS = 0.05
TOLERANCE_RELATIVE = 0.05
PATIENCE_SECONDS = 15.0
"""A long text on a busy machine keeps its first result, marked as not converged, rather than miss every deadline."""


def explain(loaded: LoadedModel, text: str, target: str, *, patience_seconds: float = PATIENCE_SECONDS) -> Attribution:
    """Return how much each word of the text that the model read spoke for (+) or against (-) the target label.

    The scores are in logits and add up to the target's logit minus that of the same text with every word piece replaced
    by padding, but for ``convergence_delta``. 20 steps are tried first, 50 when the relative error is above 5 % and
    both would fit into patience_seconds; ``converged`` tells whether the last is good enough. The module isn't hooked,
    so predictions may run meanwhile.
    Raises NothingToRead, ModelNotLoaded for a label that the model doesn't know, BadModelAnswer.
    """
    if target not in loaded.labels:
        raise ModelNotLoaded(
            f"{loaded.model_id} can't explain {target!r}: it knows the labels {sorted(loaded.labels)}."
        )
    started = time.perf_counter()
    encoding = loaded.tokenizer.encode(text)
    if all(encoding.special_tokens_mask):
        raise NothingToRead
    steps = STEPS[0]
    scores, delta, difference = _integrate(loaded, encoding, loaded.labels.index(target), steps)
    both_seconds = (time.perf_counter() - started) * sum(STEPS) / STEPS[0]
    if abs(delta) > TOLERANCE_RELATIVE * abs(difference) and both_seconds <= patience_seconds:
        steps = STEPS[1]
        scores, delta, difference = _integrate(loaded, encoding, loaded.labels.index(target), steps)
    return Attribution(
        model_id=loaded.model_id,
        revision=loaded.revision,
        method=METHOD,
        steps=steps,
        target=target,
        words=_words(text, encoding, scores),
        convergence_delta=delta,
        converged=abs(delta) <= max(TOLERANCE_LOGITS, TOLERANCE_RELATIVE * abs(difference)),
        seconds=time.perf_counter() - started,
    )


def _integrate(loaded: LoadedModel, encoding: Encoding, target: int, steps: int) -> tuple[list[float], float, float]:
    torch = single_threaded_torch()
    from captum.attr import IntegratedGradients

    model: Any = loaded.model

    def target_logit(embeddings: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = model(inputs_embeds=embeddings, attention_mask=mask).logits
        return logits[:, target]

    ids = torch.tensor([encoding.ids], dtype=torch.long)
    special = torch.tensor([encoding.special_tokens_mask], dtype=torch.bool)
    mask = torch.ones_like(ids)
    embed = model.get_input_embeddings()
    with torch.no_grad():
        inputs = embed(ids)
        baseline = embed(torch.where(special, ids, loaded.pad_token_id))
        difference = float(target_logit(inputs, mask) - target_logit(baseline, mask))
    attributions = IntegratedGradients(target_logit).attribute(
        inputs=inputs.detach().requires_grad_(True),
        baselines=baseline.detach(),
        additional_forward_args=(mask,),
        n_steps=steps,
        method="gausslegendre",
        internal_batch_size=ROWS_AT_ONCE,
    )
    scores: list[float] = attributions.detach().double().sum(-1)[0].tolist()
    delta = sum(scores) - difference
    if not math.isfinite(delta):
        raise BadModelAnswer("its gradients are not finite numbers")
    return scores, delta, difference


def _words(text: str, encoding: Encoding, scores: list[float]) -> tuple[WordAttribution, ...]:
    pieces = [
        (offsets, score)
        for offsets, score, special in zip(encoding.offsets, scores, encoding.special_tokens_mask, strict=True)
        if not special
    ]
    read_to = pieces[-1][0][1] if encoding.overflowing else len(text)
    spans, owners = gather(word_spans(text[:read_to]), [offsets for offsets, _ in pieces])
    totals = [0.0] * len(spans)
    for owner, (_, score) in zip(owners, pieces, strict=True):
        if owner is not None:
            totals[owner] += score
    return tuple(
        WordAttribution(start=start, end=end, text=text[start:end], score=total)
        for (start, end), total in zip(spans, totals, strict=True)
    )
