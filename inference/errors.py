"""What can go wrong between a text and the model's answer, in the caller's words.

hits.predictions.ModelUnavailable        a worker reads "the model is not available"; no try is used up
├── ModelNotLoaded                       no model answers for this task (unknown task, failed load, not started)
│   ├── ModelWarmingUp                   it is being loaded right now; ask again in some seconds
│   ├── BaseWeightsMissing               the pretrained weights are nowhere to be found
│   ├── BaseWeightsWrong                 the file found is not the one the fine-tuning was made for
│   ├── FineTuningUnusable               delta or card are damaged or don't fit the base
│   │   └── LabelMismatch                the model's labels are not the task's labels
│   ├── LabelsUnknown                    a model of somebody else's, whose labels are not the task's by name
│   └── ModelUnusable                    a model of somebody else's that can't be loaded safely, or not at all
├── ModelQueueFull                       too many texts are waiting; ask again in some seconds
├── ModelTimeout                         no answer within the deadline
├── CallerGone                           whoever asked went away, so the computation was ended
├── MethodNotSupported                   the model answers, but can't explain in this way
├── EngineUnreachable                    the model server takes no connection
├── EngineRefused                        the model server answers with something else (wrong name, labels, token)
└── ModelFailed                          the model raised
    └── BadModelAnswer                   it answered, but not with finite probabilities of the task's labels

hits.errors.InvalidInput
└── NothingToRead                        a text of which the model sees no word
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hits.errors import InvalidInput
from hits.predictions import ModelUnavailable


class ModelNotLoaded(ModelUnavailable):
    """No model answers for this task."""


class ModelWarmingUp(ModelNotLoaded):
    """The model is being loaded."""

    def __init__(self, waited_seconds: float) -> None:
        super().__init__(
            f"The model is still being loaded (waited {waited_seconds:.1f} s). "
            "Ask again in some seconds; no try was used."
        )


class BaseWeightsMissing(ModelNotLoaded):
    """None of the four ways led to the pretrained weights."""

    def __init__(self, tried: Iterable[str], ways: str) -> None:
        listed = "\n".join(f"  - {line}" for line in tried)
        super().__init__(f"The pretrained weights were not found:\n{listed}\nOne of four ways gives them:\n{ways}")


class BaseWeightsWrong(ModelNotLoaded):
    """A weights file with another content than the fine-tuning was made for."""

    def __init__(self, path: Path, found: str, expected: str, ways: str) -> None:
        super().__init__(
            f"{path} has SHA-256 {found}, but {expected} is needed. It was not loaded. "
            f"One of four ways gives it:\n{ways}"
        )
        self.path = path


class FineTuningUnusable(ModelNotLoaded):
    """The committed fine-tuning (delta.safetensors, card.json) can't be used."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f"The fine-tuning in {folder} can't be used: {reason}. "
            "Restore the folder from the repository or train it again with `dynahit model train`."
        )
        self.folder = folder


class LabelMismatch(FineTuningUnusable):
    """The model's labels are not the task's labels; nothing is guessed from their positions."""

    def __init__(self, folder: Path, model_labels: Iterable[str], task_labels: Iterable[str]) -> None:
        super().__init__(
            folder, f"the model knows the labels {sorted(model_labels)}, but the task has {sorted(task_labels)}"
        )


class LabelsUnknown(ModelNotLoaded):
    """The labels of a model from elsewhere are not the task's by name."""

    def __init__(
        self, source: str, own: Iterable[str], labels: Iterable[str], *, given: Iterable[str] | None = None
    ) -> None:
        listed = list(own)
        said = "" if given is None else f" ?labels= says {list(given)}, which does not fit both."
        super().__init__(
            f"{source} names its labels {listed} in this order, and the task's are {list(labels)}; by name they don't "
            f"fit.{said} If you know what each of its {len(listed)} outputs means, say it in their order: "
            f"{source.partition('?')[0]}?labels={','.join(labels)}"
        )


class ModelUnusable(ModelNotLoaded):
    """A model from elsewhere can't be loaded; ``step`` says what to do."""

    def __init__(self, source: str, reason: str, step: str) -> None:
        super().__init__(f"{source} can't be used: {reason}. {step}")


class ModelQueueFull(ModelUnavailable):
    """More texts are waiting than the queue takes."""

    def __init__(self, limit: int | None = None) -> None:
        waiting = "Too many" if limit is None else str(limit)
        super().__init__(
            f"{waiting} texts are already waiting for the model. Ask again in some seconds; no try was used."
        )


class ModelTimeout(ModelUnavailable):
    """No answer within the deadline; whatever comes later is dropped."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The model gave no answer within {seconds:g} s. Ask again; no try was used.")


class CallerGone(ModelUnavailable):
    """Nobody waits for the answer any more."""

    def __init__(self) -> None:
        super().__init__("Nobody waited for the answer any more, so it was not computed.")


class MethodNotSupported(ModelUnavailable):
    """This model, or the engine that it is on, does not explain in this way; ``supported`` are the ways it has."""

    def __init__(self, method: str, model_id: str, supported: Iterable[str] = ()) -> None:
        listed = ", ".join(supported)
        more = f" Choose one of {listed}." if listed else ""
        super().__init__(f"Explaining by {method} is not supported by {model_id}.{more}")


class ModelFailed(ModelUnavailable):
    """The model raised; the cause is chained."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The model failed on this text ({reason}). No try was used; submit or try another text.")


class EngineUnreachable(ModelUnavailable):
    """The model server takes no connection, or lost it twice."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(
            f"The model server {url} can't be reached ({reason}). Start it, or correct DYNAHIT_ENGINE_URL; "
            "no try was used."
        )


class EngineRefused(ModelUnavailable):
    """The model server answered, but not with a prediction."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"The model server {url} can't be used: {reason}. No try was used.")


class BadModelAnswer(ModelFailed):
    """The model's numbers are not probabilities of the task's labels, so no label was made of them."""


class NothingToRead(InvalidInput):
    """The text holds no word that the model could read (blank, or invisible characters only)."""

    def __init__(self) -> None:
        super().__init__("The text holds nothing that the model can read. Write at least one word.")
