"""The models that come with the repository, at length: complete explanations, and predictions beside them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest

from hits.tasks import AnswerKind, task
from inference.embedded import CARD, EMBEDDED
from inference.engine import EngineSettings, InProcessEngine, engine_for
from inference.explain import LocalExplainer
from inference.loading import load_model
from inference.methods import METHODS
from inference.target import ModelInput
from inference.training.corpora import Asked
from inference.training.recipes import RECIPES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.model

CODES = ("sentiment", "nli", "hate", "qa")


def inputs_of(code: str, data: Path, count: int) -> list[ModelInput]:
    """Held-out inputs of a task, spread over its first test set."""
    rows = next(iter(RECIPES[code].tests.values())).rows(data)
    chosen = rows[:: max(1, len(rows) // count)][:count]
    return [(row.passage, row.question) if isinstance(row, Asked) else tuple(row.texts) for row in chosen]


def has_model(code: str) -> None:
    if not (EMBEDDED / code / CARD).is_file():
        pytest.skip(f"there is no embedded model of {code} yet")


@pytest.mark.parametrize("count", [4, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("code", CODES)
def test_explanations_are_complete(code: str, count: int, data_folder: Path, base_folder: Path) -> None:
    """The scores add up to F(x) - F(padding), computed here by the model's own forward pass; misses are marked."""
    has_model(code)
    spec = task(code)
    model: Any = load_model(spec, f"embedded:{code}", base=base_folder)
    explainer = LocalExplainer()
    converged = 0
    for item in inputs_of(code, data_folder, count):
        said = model.predict_all([item])[0]
        target = said.label if said.span is None else f"{said.span.start}-{said.span.end}"
        attribution = explainer.attribution(model, item, target, None, patience_seconds=600)
        score = model.score(item, target)
        with torch.no_grad():
            change = float(score.values(score.inputs)[0] - score.values(score.baseline)[0])
        missed = sum(word.score for word in attribution.words) - change
        bound = max(0.05, 0.05 * abs(change))
        # Half precision, where it is used, moves the difference itself a little.
        assert missed == pytest.approx(attribution.convergence_delta, abs=0.05)
        if attribution.converged:
            converged += 1
            assert abs(missed) <= bound + 0.05
        else:
            assert attribution.steps == 36
        for name, text in zip(model.fields, item, strict=True):
            mine = [word for word in attribution.words if word.field == name]
            assert all(text[word.start : word.end] == word.text for word in mine)

    assert converged >= 0.9 * count, f"{converged} of {count} converged"


@pytest.fixture(scope="module")
def engine(base_folder: Path) -> Iterator[InProcessEngine]:
    codes = [code for code in CODES if (EMBEDDED / code / CARD).is_file()]
    settings = EngineSettings(lanes=2, predict_seconds=120, explain_seconds=300, warming_seconds=300, predict_queue=200)
    engine = engine_for({code: f"embedded:{code}" for code in codes}, settings, base=base_folder)
    engine.start()
    state = engine.wait_until_settled(300)
    assert state.name == "ready", state.message
    yield engine
    engine.stop()


@pytest.mark.parametrize("requests", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_predictions_of_all_tasks_beside_explanations_are_those_of_the_models_alone(
    engine: InProcessEngine, data_folder: Path, base_folder: Path, requests: int
) -> None:
    items: list[tuple[str, dict[str, str]]] = []
    alone = {}
    for code in CODES:
        if engine.card(code) is None:
            continue
        spec = task(code)
        model: Any = load_model(spec, f"embedded:{code}", base=base_folder)
        for item in inputs_of(code, data_folder, 8):
            items.append((code, dict(zip(spec.model_fields, item, strict=True))))
            alone[code, item] = model.predict_all([item])[0]
    stop = threading.Event()

    def keep_explaining() -> int:
        count = 0
        for code, fields in cycle(items):
            if stop.is_set() and count:
                return count
            said = alone[code, tuple(fields.values())]
            target = said.label if said.span is None else f"{said.span.start}-{said.span.end}"
            engine.explain(code, fields, target, method=METHODS[count % 2])
            with engine._changed:
                # What is remembered would not be computed again.
                engine._explained.clear()
            count += 1
        return count

    def ask(one: tuple[str, dict[str, str]]) -> tuple[float, bool]:
        code, fields = one
        said, expected = engine.predict(code, fields), alone[code, tuple(fields.values())]
        if task(code).kind is AnswerKind.SPAN:
            return abs((said.confidence or 0) - (expected.confidence or 0)), said.span != expected.span
        apart = [abs(said.probabilities[label] - expected.probabilities[label]) for label in said.probabilities]
        return max(apart), said.label != expected.label

    with ThreadPoolExecutor(1) as explainer, ThreadPoolExecutor(8) as people:
        explaining = explainer.submit(keep_explaining)
        answers = list(people.map(ask, islice(cycle(items), requests)))
        stop.set()
        assert explaining.result() > 0

    assert max(apart for apart, _ in answers) < 1e-5
    assert not any(flipped for _, flipped in answers)
