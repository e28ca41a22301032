"""Open Inference Protocol v2 (Triton, KServe, MLServer): a client for models that take texts.

What the served model must offer, read from its metadata at the first meeting:

- one BYTES input per model field of the task, by the field's name or else in the fields' order, shape [n] or [n, 1];
- for labels: an FP32/FP64 output ``probabilities`` of shape [n, labels], and its labels by name, either as a BYTES
  output ``labels`` in the answer, of shape [labels] or [n, labels], or given by the operator (``?labels=a,b,c`` at the
  reference). A server that batches requests by itself needs [n, labels], since it cuts every output by rows;
- for spans: outputs ``start``, ``end`` (characters of the passage, INT64/INT32) and ``confidence``, each [n].

The protocol has no verb for explanations: they come from a second model NAME-explain, which takes the same inputs with
``target`` added and answers ``field`` (BYTES), ``start``, ``end`` and ``score``, one row per word; without it, from
leaving words out one at a time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from hits.predictions import AnswerSpan, Attribution, Prediction, WordAttribution
from inference.errors import BadModelAnswer, EngineRefused
from inference.methods import LEAVE_ONE_WORD_OUT, MethodNotSupported, leave_one_word_out
from inference.remote.http import ModelServer
from inference.target import ModelCard, ModelInput

EXPLAIN_SUFFIX = "-explain"
METHOD = "oip:second-model"
UNVERSIONED = "unversioned"
_FLOATS = ("FP16", "FP32", "FP64", "BF16")
_INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")


class OipModel:
    """A TargetModel behind an Open Inference Protocol server."""

    def __init__(
        self,
        url: str,
        name: str,
        *,
        fields: Sequence[str],
        labels: Sequence[str],
        answers_span: bool,
        model_labels: Sequence[str] | None = None,
        predict_seconds: float = 5.0,
        explain_seconds: float = 20.0,
    ) -> None:
        """Read the model's metadata; ``model_labels`` gives its labels in the order of its own outputs.

        Raises ModelUnavailable; EngineRefused when its inputs can't take the task's fields.
        """
        self._server = ModelServer(url, seconds=predict_seconds)
        self._explaining = ModelServer(url, seconds=explain_seconds)
        self.name = name
        self._fields = tuple(fields)
        self._labels = tuple(labels)
        self._answers_span = answers_span
        self._model_labels = tuple(model_labels) if model_labels is not None else None
        if self._model_labels is not None and sorted(self._model_labels) != sorted(labels):
            raise EngineRefused(url, f"its labels are given as {list(self._model_labels)}, the task has {list(labels)}")
        metadata = self._server.get(f"/v2/models/{quote(name)}") or {}
        self._input_names = self._inputs_of(metadata)
        versions = metadata.get("versions") or ()
        self.model_id = f"oip:{metadata.get('name') or name}"
        self._revision = str(versions[-1]) if versions else None
        self._explains = self._is_ready(name + EXPLAIN_SUFFIX)

    @property
    def revision(self) -> str:
        """The version in the metadata, or else in the first answer."""
        return self._revision or UNVERSIONED

    @property
    def card(self) -> ModelCard:
        """What the protocol tells of a model: hardly more than its name."""
        return ModelCard(self.model_id, self.revision, () if self._answers_span else self._labels)

    @property
    def explains(self) -> bool:
        """Whether the server has a second model for explanations."""
        return self._explains

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        """Return the answers to several inputs, in their order. Raises ModelUnavailable."""
        started = time.perf_counter()
        outputs = self._infer(self._server, self.name, self._tensors(inputs))
        latency_ms = (time.perf_counter() - started) * 1000
        if self._answers_span:
            return self._spans(inputs, outputs, latency_ms)
        rows = _matrix(outputs, "probabilities", len(inputs))
        names = self._names(outputs, len(rows[0]))
        return [self._labelled(dict(zip(names, row, strict=True)), latency_ms) for row in rows]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        """Return the second model's explanation. Raises ModelUnavailable, MethodNotSupported."""
        supported = (METHOD, LEAVE_ONE_WORD_OUT) if self._explains else (LEAVE_ONE_WORD_OUT,)
        if method is not None and method not in supported:
            raise MethodNotSupported(method, self.model_id, supported)
        if method == LEAVE_ONE_WORD_OUT or not self._explains:
            return leave_one_word_out(self, item, target, fields=self._fields)
        started = time.perf_counter()
        tensors = [*self._tensors([item]), _bytes("target", [target])]
        outputs = self._infer(self._explaining, self.name + EXPLAIN_SUFFIX, tensors)
        words = tuple(self._words(item, outputs))
        return Attribution(
            model_id=self.model_id,
            revision=self.revision,
            method=METHOD,
            steps=0,
            target=target,
            words=words,
            convergence_delta=None,
            converged=True,
            seconds=time.perf_counter() - started,
        )

    def _inputs_of(self, metadata: Mapping[str, Any]) -> tuple[str, ...]:
        offered = [item for item in metadata.get("inputs") or () if isinstance(item, Mapping)]
        if not offered:
            # Servers with runtimes of their own may publish no tensors; the fields' names are the best guess left.
            return self._fields
        if wrong := [
            f"{item.get('name')} ({item.get('datatype')})" for item in offered if item.get("datatype") != "BYTES"
        ]:
            raise EngineRefused(
                self._server.url,
                f"the model {self.name!r} has the inputs {', '.join(wrong)}, but texts go into BYTES inputs; "
                "serve it with its tokenizer in front",
            )
        names = [str(item.get("name")) for item in offered]
        if set(names) == set(self._fields):
            return self._fields
        if len(names) != len(self._fields):
            raise EngineRefused(
                self._server.url, f"the model {self.name!r} has the inputs {names}, the task gives {list(self._fields)}"
            )
        return tuple(names)

    def _is_ready(self, name: str) -> bool:
        try:
            self._server.get(f"/v2/models/{quote(name)}/ready")
        except EngineRefused:
            return False
        return True

    def _tensors(self, inputs: Sequence[ModelInput]) -> list[dict[str, Any]]:
        columns = zip(*inputs, strict=True)
        return [_bytes(name, list(column)) for name, column in zip(self._input_names, columns, strict=True)]

    def _infer(self, server: ModelServer, name: str, tensors: list[dict[str, Any]]) -> dict[str, Mapping[str, Any]]:
        answer = server.post(f"/v2/models/{quote(name)}/infer", {"inputs": tensors})
        try:
            if self._revision is None and name == self.name and answer.get("model_version"):
                self._revision = str(answer["model_version"])
            return {str(output["name"]): output for output in answer["outputs"]}
        except (AttributeError, KeyError, TypeError) as error:
            raise BadModelAnswer(f"it answered without outputs: {str(answer)[:100]}") from error

    def _names(self, outputs: Mapping[str, Mapping[str, Any]], width: int) -> tuple[str, ...]:
        if self._model_labels is not None:
            names = self._model_labels
        elif "labels" in outputs:
            flat = _flat(outputs["labels"].get("data"))
            names = tuple(str(label) for label in flat[:width])
        else:
            raise EngineRefused(
                self._server.url,
                f"the model {self.name!r} does not name its labels; give them in its own order: ?labels=a,b,c",
            )
        if len(names) != width:
            raise BadModelAnswer(
                f"it answered {width} probabilities for the labels {list(names)}; "
                "a server that batches requests has to name the labels once for each text"
            )
        return names

    def _labelled(self, named: Mapping[str, float], latency_ms: float) -> Prediction:
        if sorted(named) != sorted(self._labels):
            raise BadModelAnswer(f"it answered for the labels {sorted(named)} instead of {sorted(self._labels)}")
        probabilities = {label: named[label] for label in self._labels}
        return Prediction(
            model_id=self.model_id,
            revision=self.revision,
            label=max(probabilities, key=probabilities.__getitem__),
            probabilities=probabilities,
            latency_ms=latency_ms,
        )

    def _spans(
        self, inputs: Sequence[ModelInput], outputs: Mapping[str, Mapping[str, Any]], latency_ms: float
    ) -> list[Prediction]:
        columns = {
            name: [row[0] for row in _matrix(outputs, name, len(inputs))] for name in ("start", "end", "confidence")
        }
        found = []
        for place, (passage, *_) in enumerate(inputs):
            start, end = int(columns["start"][place]), int(columns["end"][place])
            if not 0 <= start < end <= len(passage):
                raise BadModelAnswer(f"it answered with characters {start} to {end} of a passage of {len(passage)}")
            found.append(
                Prediction(
                    model_id=self.model_id,
                    revision=self.revision,
                    label="",
                    probabilities={},
                    latency_ms=latency_ms,
                    span=AnswerSpan(start, end, passage[start:end]),
                    confidence=columns["confidence"][place],
                )
            )
        return found

    def _words(self, item: ModelInput, outputs: Mapping[str, Mapping[str, Any]]) -> list[WordAttribution]:
        texts = dict(zip(self._fields, item, strict=True))
        names = [str(name) for name in _flat(_output(outputs, "field").get("data"))]
        columns = {name: [row[0] for row in _matrix(outputs, name, len(names))] for name in ("start", "end", "score")}
        words = []
        for place, name in enumerate(names):
            start, end = int(columns["start"][place]), int(columns["end"][place])
            if name not in texts or not 0 <= start < end <= len(texts[name]):
                raise BadModelAnswer(f"it explained characters {start} to {end} of {name!r}")
            words.append(WordAttribution(start, end, texts[name][start:end], columns["score"][place], name))
        return words


