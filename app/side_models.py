"""Models beside those in service, for comparing: loaded when one is asked for, and let go when others are wanted."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from app.services import Engine
from app.settings import Settings
from hits.errors import InvalidInput
from hits.models import ModelVersion
from hits.tasks import TaskSpec

if TYPE_CHECKING:
    from inference.engine import InProcessEngine

#: So many stay loaded; each takes a model's memory.
MOST_LOADED = 2
#: A model that is not there yet is waited for so long.
WARMING_SECONDS = 15.0


class SideModels:
    """The engines of models by reference, one each, so that none stands in another's queue. Thread-safe."""

    def __init__(self, make: Callable[[str, str], InProcessEngine], most: int = MOST_LOADED) -> None:
        self._make = make
        self._most = most
        self._engines: OrderedDict[tuple[str, str], InProcessEngine] = OrderedDict()
        self._lock = threading.Lock()

    def engine(self, task_code: str, reference: str) -> Engine:
        """Return the engine of a model, loading or loaded. Raises InvalidInput for a reference that is none."""
        with self._lock:
            known = self._engines.get((task_code, reference))
            if known is None:
                known = self._make(task_code, reference)
                self._engines[task_code, reference] = known
            self._engines.move_to_end((task_code, reference))
            # Before anybody else can let it go: started afterwards, it would stay loaded and be known to nobody.
            known.start()
            gone = [self._engines.popitem(last=False)[1] for _ in range(len(self._engines) - self._most)]
        for one in gone:
            one.stop()
        return known

    def stop(self) -> None:
        """Let every model go."""
        with self._lock:
            engines = list(self._engines.values())
            self._engines.clear()
        for one in engines:
            one.stop()


def side_models(settings: Settings) -> SideModels:
    """Return the place of the models that this instance's settings allow to be compared."""
    from inference.engine import EngineSettings, engine_for

    limits = EngineSettings(
        lanes=1,
        predict_seconds=settings.predict_seconds,
        explain_seconds=settings.explain_seconds,
        warming_seconds=WARMING_SECONDS,
        predict_queue=8,
        explain_queue=4,
        remembered_explanations=32,
    )

    def make(task_code: str, reference: str) -> InProcessEngine:
        models = {task_code: reference}
        return engine_for(models, limits, base=settings.base_weights, local_files_only=settings.local_files_only)

    return SideModels(make)


def comparable(
    spec: TaskSpec, in_service: str | None, listed: Sequence[str], known: Sequence[ModelVersion]
) -> list[str]:
    """Return the references of the models of a task that can be compared, those in service first.

    ``listed`` are those of DYNAHIT_COMPARE; of the registry's versions those count that say where they are.
    """
    from inference.references import parse_reference

    found = [in_service, spec.default_model, *listed, *(_reference_of(one) for one in reversed(known))]
    chosen: dict[str, None] = {}
    for reference in found:
        try:
            if reference:
                chosen[str(parse_reference(reference))] = None
        except InvalidInput:
            continue
    return list(chosen)


def _reference_of(version: ModelVersion) -> str | None:
    folder = version.card.get("folder")
    if folder is not None:
        return f"dir:{folder}"
    if version.model_id.startswith("dir:"):
        # The name of a folder; where that lies was in the configuration at that time.
        return None
    if "/" in version.model_id and ":" not in version.model_id:
        return f"hub:{version.model_id}@{version.revision}"
    return version.model_id
