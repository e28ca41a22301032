"""Turns a text into the model's probabilities of the task's labels, and refuses to make a label of broken numbers."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hits.predictions import Attribution, Prediction
from inference.bert import LoadedModel, padded
from inference.errors import BadModelAnswer, ModelNotLoaded, NothingToRead
from inference.explain import explain
from inference.runtime import single_threaded_torch

if TYPE_CHECKING:
    from tokenizers import Encoding

MAX_PADDING = 0.5
"""Texts share a batch while at most this part of it is padding: a padded position costs as much as a real one."""


class Classifier:
    """One loaded model asked with the labels of a task, in the task's order."""

    def __init__(self, loaded: LoadedModel, labels: Sequence[str]) -> None:
        if sorted(labels) != sorted(loaded.labels):
            raise ModelNotLoaded(
                f"{loaded.model_id} knows the labels {sorted(loaded.labels)}, but the task has {sorted(labels)}."
            )
        self.loaded = loaded
        self.labels = tuple(labels)

    def predict(self, text: str) -> Prediction:
        """Return the model's answer to one text. Raises NothingToRead, BadModelAnswer."""
        return self.predict_all([text])[0]

    def predict_all(self, texts: Sequence[str]) -> list[Prediction]:
        """Return the answers to several texts, in their order. Raises NothingToRead, BadModelAnswer."""
        encodings = [self._encode(text) for text in texts]
        answers: dict[int, Prediction] = {}
        for group in _groups([len(encoding.ids) for encoding in encodings]):
            started = time.perf_counter()
            rows = self._probabilities([encodings[index].ids for index in group])
            latency_ms = (time.perf_counter() - started) * 1000
            for index, row in zip(group, rows, strict=True):
                answers[index] = self._prediction(row, latency_ms, truncated=bool(encodings[index].overflowing))
        return [answers[index] for index in range(len(texts))]

    def explain(self, text: str, target: str) -> Attribution:
        """Return what each word of the text spoke for or against the target label. Raises as inference.explain does."""
        return explain(self.loaded, text, target)

    def _encode(self, text: str) -> Encoding:
        encoding = self.loaded.tokenizer.encode(text)
        if all(encoding.special_tokens_mask):
            raise NothingToRead
        return encoding

    def _probabilities(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        torch = single_threaded_torch()
        ids, mask = padded(sequences, self.loaded.pad_token_id)
        with torch.inference_mode():
            logits: Any = self.loaded.model(input_ids=ids, attention_mask=mask).logits
            expected = (len(sequences), len(self.loaded.labels))
            if tuple(logits.shape) != expected:
                raise BadModelAnswer(f"it answered with shape {tuple(logits.shape)} instead of {expected}")
            rows: list[list[float]] = logits.float().softmax(-1).tolist()
        return rows

    def _prediction(self, row: Sequence[float], latency_ms: float, *, truncated: bool) -> Prediction:
        by_name = dict(zip(self.loaded.labels, row, strict=True))
        probabilities = {label: by_name[label] for label in self.labels}
        prediction = Prediction(
            model_id=self.loaded.model_id,
            revision=self.loaded.revision,
            label=max(probabilities, key=probabilities.__getitem__),
            probabilities=probabilities,
            latency_ms=latency_ms,
            truncated=truncated,
        )
        return checked(prediction, self.labels)


def checked(prediction: Prediction, labels: Sequence[str]) -> Prediction:
    """Return the prediction if its numbers are probabilities of these labels. Raises BadModelAnswer."""
    numbers: Mapping[str, float] = prediction.probabilities
    if sorted(numbers) != sorted(labels):
        raise BadModelAnswer(f"it answered for the labels {sorted(numbers)} instead of {sorted(labels)}")
    if not all(math.isfinite(value) and 0 <= value <= 1 for value in numbers.values()):
        raise BadModelAnswer(f"its probabilities are {dict(numbers)}")
    if abs(sum(numbers.values()) - 1) > 1e-3:
        raise BadModelAnswer(f"its probabilities add up to {sum(numbers.values())}")
    if prediction.label not in numbers or numbers[prediction.label] < max(numbers.values()):
        raise BadModelAnswer(f"it answered {prediction.label!r}, which is not its most probable label")
    return prediction


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    group: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and tokens + lengths[index] < (1 - MAX_PADDING) * lengths[index] * (len(group) + 1):
            yield group
            group, tokens = [], 0
        group.append(index)
        tokens += lengths[index]
    if group:
        yield group
