"""The models in this process: load beside the web service, answer in lanes, explain in a lane of their own."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hits.errors import InvalidAnswer
from hits.predictions import Attribution, MemberAnswer, ModelUnavailable, Prediction
from hits.tasks import AnswerKind, TaskSpec, task
from inference.ensembles import Ensemble
from inference.errors import BadModelAnswer, ModelFailed, ModelNotLoaded, ModelWarmingUp
from inference.lanes import LaneCounts, Lanes, Pending
from inference.references import EnsembleReference, Reference, parse_reference
from inference.remote.served import RemoteEngine
from inference.right_of_way import IN_THIS_PROCESS, Patience, stopping_at
from inference.runtime import give_back_memory
from inference.target import ModelCard, ModelInput, TargetModel

logger = logging.getLogger(__name__)

LONGEST_METHOD = 100

WARM_UP = {
    AnswerKind.TEXT: ("The food was good, but the room was too loud.",),
    AnswerKind.PAIR: ("A man is playing a guitar on a small stage.", "A man is making music."),
    AnswerKind.SPAN: ("The bridge was opened in 1932 and closed for repairs ten years ago.", "When was it opened?"),
}


@dataclass(frozen=True)
class ModelSource:
    """Where a task's model comes from. ``fields`` names what it reads, ``labels`` what it may answer.

    ``load`` runs in the background thread and may import torch there.
    """

    kind: AnswerKind
    fields: tuple[str, ...]
    labels: tuple[str, ...]
    load: Callable[[], TargetModel]
    #: How the model is named in the configuration, and each member of an ensemble, in their order.
    reference: str = ""
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class EngineState:
    """Whether the models answer. ``message`` is for people; ``seconds`` is the time that loading took so far."""

    name: Literal["stopped", "loading", "ready", "failed"]
    message: str
    seconds: float


@dataclass(frozen=True)
class EngineSettings:
    """Deadlines and sizes of an engine. ``lanes`` None means one for each processor but one, which is left to pages.

    An explanation stands back for predictions for ``give_way_seconds`` in all, then runs beside them.
    """

    lanes: int | None = None
    predict_seconds: float = 5.0
    explain_seconds: float = 20.0
    warming_seconds: float = 2.0
    predict_queue: int = 64
    explain_queue: int = 16
    batch_limit: int = 8
    give_way_seconds: float = 4.0
    remembered_explanations: int = 512


@dataclass(frozen=True)
class _Question:
    """What a lane is asked. ``key`` names the attempt, for policies that draw a model; ``member`` is asked alone."""

    task_code: str
    texts: ModelInput
    key: str
    member: int | None = None


@dataclass(frozen=True)
class _Explanation:
    """What the explain lane is asked, of one loaded model."""

    model: TargetModel
    fields: tuple[str, ...]
    texts: ModelInput
    target: str
    method: str | None
    patience: Patience


_Known = tuple[str, str, str, ModelInput, str, str | None]
"""Task and model, since two tasks may give one model's outputs different names."""


