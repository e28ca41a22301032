"""Which server is asked follows from the configuration, and what is missing there is said."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hits.errors import InvalidInput
from hits.tasks import task
from inference.engine import engine_for
from inference.errors import EngineRefused, ModelNotLoaded
from inference.references import ServedReference, parse_reference
from inference.remote.oip import OipModel
from inference.remote.served import RemoteEngine, remote_engine, served_model
from inference.remote.service import ModelService
from tests.inference.remote.answering import Answering, CountingModel, answering

SPEC = task("sentiment")


def of_ours() -> Any:
    def answer(_method: str, path: str, body: Any, _headers: dict[str, str]) -> tuple[int, Any]:
        model = CountingModel()
        # Each name is a model of its own, and its explainer has the same.
        model.model_id = f"test/{path.rpartition('/')[2].removesuffix('-explain')}"
        model.card = replace(CountingModel.card, model_id=model.model_id)
        return 200, ModelService(model, 1).answer([body])[0]

    return answering(answer)


def test_the_engine_is_the_configured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSERVE_KEY_FILE", "/k.json")
    seconds = {"predict_seconds": 2.0, "explain_seconds": 3.0}

    assert remote_engine("ray", "http://h:1/", **seconds) == RemoteEngine("ray", "http://h:1", 2, 3)
    assert remote_engine("torchserve", "http://h:1", **seconds).key_file == Path("/k.json")


@pytest.mark.parametrize(
    ("name", "url", "error", "words"),
    [
        ("triton", "http://h", InvalidInput, "'triton'.*torchserve, ray, oip"),
        ("ray", None, InvalidInput, "DYNAHIT_ENGINE_URL is not set"),
        ("ray", "h:80", EngineRefused, "no web address"),
    ],
)
def test_what_is_not_configured_is_said(name: str, url: str | None, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        remote_engine(name, url, predict_seconds=1, explain_seconds=1)


def test_served_models_need_a_server() -> None:
    with pytest.raises(ModelNotLoaded, match=r"served:sentiment.*DYNAHIT_ENGINE_URL.*embedded:sentiment"):
        served_model(SPEC, ServedReference("sentiment"), None)


def test_labels_are_for_servers_of_others() -> None:
    with pytest.raises(ModelNotLoaded, match="Leave \\?labels out"):
        served_model(SPEC, ServedReference("sentiment", ("a", "b")), RemoteEngine("ray", "http://h"))


@pytest.mark.parametrize("name", ["torchserve", "ray"])
def test_an_engine_asks_its_server(name: Any) -> None:
    with of_ours() as server:
        engine = engine_for({"sentiment": "served:mine"}, remote=RemoteEngine(name, server.url))
        engine.start()
        assert engine.wait_until_settled(20).name == "ready"

        assert engine.predict("sentiment", {"statement": "negative that"}).label == "negative"
        assert engine.explain("sentiment", {"statement": "negative that"}, "negative").target == "negative"
        assert engine.card("sentiment") == replace(CountingModel.card, model_id="test/mine")
        engine.stop()


def test_an_ensemble_may_have_members_on_the_server() -> None:
    with of_ours() as server:
        engine = engine_for(
            {"sentiment": "ensemble:majority(served:a, served:b)"}, remote=RemoteEngine("ray", server.url)
        )
        engine.start()
        assert engine.wait_until_settled(20).name == "ready"

        assert len(engine.predict("sentiment", {"statement": "positive"}).members) == 2
        engine.stop()


def test_a_server_that_comes_late_is_met_when_it_is_there() -> None:
    up = False

    def answer(_method: str, _path: str, body: Any, _headers: dict[str, str]) -> tuple[int, Any] | None:
        return (200, ModelService(CountingModel(), 1).answer([body])[0]) if up else None

    with answering(answer) as server:
        engine = engine_for({"sentiment": "served:m"}, remote=RemoteEngine("ray", server.url))
        engine.start()
        assert engine.wait_until_settled(20).name == "failed"
        with pytest.raises(ModelNotLoaded, match="can't be reached"):
            engine.predict("sentiment", {"statement": "positive"})

        up = True
        engine.start()
        assert engine.wait_until_settled(20).name == "ready"
        assert engine.predict("sentiment", {"statement": "positive"}).label == "positive"
        engine.stop()


def test_an_oip_model_is_met(answers: Answering) -> None:
    model = served_model(
        SPEC, ServedReference("m", ("neutral", "positive", "negative")), RemoteEngine("oip", answers.url)
    )

    assert isinstance(model, OipModel)
    assert model.predict_all([("x",)])[0].label == "positive"


@pytest.fixture
def answers() -> Any:
    output = {"name": "probabilities", "datatype": "FP32", "shape": [1, 3], "data": [0.2, 0.5, 0.3]}
    with answering(
        lambda _method, path, _body, _headers: (200, {"outputs": [output]} if path.endswith("infer") else {"name": "m"})
    ) as server:
        yield server


def test_a_served_name_is_read() -> None:
    assert parse_reference("served:my-model.1?labels=a,b") == ServedReference("my-model.1", ("a", "b"))
    assert str(parse_reference("served:m")) == "served:m"
    with pytest.raises(InvalidInput, match="served:NAME"):
        parse_reference("served:a/b")


ASK = """
import sys
from inference.engine import engine_for
from inference.remote.served import RemoteEngine
engine = engine_for({"sentiment": "served:m"}, remote=RemoteEngine("ray", sys.argv[1]))
engine.start()
assert engine.wait_until_settled(20).name == "ready"
engine.predict("sentiment", {"statement": "negative"})
engine.explain("sentiment", {"statement": "negative"}, "negative")
assert not {"torch", "transformers", "captum", "tokenizers"} & set(sys.modules), sorted(sys.modules)
"""


def test_a_web_process_with_a_model_server_never_imports_torch() -> None:
    with of_ours() as server:
        run = subprocess.run([sys.executable, "-c", ASK, server.url], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
