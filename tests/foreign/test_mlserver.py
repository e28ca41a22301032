"""MLServer, which speaks the Open Inference Protocol as Triton and KServe do."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from inference.engine import InProcessEngine, engine_for
from inference.methods import LEAVE_ONE_WORD_OUT
from inference.remote.served import RemoteEngine
from tests.foreign.asked import ASKED, assert_same_words, here, started, target_of
from tests.foreign.model_servers import environment_with, free_ports, running

MLSERVER = "mlserver==1.7.1"
CODES = ("sentiment", "nli", "qa")
EXPLAINED = ("sentiment",)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mlserver")
    binaries = environment_with(folder / "environment", MLSERVER)
    http, grpc, metrics = free_ports(3)
    (folder / "settings.json").write_text(
        json.dumps(
            {
                "host": "127.0.0.1",
                "http_port": http,
                "grpc_port": grpc,
                "metrics_port": metrics,
                "parallel_workers": 0,
                "debug": False,
            }
        )
    )
    for code in CODES:
        for explains in (False, True) if code in EXPLAINED else (False,):
            place = folder / f"{code}{'-explain' * explains}"
            place.mkdir()
            (place / "model-settings.json").write_text(
                json.dumps(
                    {
                        "name": place.name,
                        "implementation": "tests.foreign.mlserver_runtime.EmbeddedRuntime",
                        # It batches by itself, and cuts what comes back by texts; explanations are not rows of texts.
                        **({} if explains else {"max_batch_size": 8, "max_batch_time": 0.005}),
                        "parameters": {"version": "3", "extra": {"task": code, "explains": explains}},
                    }
                )
            )
    address = f"http://127.0.0.1:{http}"
    with running(
        [binaries / "mlserver", "start", folder],
        folder=folder,
        environment={},
        ready=f"{address}/v2/models/{CODES[-1]}/ready",
    ):
        yield address


def engine_at(url: str) -> InProcessEngine:
    remote = RemoteEngine("oip", url, predict_seconds=20, explain_seconds=60)
    return engine_for({code: f"served:{code}" for code in CODES}, remote=remote)


def test_it_answers_as_the_models_here(url: str) -> None:
    there, local = started(engine_at(url)), here(CODES)

    for code in CODES:
        for asked in ASKED[code]:
            a, b = local.predict(code, asked, seconds=30), there.predict(code, asked, seconds=30)
            assert (b.model_id, b.revision) == (f"oip:{code}", "3")
            assert (b.label, b.span) == (a.label, a.span)
            assert dict(b.probabilities) == pytest.approx(dict(a.probabilities), abs=1e-4)
            assert b.confidence is None or b.confidence == pytest.approx(a.confidence, abs=1e-4)


def test_a_second_model_explains_and_without_one_words_are_left_out(url: str) -> None:
    there, local = started(engine_at(url)), here(CODES)

    for code in CODES:
        asked = ASKED[code][0]
        target = target_of(local.predict(code, asked, seconds=30))
        method = None if code in EXPLAINED else LEAVE_ONE_WORD_OUT
        found = there.explain(code, asked, target, seconds=120)
        assert_same_words(local.explain(code, asked, target, method=method, seconds=120), found)
        assert found.method == ("oip:second-model" if code in EXPLAINED else LEAVE_ONE_WORD_OUT)
