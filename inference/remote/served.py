"""Which model server a service asks, and the models it asks for there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from hits.errors import InvalidInput
from hits.tasks import AnswerKind, TaskSpec
from inference.errors import ModelNotLoaded
from inference.references import ServedReference
from inference.remote.doors import HttpDoor
from inference.remote.http import address
from inference.remote.model import RemoteModel
from inference.remote.oip import OipModel
from inference.remote.torchserve import TorchServeDoor, key_file_from_environment
from inference.target import TargetModel

EngineName = Literal["torchserve", "ray", "oip"]
ENGINES: tuple[str, ...] = get_args(EngineName)


@dataclass(frozen=True)
class RemoteEngine:
    """A model server. ``key_file`` is TorchServe's, if its tokens are on; the deadlines are in seconds per request."""

    name: EngineName
    url: str
    predict_seconds: float = 5.0
    explain_seconds: float = 20.0
    key_file: Path | None = None


def remote_engine(name: str, url: str | None, *, predict_seconds: float, explain_seconds: float) -> RemoteEngine:
    """Return the configured model server. Raises InvalidInput for an unknown engine, EngineRefused for no address."""
    if name not in ENGINES:
        raise InvalidInput(f"DYNAHIT_ENGINE is {name!r}, which is no engine. Write in-process, {', '.join(ENGINES)}.")
    if not url:
        raise InvalidInput(
            f"DYNAHIT_ENGINE is {name!r}, but DYNAHIT_ENGINE_URL is not set. Write the server's address there, "
            "such as http://127.0.0.1:8080."
        )
    key_file = key_file_from_environment() if name == "torchserve" else None
    return RemoteEngine(name, address(url), predict_seconds, explain_seconds, key_file)  # type: ignore[arg-type]  # looked up above


def served_model(spec: TaskSpec, reference: ServedReference, engine: RemoteEngine | None) -> TargetModel:
    """Meet the served model and return it. Raises ModelUnavailable, also when no model server is configured."""
    if engine is None:
        raise ModelNotLoaded(
            f"{reference} is a model on a server, but no server is set. "
            "Set DYNAHIT_ENGINE and DYNAHIT_ENGINE_URL, or name a model such as embedded:" + spec.code + "."
        )
    is_span = spec.kind is AnswerKind.SPAN
    labels = () if is_span else spec.label_codes
    if engine.name == "oip":
        return OipModel(
            engine.url,
            reference.name,
            fields=spec.model_fields,
            labels=labels,
            answers_span=is_span,
            model_labels=reference.labels or None,
            predict_seconds=engine.predict_seconds,
            explain_seconds=engine.explain_seconds,
        )
    if reference.labels:
        raise ModelNotLoaded(f"{reference} gives labels, but a server of ours names them itself. Leave ?labels out.")
    seconds = {"predict_seconds": engine.predict_seconds, "explain_seconds": engine.explain_seconds}
    if engine.name == "torchserve":
        return RemoteModel(TorchServeDoor(engine.url, **seconds, key_file=engine.key_file), reference.name, labels)
    return RemoteModel(HttpDoor(engine.url, **seconds), reference.name, labels)
