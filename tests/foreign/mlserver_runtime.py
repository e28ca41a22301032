"""A runtime for MLServer that serves the embedded models, as somebody else would write one."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor, ResponseOutput

from hits.tasks import AnswerKind, task
from inference.loading import load_model


class EmbeddedRuntime(MLModel):
    """Serves ``parameters.extra.task``; explains if ``parameters.extra.explains``."""

    async def load(self) -> bool:
        extra: dict[str, Any] = self.settings.parameters.extra
        self.task = task(extra["task"])
        self.explains = bool(extra.get("explains"))
        self.model = load_model(self.task, f"embedded:{self.task.code}", local_files_only=True)
        names = [*self.task.model_fields, *(["target"] if self.explains else [])]
        self.inputs = [MetadataTensor(name=name, datatype="BYTES", shape=[-1]) for name in names]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        columns = {one.name: StringCodec.decode_input(one) for one in payload.inputs}
        texts = list(zip(*(columns[name] for name in self.task.model_fields), strict=True))
        compute = self._explained if self.explains else self._predicted
        outputs = await asyncio.to_thread(compute, texts, columns)
        return InferenceResponse(model_name=self.name, model_version=self.version, outputs=outputs)

    def _predicted(self, texts: list[tuple[str, ...]], _columns: dict[str, list[str]]) -> list[Any]:
        found = self.model.predict_all(texts)
        if self.task.kind is AnswerKind.SPAN:
            spans = [one.span for one in found]
            return [
                NumpyCodec.encode_output("start", numpy.array([span.start for span in spans])),
                NumpyCodec.encode_output("end", numpy.array([span.end for span in spans])),
                NumpyCodec.encode_output("confidence", numpy.array([one.confidence for one in found])),
            ]
        # In an order that is not the task's, as a model of somebody else would have it.
        labels = sorted(self.task.label_codes)
        rows = numpy.array([[one.probabilities[label] for label in labels] for one in found], dtype=numpy.float32)
        # Named once per text: MLServer cuts every output of a batch by texts, and one list would reach the first alone.
        names = ResponseOutput(
            name="labels", shape=[len(found), len(labels)], datatype="BYTES", data=[*labels] * len(found)
        )
        return [NumpyCodec.encode_output("probabilities", rows), names]

    def _explained(self, texts: list[tuple[str, ...]], columns: dict[str, list[str]]) -> list[Any]:
        words = self.model.explain(texts[0], columns["target"][0]).words
        return [
            StringCodec.encode_output("field", [word.field for word in words]),
            NumpyCodec.encode_output("start", numpy.array([word.start for word in words])),
            NumpyCodec.encode_output("end", numpy.array([word.end for word in words])),
            NumpyCodec.encode_output("score", numpy.array([word.score for word in words])),
        ]
