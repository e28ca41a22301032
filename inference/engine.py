"""The model in this process: loads beside the web service, answers in lanes, explains in a lane of its own."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from hits.errors import InvalidAnswer
from hits.predictions import Attribution, ModelUnavailable, Prediction
from hits.tasks import TaskSpec
from inference.errors import ModelFailed, ModelNotLoaded, ModelWarmingUp
from inference.lanes import LaneCounts, Lanes

logger = logging.getLogger(__name__)

WARM_UP_TEXT = "The food was good, but the room was too loud."


class TextModel(Protocol):
    """What a lane asks: a loaded target model. inference.classify.Classifier is the embedded one."""

    def predict_all(self, texts: Sequence[str]) -> Sequence[Prediction]: ...

    def explain(self, text: str, target: str) -> Attribution: ...


@dataclass(frozen=True)
class ModelSource:
    """Where a task's model comes from. ``text_field`` is the answer's field that the model reads.

    ``load`` runs in the background thread and may import torch there.
    """

    labels: tuple[str, ...]
    text_field: str
    load: Callable[[], TextModel]


@dataclass(frozen=True)
class EngineState:
    """Whether the models answer. ``message`` is for people; ``seconds`` is the time that loading took so far."""

    name: Literal["stopped", "loading", "ready", "failed"]
    message: str
    seconds: float


@dataclass(frozen=True)
class EngineSettings:
    """Deadlines and sizes of an engine. ``lanes`` None means one per processor that this process may use."""

    lanes: int | None = None
    predict_seconds: float = 5.0
    explain_seconds: float = 20.0
    warming_seconds: float = 2.0
    predict_queue: int = 64
    explain_queue: int = 16
    batch_limit: int = 8


class InProcessEngine:
    """Predictor and Explainer over models in this process; one per process, started after any fork."""

    def __init__(self, sources: Mapping[str, ModelSource], settings: EngineSettings | None = None) -> None:
        self.settings = settings or EngineSettings()
        self._sources = dict(sources)
        self._models: dict[str, TextModel] = {}
        self._state = EngineState("stopped", "The model was not started.", 0.0)
        self._settled = threading.Event()
        self._lock = threading.Lock()
        self._generation = 0
        self._process = 0
        self._predict_lanes: Lanes[tuple[str, str], Prediction] = Lanes(
            "predict",
            self._predict_batch,
            lanes=self.settings.lanes or len(os.sched_getaffinity(0)),
            queue_limit=self.settings.predict_queue,
            batch_limit=self.settings.batch_limit,
            seconds=self.settings.predict_seconds,
        )
        self._explain_lanes: Lanes[tuple[str, str, str], Attribution] = Lanes(
            "explain",
            self._explain_batch,
            lanes=1,
            queue_limit=self.settings.explain_queue,
            batch_limit=1,
            seconds=self.settings.explain_seconds,
        )

    def start(self) -> None:
        """Begin to load in a background thread and return at once; without effect while loading or ready."""
        with self._lock:
            if self._state.name in ("loading", "ready"):
                return
            self._generation += 1
            self._process = os.getpid()
            self._settled.clear()
            self._state = EngineState("loading", "The model is being loaded.", 0.0)
            thread = threading.Thread(target=self._load, args=(self._generation,), name="model-load", daemon=True)
        thread.start()

    def stop(self) -> None:
        """Stop answering; callers that wait get ModelNotLoaded. The engine can be started again."""
        with self._lock:
            self._generation += 1
            self._state = EngineState("stopped", "The model was stopped.", self._state.seconds)
            self._settled.set()
        self._predict_lanes.stop()
        self._explain_lanes.stop()

    def state(self) -> EngineState:
        """Return whether the models answer, and why not."""
        with self._lock:
            state = self._state
        if state.name == "ready" and self._predict_lanes.hangs():
            return replace(state, name="failed", message="The model hangs on every text. Restart the service.")
        return state

    def counts(self) -> dict[str, LaneCounts]:
        """Return what the lanes did so far, by lane name."""
        return {"predict": self._predict_lanes.counts(), "explain": self._explain_lanes.counts()}

    def predict(
        self, task_code: str, answer: Mapping[str, str], *, key: str = "", seconds: float | None = None
    ) -> Prediction:
        """Return the model's answer within the deadline; ``key`` is for policies that draw a model.

        Waits a little for a model that is being loaded. Raises ModelUnavailable in one of the forms of
        inference.errors, NothingToRead or InvalidAnswer when the answer has no text.
        """
        text = self._text(task_code, answer)
        self._await_ready()
        return self._predict_lanes.ask((task_code, text), seconds=seconds)

    def explain(
        self,
        task_code: str,
        answer: Mapping[str, str],
        target: str,
        *,
        model: tuple[str, str] | None = None,
        method: str | None = None,
        seconds: float | None = None,
    ) -> Attribution:
        """Return what each word spoke for or against the target label. Raises as predict does."""
        text = self._text(task_code, answer)
        if target not in self._sources[task_code].labels:
            raise ModelNotLoaded(
                f"{target!r} is not a label of {task_code!r}: {list(self._sources[task_code].labels)}."
            )
        self._await_ready()
        return self._explain_lanes.ask((task_code, text, target), seconds=seconds)

    def wait_until_settled(self, seconds: float) -> EngineState:
        """Return the state once loading ended either way, or what it is when the seconds are over."""
        self._settled.wait(seconds)
        return self.state()

    def _text(self, task_code: str, answer: Mapping[str, str]) -> str:
        source = self._sources.get(task_code)
        if source is None:
            raise ModelNotLoaded(
                f"No model is set for the task {task_code!r}; there are models for {sorted(self._sources)}."
            )
        text = answer.get(source.text_field)
        if text is None:
            raise InvalidAnswer(
                source.text_field, f"The answer has no field {source.text_field!r}, which the model reads."
            )
        return text

    def _await_ready(self) -> None:
        if self._process != os.getpid():
            raise ModelNotLoaded("The model was not started in this process. Call start() after the fork.")
        if not self._settled.is_set():
            self._settled.wait(self.settings.warming_seconds)
        state = self.state()
        if state.name == "loading":
            raise ModelWarmingUp(self.settings.warming_seconds)
        if state.name != "ready":
            raise ModelNotLoaded(state.message)

    def _load(self, generation: int) -> None:
        started = time.perf_counter()
        models: dict[str, TextModel] = {}
        failure: str | None = None
        try:
            for code, source in self._sources.items():
                model = source.load()
                # The first calls are slower by up to a second; nobody should meet them.
                first = model.predict_all([WARM_UP_TEXT])[0]
                model.explain(WARM_UP_TEXT, first.label)
                models[code] = model
        except ModelUnavailable as error:
            failure = str(error)
        except Exception as error:
            logger.exception("the model can't be loaded")
            failure = f"The model can't be loaded ({type(error).__name__}: {error}). The log has the details."
        seconds = time.perf_counter() - started
        with self._lock:
            if generation != self._generation:
                return
            if failure is None:
                self._models = models
                self._predict_lanes.start()
                self._explain_lanes.start()
                self._state = EngineState("ready", "The model answers.", seconds)
            else:
                logger.error("model loading failed: %s", failure)
                self._state = EngineState("failed", failure, seconds)
            self._settled.set()

    def _predict_batch(self, items: Sequence[tuple[str, str]]) -> list[Prediction]:
        from inference.classify import checked

        answers: dict[int, Prediction] = {}
        for code in dict.fromkeys(code for code, _ in items):
            places = [place for place, (other, _) in enumerate(items) if other == code]
            predictions = self._models[code].predict_all([items[place][1] for place in places])
            if len(predictions) != len(places):
                raise ModelFailed(f"it gave {len(predictions)} answers to {len(places)} texts")
            for place, prediction in zip(places, predictions, strict=True):
                answers[place] = checked(prediction, self._sources[code].labels)
        return [answers[place] for place in range(len(items))]

    def _explain_batch(self, items: Sequence[tuple[str, str, str]]) -> list[Attribution]:
        return [self._models[code].explain(text, target) for code, text, target in items]


def embedded_source(spec: TaskSpec, *, base: Path | None = None, local_files_only: bool = False) -> ModelSource:
    """Return the source of the model that comes with the repository for this task; nothing is loaded yet.

    Raises ModelNotLoaded for a task whose model reads more than one field.
    """
    if len(spec.model_fields) != 1:
        raise ModelNotLoaded(f"The task {spec.code!r} reads {list(spec.model_fields)}; embedded models read one field.")
    labels = tuple(label.code for label in spec.labels)

    def load() -> TextModel:
        from inference.runtime import single_threaded_torch

        single_threaded_torch()
        from inference.classify import Classifier
        from inference.embedded import load_embedded

        loaded = load_embedded(spec.code, labels, base=base, local_files_only=local_files_only)
        return Classifier(loaded, labels)

    return ModelSource(labels=labels, text_field=spec.model_fields[0], load=load)


def engine_for(tasks: Mapping[str, ModelSource], settings: EngineSettings | None = None) -> InProcessEngine:
    """Return an engine for these tasks, not yet started. Importing and building it doesn't import torch."""
    return InProcessEngine(tasks, settings)
