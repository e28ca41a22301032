"""Ray Serve on this machine, through `dynahit model serve --ray`."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
import requests

from inference.engine import InProcessEngine, engine_for
from inference.remote.served import RemoteEngine
from tests.foreign.asked import answer_alike, here, predicts_again, started
from tests.foreign.model_servers import environment_with, free_ports, running

RAY = "ray[serve]==2.60.0"
CODES = ("sentiment", "qa")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("ray")
    binaries = environment_with(folder / "environment", RAY)
    (port,) = free_ports(1)
    models = [word for code in CODES for word in ("--model", f"{code}=embedded:{code}")]
    command = [binaries / "python", "-m", "app.cli", "model", "serve", "--ray", "--port", str(port), *models]
    address = f"http://127.0.0.1:{port}"
    with running(command, folder=folder, environment={"RAY_AUTH_MODE": "disabled"}, ready=f"{address}/health"):
        yield address


def engine_at(url: str) -> InProcessEngine:
    remote = RemoteEngine("ray", url, predict_seconds=20, explain_seconds=60)
    return engine_for({code: f"served:{code}" for code in CODES}, remote=remote)


def test_it_answers_as_the_models_here(url: str) -> None:
    there, local = started(engine_at(url)), here(CODES)

    for code in CODES:
        answer_alike(local, there, code)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/predictions/sentiment", b"{", 400),
        ("/predictions/sentiment", b" " * 1_100_000, 413),
        ("/predictions/unknown", b"{}", 404),
        ("/", b"{}", 404),
        ("/predictions/sentiment", b"[]", 200),
    ],
)
def test_what_is_malformed_is_refused(url: str, path: str, body: bytes, status: int) -> None:
    response = requests.post(url + path, data=body, timeout=30)

    assert response.status_code == status
    assert "error" in response.json()


def test_a_killed_replica_costs_an_answer_and_no_more(url: str) -> None:
    engine = started(engine_at(url))
    replicas = subprocess.run(
        ["pgrep", "-f", "ray::ServeReplica:dynahit:sentiment-predict"], capture_output=True, text=True, check=True
    ).stdout.split()
    for replica in replicas:
        os.kill(int(replica), signal.SIGKILL)

    predicts_again(engine, "sentiment", 120)