class InProcessEngine:
    """Predictor and Explainer over models in this process; one per process, started after any fork."""

    def __init__(self, sources: Mapping[str, ModelSource], settings: EngineSettings | None = None) -> None:
        self.settings = settings or EngineSettings()
        self._sources = dict(sources)
        self._models: dict[str, TargetModel] = {}
        self._failures: dict[str, str] = {}
        self._to_load: list[str] = []
        self._state = EngineState("stopped", "The model was not started.", 0.0)
        self._changed = threading.Condition()
        self._generation = 0
        self._process = 0
        self._explained: OrderedDict[_Known, Attribution] = OrderedDict()
        self._predict_lanes: Lanes[_Question, Prediction] = Lanes(
            "predict",
            self._predict_batch,
            lanes=self.settings.lanes or max(1, len(os.sched_getaffinity(0)) - 1),
            queue_limit=self.settings.predict_queue,
            batch_limit=self.settings.batch_limit,
            seconds=self.settings.predict_seconds,
        )
        self._explain_lanes: Lanes[_Explanation, Attribution] = Lanes(
            "explain",
            self._explain_batch,
            lanes=1,
            queue_limit=self.settings.explain_queue,
            batch_limit=1,
            seconds=self.settings.explain_seconds,
        )

    def start(self) -> None:
        """Begin to load in a background thread and return at once; without effect while loading or ready.

        The models are loaded one after the other, and each answers as soon as it is there. What failed before is tried
        again.
        """
        with self._changed:
            if self._state.name in ("loading", "ready"):
                return
            self._generation += 1
            self._process = os.getpid()
            self._failures.clear()
            self._to_load = [code for code in self._sources if code not in self._models]
            self._state = EngineState("loading", "The model is being loaded.", 0.0)
            self._predict_lanes.start()
            self._explain_lanes.start()
            thread = threading.Thread(target=self._load, args=(self._generation,), name="model-load", daemon=True)
        thread.start()

    def stop(self) -> None:
        """Stop answering; callers that wait get ModelNotLoaded. The engine can be started again."""
        with self._changed:
            self._generation += 1
            self._state = EngineState("stopped", "The model was stopped.", self._state.seconds)
            self._changed.notify_all()
        self._predict_lanes.stop()
        self._explain_lanes.stop()

    def state(self) -> EngineState:
        """Return whether the models answer, and why not; one model that failed makes the whole ``failed``."""
        with self._changed:
            state = self._state
        if state.name == "ready" and self._predict_lanes.hangs():
            return replace(state, name="failed", message="The model hangs on every text. Restart the service.")
        return state

    def counts(self) -> dict[str, LaneCounts]:
        """Return what the lanes did so far, by lane name."""
        return {"predict": self._predict_lanes.counts(), "explain": self._explain_lanes.counts()}

    def card(self, task_code: str, model_id: str | None = None) -> ModelCard | None:
        """Return what is known of the task's model, or of a member of its ensemble; None while it is not loaded."""
        with self._changed:
            model = self._models.get(task_code)
        if model is None:
            return None
        cards = [one.card for one in (model, *(model.members if isinstance(model, Ensemble) else ()))]
        return next((card for card in cards if model_id in (None, card.model_id)), None)

    def predict(
        self,
        task_code: str,
        fields: Mapping[str, str],
        *,
        key: str = "",
        seconds: float | None = None,
        member: int | None = None,
    ) -> Prediction:
        """Return the model's answer within the deadline; ``key`` is for policies that draw a model.

        ``member`` is the place of the one member of an ensemble that is asked alone.
        Waits a little for a model that is being loaded. Raises ModelUnavailable in one of the forms of
        inference.errors, NothingToRead or InvalidAnswer when a text is missing.
        """
        texts = self._texts(task_code, fields)
        self._await_model(task_code)
        return self._predict_lanes.ask(_Question(task_code, texts, key, member), seconds=seconds)

    def of_model(self, task_code: str, reference: str) -> OneModel:
        """Return what asks one member of the task's ensemble alone, by its name in the configuration.

        Raises ModelNotLoaded for one that is no member, and that is not the task's model itself.
        """
        source = self._source(task_code)
        if reference == source.reference:
            return OneModel(self, None)
        if reference not in source.members:
            raise ModelNotLoaded(
                f"{reference} does not answer for the task {task_code!r}; configured is {source.reference}."
            )
        return OneModel(self, source.members.index(reference))

    def ask_ahead(
        self, task_code: str, fields: Mapping[str, str], *, key: str = "", member: int | None = None
    ) -> Pending[_Question, Prediction]:
        """Begin to answer and return at once, so that the caller can store the question meanwhile.

        Raises as predict does; ModelNotLoaded also for a model that is being loaded, for which predict would wait.
        """
        texts = self._texts(task_code, fields)
        with self._changed:
            loaded = task_code in self._models and self._state.name != "stopped"
        if not loaded or self._process != os.getpid():
            raise ModelNotLoaded(f"The model of {task_code!r} is not loaded in this process yet. No try was used.")
        return self._predict_lanes.put(_Question(task_code, texts, key, member))

    def explain(
        self,
        task_code: str,
        fields: Mapping[str, str],
        target: str,
        *,
        model: tuple[str, str] | None = None,
        method: str | None = None,
        seconds: float | None = None,
        gone: Callable[[], bool] | None = None,
    ) -> Attribution:
        """Return what each word spoke for or against the target; the same question is computed once.

        ``gone`` tells whether whoever asked has left; then, and at the deadline, the computation is ended.
        Raises as predict does, NotSupported for a method that the model has not, CallerGone.
        """
        source = self._source(task_code)
        texts = self._texts(task_code, fields)
        if source.kind is not AnswerKind.SPAN and target not in source.labels:
            raise ModelNotLoaded(f"{target!r} is not a label of {task_code!r}: {list(source.labels)}.")
        asked = _asked(self._await_model(task_code), model)
        known = (task_code, asked.model_id, asked.revision, texts, target, method)
        with self._changed:
            if known in self._explained:
                self._explained.move_to_end(known)
                return self._explained[known]
        patience = Patience(IN_THIS_PROCESS, self.settings.give_way_seconds)
        try:
            found = self._explain_lanes.ask(
                _Explanation(asked, source.fields, texts, target, method, patience), seconds=seconds, gone=gone
            )
        finally:
            patience.give_up()
        with self._changed:
            self._explained[known] = found
            while len(self._explained) > self.settings.remembered_explanations:
                self._explained.popitem(last=False)
        return found

    def wait_until_settled(self, seconds: float) -> EngineState:
        """Return the state once loading ended either way, or what it is when the seconds are over."""
        with self._changed:
            self._changed.wait_for(lambda: self._state.name != "loading", timeout=seconds)
        return self.state()

    def _source(self, task_code: str) -> ModelSource:
        source = self._sources.get(task_code)
        if source is None:
            raise ModelNotLoaded(
                f"No model is set for the task {task_code!r}; there are models for {sorted(self._sources)}."
            )
        return source

    def _texts(self, task_code: str, fields: Mapping[str, str]) -> ModelInput:
        source = self._source(task_code)
        for name in source.fields:
            if name not in fields:
                raise InvalidAnswer(name, f"The answer has no field {name!r}, which the model reads.")
        return tuple(fields[name] for name in source.fields)

    def _await_model(self, task_code: str) -> TargetModel:
        if self._process != os.getpid():
            raise ModelNotLoaded("The model was not started in this process. Call start() after the fork.")

        def is_decided() -> bool:
            return task_code in self._models or task_code in self._failures or self._state.name in ("stopped", "failed")

        with self._changed:
            if not is_decided():
                if task_code in self._to_load:
                    # Somebody waits for this one, so it is loaded next.
                    self._to_load.remove(task_code)
                    self._to_load.insert(0, task_code)
                self._changed.wait_for(is_decided, timeout=self.settings.warming_seconds)
            if self._state.name == "stopped":
                raise ModelNotLoaded(self._state.message)
            if task_code in self._models:
                return self._models[task_code]
            if task_code in self._failures:
                raise ModelNotLoaded(self._failures[task_code])
        raise ModelWarmingUp(self.settings.warming_seconds)

    def _load(self, generation: int) -> None:
        started = time.perf_counter()
        while True:
            with self._changed:
                if generation != self._generation:
                    return
                if not self._to_load:
                    self._settle(time.perf_counter() - started)
                    return
                code = self._to_load.pop(0)
            model, failure = self._loaded(code)
            with self._changed:
                if generation != self._generation:
                    return
                if model is not None:
                    self._models[code] = model
                else:
                    logger.error("the model of %s can't be loaded: %s", code, failure)
                    self._failures[code] = failure
                self._changed.notify_all()

    def _loaded(self, code: str) -> tuple[TargetModel | None, str]:
        source = self._sources[code]
        try:
            model = source.load()
            # The first calls are slower by up to a second; nobody should meet them.
            if (texts := WARM_UP.get(source.kind)) is not None:
                for one in model.members if isinstance(model, Ensemble) else (model,):
                    first = one.predict_all([texts])[0]
                    one.explain(texts, first.label if first.span is None else f"{first.span.start}-{first.span.end}")
        except ModelUnavailable as error:
            return None, str(error)
        except Exception as error:
            logger.exception("the model of %s can't be loaded", code)
            return None, f"The model can't be loaded ({type(error).__name__}: {error}). The log has the details."
        give_back_memory()
        return model, ""

    def _settle(self, seconds: float) -> None:
        if self._failures:
            listed = "; ".join(f"{code}: {failure}" for code, failure in self._failures.items())
            self._state = EngineState(
                "failed", listed if len(self._sources) > 1 else listed.partition(": ")[2], seconds
            )
        else:
            self._state = EngineState("ready", "The model answers.", seconds)
        self._changed.notify_all()

    def _predict_batch(self, items: Sequence[_Question]) -> list[Prediction]:
        from inference.classify import checked
        from inference.read_span import checked_span

        answers: dict[int, Prediction] = {}
        with IN_THIS_PROCESS.predicting():
            for code, member in dict.fromkeys((item.task_code, item.member) for item in items):
                places = [place for place, item in enumerate(items) if (item.task_code, item.member) == (code, member)]
                texts = [items[place].texts for place in places]
                model, source = self._models[code], self._sources[code]
                if member is not None and isinstance(model, Ensemble):
                    predictions = model.members[member].predict_all(texts)
                elif isinstance(model, Ensemble):
                    predictions = model.predict_for(texts, [items[place].key for place in places])
                else:
                    predictions = model.predict_all(texts)
                if len(predictions) != len(places):
                    raise ModelFailed(f"it gave {len(predictions)} answers to {len(places)} texts")
                for place, prediction in zip(places, predictions, strict=True):
                    for said in (prediction, *(_as_prediction(member) for member in prediction.members)):
                        if source.kind is AnswerKind.SPAN:
                            checked_span(said, items[place].texts[0])
                        else:
                            checked(said, source.labels)
                    answers[place] = prediction
        return [answers[place] for place in range(len(items))]

    def _explain_batch(self, items: Sequence[_Explanation]) -> list[Attribution]:
        found = []
        for item in items:
            with stopping_at(item.patience):
                item.patience()
                explained = item.model.explain(item.texts, item.target, item.method)
                found.append(checked_attribution(explained, item.fields, item.texts, item.target))
        return found