def _bytes(name: str, data: list[str]) -> dict[str, Any]:
    return {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": data}


def _output(outputs: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    if name not in outputs:
        raise BadModelAnswer(f"it answered the outputs {sorted(outputs)}, {name!r} is missing")
    return outputs[name]


def _matrix(outputs: Mapping[str, Mapping[str, Any]], name: str, rows: int) -> list[list[float]]:
    """Return an output as rows of finite numbers; its data may be flat or nested."""
    output = _output(outputs, name)
    if output.get("datatype") not in (*_FLOATS, *_INTEGERS):
        raise BadModelAnswer(f"its output {name!r} is {output.get('datatype')}, not numbers")
    flat = _flat(output.get("data"))
    if not rows or not flat or len(flat) % rows:
        raise BadModelAnswer(f"its output {name!r} has {len(flat)} numbers for {rows} inputs")
    try:
        numbers = [float(value) for value in flat]
    except (TypeError, ValueError) as error:
        raise BadModelAnswer(f"its output {name!r} holds {flat[:3]}") from error
    if not all(math.isfinite(number) for number in numbers):
        raise BadModelAnswer(f"its output {name!r} holds numbers that are not finite")
    width = len(numbers) // rows
    return [numbers[at : at + width] for at in range(0, len(numbers), width)]


def _flat(data: Any) -> list[Any]:
    if isinstance(data, list):
        return [value for item in data for value in _flat(item)]
    return [data]
