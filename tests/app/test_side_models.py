"""Models beside those in service."""

from __future__ import annotations

from typing import Any

from app.side_models import SideModels, comparable
from hits.models import ModelVersion
from hits.tasks import task


class Loaded:
    """Stands for an engine; tells whether it runs."""

    def __init__(self) -> None:
        self.runs = False

    def start(self) -> None:
        self.runs = True

    def stop(self) -> None:
        self.runs = False


def test_few_models_stay_loaded_and_the_one_not_asked_for_longest_goes() -> None:
    made: dict[str, Any] = {}

    def make(_task_code: str, reference: str) -> Any:
        made[reference] = Loaded()
        return made[reference]

    beside = SideModels(make, most=2)
    first = beside.engine("nli", "a")
    beside.engine("nli", "b")
    assert beside.engine("nli", "a") is first
    beside.engine("nli", "c")

    assert {name: one.runs for name, one in made.items()} == {"a": True, "b": False, "c": True}
    beside.stop()
    assert not any(one.runs for one in made.values())


def test_a_model_that_others_push_out_at_once_does_not_run_on_unknown_to_anybody() -> None:
    beside: SideModels

    class PushedOut(Loaded):
        def stop(self) -> None:
            super().stop()
            others.append(self)

    others: list[Any] = []
    made: list[Any] = []

    def make(_task_code: str, _reference: str) -> Any:
        made.append(PushedOut())
        return made[-1]

    class Lock:
        """Lets somebody else ask for another model as soon as it is free."""

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            if len(made) == 1:
                beside.engine("nli", "b")

    beside = SideModels(make, most=1)
    beside._lock = Lock()  # type: ignore[assignment]
    beside.engine("nli", "a")

    assert others == [made[0]]
    assert [one.runs for one in made] == [False, True]


def test_models_that_say_where_they_are_can_be_compared_each_once() -> None:
    spec = task("sentiment")
    known = [
        ModelVersion(model_id="embedded:sentiment", revision="1", card={}),
        ModelVersion(model_id="some/model", revision="abc", card={}),
        ModelVersion(model_id="dir:round-1", revision="1", card={"folder": "/models/round-1"}),
        ModelVersion(model_id="dir:of-the-service", revision="1", card={}),
        ModelVersion(model_id="ensemble:mean(2)", revision="x", card={}),
        ModelVersion(model_id="rule", revision="x", card={}),
    ]

    found = comparable(spec, "served:one", ["dir:/models/other", "nonsense"], known)

    assert found == [
        "served:one",
        "embedded:sentiment",
        "dir:/models/other",
        "dir:/models/round-1",
        "hub:some/model@abc",
    ]
    assert comparable(spec, None, [], []) == ["embedded:sentiment"]