@dataclass(frozen=True)
class OneModel:
    """A Predictor that asks one member of an ensemble; None: whatever answers for the task."""

    engine: InProcessEngine
    member: int | None

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        """Return what the member alone says. Raises as the engine does."""
        return self.engine.predict(task_code, fields, key=key, member=self.member)

    def ask_ahead(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Pending[_Question, Prediction]:
        """Begin to answer and return at once, as the engine does."""
        return self.engine.ask_ahead(task_code, fields, key=key, member=self.member)


def checked_attribution(found: Attribution, fields: Sequence[str], texts: Sequence[str], target: str) -> Attribution:
    """Return the explanation if it is one of these texts and this target. Raises BadModelAnswer.

    It is stored with its attempt and shown from then on, so that a wrong one would never leave the page again.
    """
    if found.target != target:
        raise BadModelAnswer("it explained something else than it was asked about")
    if not math.isfinite(found.seconds) or not math.isfinite(found.convergence_delta or 0.0) or found.steps < 0:
        raise BadModelAnswer("its explanation has numbers that are not finite")
    if not found.method.isprintable() or len(found.method) > LONGEST_METHOD:
        raise BadModelAnswer("its explanation names no method")
    by_name = dict(zip(fields, texts, strict=True))
    for word in found.words:
        text = by_name.get(word.field or fields[-1])
        if text is None or not 0 <= word.start < word.end <= len(text) or text[word.start : word.end] != word.text:
            raise BadModelAnswer("it explained words that don't stand in the text")
        if not math.isfinite(word.score):
            raise BadModelAnswer("its explanation has numbers that are not finite")
    return found


def _as_prediction(member: MemberAnswer) -> Prediction:
    return Prediction(
        member.model_id,
        member.revision,
        member.label,
        member.probabilities,
        0.0,
        member.truncated,
        member.span,
        member.confidence,
        member.characters_read,
    )


def _asked(model: TargetModel, named: tuple[str, str] | None) -> TargetModel:
    if isinstance(model, Ensemble):
        return model.named(named)
    if named not in (None, (model.model_id, model.revision)):
        raise ModelNotLoaded(f"{named[0] if named else ''} is not loaded any more; {model.model_id} answers now.")
    return model


def source_of(
    spec: TaskSpec,
    reference: Reference | str,
    *,
    base: Path | None = None,
    local_files_only: bool = False,
    remote: RemoteEngine | None = None,
) -> ModelSource:
    """Return the source of a task's model by reference; nothing is loaded yet, and nothing of torch imported.

    Raises InvalidInput for a reference that is none, ModelNotLoaded for a task that such a model can't serve.
    """
    parsed = parse_reference(reference) if isinstance(reference, str) else reference
    if spec.kind is AnswerKind.FIELDS:
        raise ModelNotLoaded(
            f"The task {spec.code!r} reads {list(spec.model_fields)}; models by reference read one text or two. "
            "Give the engine a ModelSource of your own."
        )

    def load() -> TargetModel:
        from inference.loading import load_model

        return load_model(spec, parsed, base=base, local_files_only=local_files_only, remote=remote)

    members = tuple(str(member) for member in parsed.members) if isinstance(parsed, EnsembleReference) else ()
    return ModelSource(
        kind=spec.kind,
        fields=spec.model_fields,
        labels=labels_of(spec),
        load=load,
        reference=str(parsed),
        members=members,
    )


def labels_of(spec: TaskSpec) -> tuple[str, ...]:
    """Return the labels that the task's model answers with: none where it answers with a span."""
    return () if spec.kind is AnswerKind.SPAN else spec.label_codes


def engine_for(
    models: Mapping[str, Reference | str],
    settings: EngineSettings | None = None,
    *,
    base: Path | None = None,
    local_files_only: bool = False,
    remote: RemoteEngine | None = None,
) -> InProcessEngine:
    """Return an engine for these tasks by code, not yet started. Importing and building it doesn't import torch.

    ``base`` is the folder of the embedded models' base weights, ``remote`` the server of ``served:`` models.
    Raises NotFound for an unknown task, and as source_of.
    """
    return InProcessEngine(
        {
            code: source_of(task(code), reference, base=base, local_files_only=local_files_only, remote=remote)
            for code, reference in models.items()
        },
        settings,
    )


def embedded_source(spec: TaskSpec, *, base: Path | None = None, local_files_only: bool = False) -> ModelSource:
    """Return the source of the model that comes with the repository for this task; nothing is loaded yet."""
    return source_of(spec, f"embedded:{spec.code}", base=base, local_files_only=local_files_only)
