"""Finds the stretch of a passage that answers a question: the likeliest span over all windows, never "no answer"."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hits.predictions import AnswerSpan, Attribution, Prediction
from inference.bert import LoadedModel
from inference.classify import grouped, read_of
from inference.encoding import PASSAGE, QUESTION, Window, encode_windows
from inference.errors import BadModelAnswer, ModelNotLoaded, NothingToRead
from inference.explain import LocalExplainer
from inference.runtime import single_threaded_torch
from inference.score import Score, span_score, windows_holding
from inference.target import ModelCard, ModelInput
from inference.words import snapped

if TYPE_CHECKING:
    from torch import Tensor

MAX_ANSWER_PIECES = 30
"""The longest answer in word pieces, SQuAD's usual limit."""


class SpanReader:
    """One loaded model with a start and an end score per word piece. ``fields`` names (passage, question)."""

    def __init__(self, loaded: LoadedModel, fields: Sequence[str] = ("passage", "question")) -> None:
        if loaded.head != "span":
            raise ModelNotLoaded(f"{loaded.model_id} gives labels {sorted(loaded.labels)}, but the task needs answers.")
        if len(fields) != 2:
            raise ModelNotLoaded(f"{loaded.model_id} reads a passage and a question, but the task has {list(fields)}.")
        self.loaded = loaded
        self.fields = tuple(fields)
        self._explainer = LocalExplainer()

    @property
    def model_id(self) -> str:
        return self.loaded.model_id

    @property
    def revision(self) -> str:
        return self.loaded.revision

    @property
    def card(self) -> ModelCard:
        return self.loaded.described()

    def predict(self, passage: str, question: str) -> Prediction:
        """Return the model's answer to one question. Raises NothingToRead, BadModelAnswer."""
        return self.predict_all([(passage, question)])[0]

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        """Return the answers to several (passage, question), in their order. Raises NothingToRead, BadModelAnswer."""
        windows = [self.windows(item) for item in inputs]
        owners = [place for place, some in enumerate(windows) for _ in some]
        flat = [window for some in windows for window in some]
        scores: dict[int, tuple[Tensor, Tensor]] = {}
        latencies = [0.0] * len(inputs)
        for group in grouped([len(window.ids) for window in flat]):
            started = time.perf_counter()
            starts, ends = self.scores([flat[index] for index in group])
            share = (time.perf_counter() - started) * 1000
            for row, index in enumerate(group):
                scores[index] = starts[row], ends[row]
            for place in {owners[index] for index in group}:
                latencies[place] += share
        answers = []
        for place, (passage, _) in enumerate(inputs):
            mine = [(flat[index], *scores[index]) for index, owner in enumerate(owners) if owner == place]
            answers.append(self._prediction(passage, mine, latencies[place]))
        return answers

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        """Return what each word spoke for or against the span ``start-end``. Raises as inference.explain does."""
        return self._explainer.attribution(self, item, target, method)

    def windows(self, item: ModelInput) -> list[Window]:
        """Return what the model reads of (passage, question). Raises NothingToRead when it sees no word of one."""
        passage, question = item
        loaded = self.loaded
        windows = encode_windows(
            loaded.tokenizer, question, passage, loaded.max_length, loaded.stride, emoji_names=loaded.emoji_names
        )
        if not all(any(window.holds(field) for window in windows) for field in (PASSAGE, QUESTION)):
            raise NothingToRead
        return windows

    def scores(self, windows: Sequence[Window]) -> tuple[Tensor, Tensor]:
        """Return start and end scores, each of shape (windows, longest window). Raises BadModelAnswer."""
        output: Any = self.loaded.forward(windows)
        starts, ends = output.start_logits.float(), output.end_logits.float()
        expected = (len(windows), max(len(window.ids) for window in windows))
        if tuple(starts.shape) != expected or tuple(ends.shape) != expected:
            raise BadModelAnswer(
                f"it answered with shapes {tuple(starts.shape)} and {tuple(ends.shape)} instead of {expected}"
            )
        return starts, ends

    def score(self, item: ModelInput, target: str) -> Score:
        """Return the score of the span ``start-end`` as something to explain, in the window that rates it highest.

        Raises NothingToRead, and ModelNotLoaded for what is no span that the model can give.
        """
        start, end = _span_of(target, len(item[0]))
        windows = self.windows(item)
        holding = windows_holding(windows, PASSAGE, start, end)
        if not holding:
            raise ModelNotLoaded(f"{self.model_id} can't explain {target!r}: it is too long for one window.")
        if len(holding) > 1:
            starts, ends = self.scores([window for window, _, _ in holding])
            rated = [float(starts[row, first] + ends[row, last]) for row, (_, first, last) in enumerate(holding)]
            holding = [holding[rated.index(max(rated))]]
        window, first, last = holding[0]
        return span_score(self.loaded, window, first, last)

    def _prediction(
        self, passage: str, scored: Sequence[tuple[Window, Tensor, Tensor]], latency_ms: float
    ) -> Prediction:
        (start, end), confidence = best_span(scored, len(passage))
        start, end = snapped(passage, start, end)
        prediction = Prediction(
            model_id=self.loaded.model_id,
            revision=self.loaded.revision,
            label="",
            probabilities={},
            latency_ms=latency_ms,
            truncated=scored[0][0].truncated,
            span=AnswerSpan(start, end, passage[start:end]),
            confidence=confidence,
            characters_read=read_of(self.fields, scored[0][0]),
        )
        return checked_span(prediction, passage)


