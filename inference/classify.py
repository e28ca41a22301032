"""Turns one or two texts into the model's probabilities of the task's labels; broken numbers never become a label."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence

from hits.predictions import Attribution, Prediction
from inference.bert import LoadedModel
from inference.encoding import Encoded, encode_pair, encode_text
from inference.errors import BadModelAnswer, ModelNotLoaded, NothingToRead
from inference.explain import LocalExplainer
from inference.score import Score, label_score
from inference.target import ModelCard, ModelInput

MAX_PADDING = 0.5
"""Texts share a batch while at most this part of it is padding: a padded position costs as much as a real one."""


class Classifier:
    """One loaded model asked with the labels of a task, in the task's order. ``fields`` names the texts it reads."""

    def __init__(self, loaded: LoadedModel, labels: Sequence[str], fields: Sequence[str] = ("text",)) -> None:
        if sorted(labels) != sorted(loaded.labels) or loaded.head != "classification":
            raise ModelNotLoaded(
                f"{loaded.model_id} knows the labels {sorted(loaded.labels)}, but the task has {sorted(labels)}."
            )
        if len(fields) not in (1, 2):
            raise ModelNotLoaded(f"{loaded.model_id} reads one text or two, but the task has {list(fields)}.")
        self.loaded = loaded
        self.labels = tuple(labels)
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

    def predict(self, *texts: str) -> Prediction:
        """Return the model's answer to one input. Raises NothingToRead, BadModelAnswer."""
        return self.predict_all([texts])[0]

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        """Return the answers to several inputs, in their order. Raises NothingToRead, BadModelAnswer."""
        sequences = [self.encode(item) for item in inputs]
        answers: dict[int, Prediction] = {}
        for group in grouped([len(sequence.ids) for sequence in sequences]):
            started = time.perf_counter()
            rows = self._probabilities([sequences[index] for index in group])
            latency_ms = (time.perf_counter() - started) * 1000
            for index, row in zip(group, rows, strict=True):
                answers[index] = self._prediction(row, latency_ms, sequences[index])
        return [answers[index] for index in range(len(inputs))]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        """Return what each word spoke for or against the target label. Raises as inference.explain does."""
        return self._explainer.attribution(self, item, target, method)

    def encode(self, item: ModelInput) -> Encoded:
        """Return what the model reads of an input. Raises NothingToRead when it sees no word of one of the texts."""
        loaded = self.loaded
        if len(self.fields) == 1:
            (text,) = item
            sequence = encode_text(loaded.tokenizer, text, loaded.max_length, emoji_names=loaded.emoji_names)
        else:
            first, second = item
            sequence = encode_pair(loaded.tokenizer, first, second, loaded.max_length, emoji_names=loaded.emoji_names)
        if not all(sequence.holds(field) for field in range(len(self.fields))):
            raise NothingToRead
        return sequence

    def score(self, item: ModelInput, target: str) -> Score:
        """Return the target label's logit as something to explain. Raises NothingToRead, ModelNotLoaded."""
        if target not in self.labels:
            raise ModelNotLoaded(f"{self.model_id} can't explain {target!r}: it knows the labels {list(self.labels)}.")
        return label_score(self.loaded, self.encode(item), target)

    def _probabilities(self, sequences: Sequence[Encoded]) -> list[list[float]]:
        logits = self.loaded.forward(sequences).logits
        expected = (len(sequences), len(self.loaded.labels))
        if tuple(logits.shape) != expected:
            raise BadModelAnswer(f"it answered with shape {tuple(logits.shape)} instead of {expected}")
        rows: list[list[float]] = logits.float().softmax(-1).tolist()
        return rows

    def _prediction(self, row: Sequence[float], latency_ms: float, sequence: Encoded) -> Prediction:
        by_name = dict(zip(self.loaded.labels, row, strict=True))
        probabilities = {label: by_name[label] for label in self.labels}
        label = max(probabilities, key=probabilities.__getitem__)
        prediction = Prediction(
            model_id=self.loaded.model_id,
            revision=self.loaded.revision,
            label=label,
            probabilities=probabilities,
            latency_ms=latency_ms,
            truncated=sequence.truncated,
            confidence=probabilities[label],
            characters_read=read_of(self.fields, sequence),
        )
        return checked(prediction, self.labels)


def read_of(fields: Sequence[str], sequence: Encoded) -> dict[str, int] | None:
    """Return how many characters of each field the model saw, None when it saw them all."""
    return dict(zip(fields, sequence.characters_read, strict=True)) if sequence.truncated else None


def checked(prediction: Prediction, labels: Sequence[str]) -> Prediction:
    """Return the prediction if its numbers are probabilities of these labels. Raises BadModelAnswer."""
    numbers: Mapping[str, float] = prediction.probabilities
    if sorted(numbers) != sorted(labels):
        raise BadModelAnswer(f"it answered for the labels {sorted(numbers)} instead of {sorted(labels)}")
    if not all(math.isfinite(value) and 0 <= value <= 1 for value in numbers.values()):
        raise BadModelAnswer(f"its probabilities are {dict(numbers)}")
    if abs(sum(numbers.values()) - 1) > 1e-3:
        raise BadModelAnswer(f"its probabilities add up to {sum(numbers.values())}")
    if prediction.confidence is not None and not 0 <= prediction.confidence <= 1 + 1e-9:
        raise BadModelAnswer(f"its confidence is {prediction.confidence}")
    if prediction.label not in numbers or numbers[prediction.label] < max(numbers.values()):
        raise BadModelAnswer(f"it answered {prediction.label!r}, which is not its most probable label")
    return prediction


def grouped(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of indices of similar lengths, so that little of a batch is padding."""
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
