"""TorchServe itself, with tokens, two names for each model, and a worker that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hits.tasks import task
from inference.engine import InProcessEngine, engine_for
from inference.remote import archived
from inference.remote.served import RemoteEngine
from tests.foreign.asked import answer_alike, here, predicts_again, started
from tests.foreign.model_servers import environment_with, torchserve

TORCHSERVE = "torchserve==0.12.0"
CODES = ("sentiment", "nli", "qa")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("torchserve")
    binaries = environment_with(folder / "environment", TORCHSERVE)
    for code in CODES:
        spec = task(code)
        archived.write_archive(spec, archived.files_of(spec, f"embedded:{code}"), folder / "store", name=code)
    models = {name: f"{code}.mar" for code in CODES for name in (code, f"{code}-explain")}
    with torchserve(folder, binaries, folder / "store", models, batch=4) as url:
        yield url, folder / "key_file.json"


def engine_at(url: str, key_file: Path | None) -> InProcessEngine:
    remote = RemoteEngine("torchserve", url, predict_seconds=20, explain_seconds=60, key_file=key_file)
    return engine_for({code: f"served:{code}" for code in CODES}, remote=remote)


def test_it_answers_as_the_models_here(served: tuple[str, Path]) -> None:
    there, local = started(engine_at(*served)), here(CODES)

    for code in CODES:
        answer_alike(local, there, code)


def test_without_its_token_nothing_is_answered(served: tuple[str, Path]) -> None:
    engine = engine_at(served[0], None)
    engine.start()

    assert "InvalidKeyException" in engine.wait_until_settled(30).message


def test_a_killed_worker_costs_an_answer_and_no_more(served: tuple[str, Path]) -> None:
    engine = started(engine_at(*served))
    workers = subprocess.run(
        ["pgrep", "-f", "model_service_worker"], capture_output=True, text=True, check=True
    ).stdout.split()
    for worker in workers:
        os.kill(int(worker), signal.SIGKILL)

    predicts_again(engine, "sentiment", 120)
