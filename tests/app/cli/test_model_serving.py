"""Archives and replicas from the command line."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from app.cli import model_serving
from app.cli.model_serving import archive, assigned, replica_range, serve
from inference.remote.ray_serve import RaySettings
from tests.inference.published import save_model


def test_an_archive_is_written_and_how_to_start_it_said(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model", "bert", ["neutral", "negative", "positive"])

    result = CliRunner().invoke(
        archive, ["sentiment", "--model", f"dir:{folder}", "--to", str(tmp_path / "store"), "--name", "mine"]
    )

    assert result.exit_code == 0, result.output
    assert (tmp_path / "store/mine.mar").exists()
    assert "--models mine=mine.mar mine-explain=mine.mar" in result.output


@pytest.mark.parametrize(("text", "expected"), [("1", (1, 1)), ("2-5", (2, 5))])
def test_copies_are_a_number_or_a_range(text: str, expected: tuple[int, int]) -> None:
    assert replica_range(text) == expected


@pytest.mark.parametrize("text", ["", "0", "5-2", "a", "1-", "-1", "2-x", "1-5000"])
def test_other_copies_are_refused(text: str) -> None:
    if text == "1-":
        assert replica_range(text) == (1, 1)
    else:
        with pytest.raises(click.BadParameter, match="copies"):
            replica_range(text)


def test_a_model_is_assigned_to_a_task() -> None:
    assert assigned("nli=hub:a/b@c?labels=x,y") == ("nli", "hub:a/b@c?labels=x,y")


@pytest.mark.parametrize("text", ["nli", "nli=", "mood=embedded:nli"])
def test_other_assignments_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        assigned(text)


def test_models_are_served_until_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    deployed: list[tuple[dict[str, str], RaySettings]] = []
    stopped: list[bool] = []

    def deploy(models: dict[str, str], settings: RaySettings) -> None:
        deployed.append((models, settings))
        threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGTERM)).start()

    monkeypatch.setattr(model_serving.ray_serve, "deploy", deploy)
    monkeypatch.setattr(model_serving.ray_serve, "shut_down", lambda: stopped.append(True))
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        result = CliRunner().invoke(
            serve, ["--ray", "--model", "nli=embedded:nli", "--replicas", "1-3", "--cpus", "0.5"]
        )
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)

    assert result.exit_code == 0, result.output
    assert deployed == [({"nli": "embedded:nli"}, RaySettings(max_replicas=3, cpus=0.5))]
    assert stopped == [True]
    assert "DYNAHIT_ENGINE=ray DYNAHIT_ENGINE_URL=http://127.0.0.1:8010" in result.output
