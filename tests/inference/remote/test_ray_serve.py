"""What is decided before Ray is asked; tests/foreign has the real one."""

from __future__ import annotations

import sys

import pytest

from inference.errors import EngineRefused
from inference.remote.ray_serve import RaySettings, cpus_each, deploy

FOUR = dict.fromkeys(("nli", "qa", "sentiment", "hate"), "embedded")


@pytest.mark.parametrize(
    ("settings", "available", "each"),
    [
        (RaySettings(), 2, 0.25),
        (RaySettings(), 64, 1.0),
        (RaySettings(min_replicas=2), 2, 0.16),
        (RaySettings(cpus=0.1), 2, 0.1),
        (RaySettings(cpus=4, gpus=1), 2, 4),
    ],
)
def test_every_copy_finds_room(settings: RaySettings, available: float, each: float) -> None:
    assert cpus_each(FOUR, settings, available) == each


def test_more_than_there_is_is_refused_instead_of_waiting_for_ever() -> None:
    with pytest.raises(EngineRefused, match=r"8 copies with 1 processors each don't fit into the cluster's 2"):
        cpus_each(FOUR, RaySettings(cpus=1), 2)


def test_without_ray_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(EngineRefused, match=r"dynahit\[ray\]"):
        deploy(FOUR, RaySettings())