def _span_of(target: str, characters: int) -> tuple[int, int]:
    start, _, end = target.partition("-")
    if start.isdecimal() and end.isdecimal() and int(start) < int(end) <= characters:
        return int(start), int(end)
    raise ModelNotLoaded(f"{target!r} is no stretch of a passage of {characters} characters; write start-end.")


def best_span(
    scored: Sequence[tuple[Window, Tensor, Tensor]], characters: int, max_pieces: int = MAX_ANSWER_PIECES
) -> tuple[tuple[int, int], float]:
    """Return the likeliest span (start, end) in characters of the passage, and its probability among all allowed ones.

    Allowed is what begins and ends on pieces of the passage, in one window, in order, of at most max_pieces. A span
    that several windows hold counts once, with its highest score. Raises BadModelAnswer for scores that are no numbers.
    """
    torch = single_threaded_torch()
    keys, scores = [], []
    for window, starts, ends in scored:
        at = [place for place, piece in enumerate(window.pieces) if piece.field == PASSAGE and piece.start < piece.end]
        first = torch.tensor([window.pieces[place].start for place in at])
        last = torch.tensor([window.pieces[place].end for place in at])
        begin, finish = starts[at].double(), ends[at].double()
        for length in range(min(max_pieces, len(at))):
            count = len(at) - length
            keys.append(first[:count] * (characters + 1) + last[length:])
            scores.append(begin[:count] + finish[length:])
    if not keys:
        raise NothingToRead
    spans, places = torch.cat(keys).unique(return_inverse=True)
    highest = torch.full((len(spans),), -math.inf, dtype=torch.float64)
    highest.scatter_reduce_(0, places, torch.cat(scores), "amax")
    probabilities = highest.softmax(-1)
    best = int(probabilities.argmax())
    confidence = float(probabilities[best])
    if not math.isfinite(confidence):
        raise BadModelAnswer("its start and end scores are not finite numbers")
    return divmod(int(spans[best]), characters + 1), confidence


def checked_span(prediction: Prediction, passage: str) -> Prediction:
    """Return the prediction if its span stands in the passage with a probability. Raises BadModelAnswer."""
    span, confidence = prediction.span, prediction.confidence
    if span is None or not 0 <= span.start < span.end <= len(passage) or passage[span.start : span.end] != span.text:
        raise BadModelAnswer(f"its answer {span} is no stretch of the passage")
    if confidence is None or not 0 <= confidence <= 1 + 1e-9:
        raise BadModelAnswer(f"its confidence is {confidence}")
    return prediction
