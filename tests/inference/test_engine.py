"""The engine: states, deadlines, fault injection through fake models, and no torch before the start."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from hits.errors import InvalidAnswer
from hits.predictions import Attribution, ModelUnavailable, Prediction
from hits.tasks import task
from inference.engine import EngineSettings, InProcessEngine, ModelSource, embedded_source, engine_for
from inference.errors import (
    BadModelAnswer,
    BaseWeightsMissing,
    ModelFailed,
    ModelNotLoaded,
    ModelQueueFull,
    ModelTimeout,
    ModelWarmingUp,
)

LABELS = ("negative", "positive", "neutral")
GOOD = Prediction("fake", "1", "positive", {"negative": 0.1, "positive": 0.7, "neutral": 0.2}, 1.0)
WHY = Attribution("fake", "1", "none", 1, "positive", (), 0.0, True, 0.0)
QUICK = EngineSettings(lanes=2, predict_seconds=2, explain_seconds=2, warming_seconds=0.05, predict_queue=4)


class FakeModel:
    """Answers GOOD unless told otherwise per text."""

    def __init__(self, **behaviour: Callable[[], Prediction]) -> None:
        self.behaviour = behaviour
        self.explaining: Callable[[], Attribution] = lambda: WHY

    def predict_all(self, texts: Sequence[str]) -> list[Prediction]:
        return [self.behaviour.get(text, lambda: GOOD)() for text in texts]

    def explain(self, text: str, target: str) -> Attribution:
        return replace(self.explaining(), target=target)


Start = Callable[..., InProcessEngine]


@pytest.fixture
def start() -> Iterator[Start]:
    engines: list[InProcessEngine] = []

    def begin(
        model: FakeModel | None = None, load: Callable[[], FakeModel] | None = None, settings: EngineSettings = QUICK
    ) -> InProcessEngine:
        source = ModelSource(LABELS, "statement", load or (lambda: model or FakeModel()))
        engine = engine_for({"sentiment": source}, settings)
        engines.append(engine)
        engine.start()
        if load is None:
            assert engine.wait_until_settled(5).name == "ready"
        return engine

    yield begin
    for engine in engines:
        engine.stop()


def test_a_ready_engine_predicts_and_explains(start: Start) -> None:
    engine = start()

    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD
    assert engine.explain("sentiment", {"statement": "fine"}, "neutral").target == "neutral"
    assert engine.counts()["predict"].answered == 1


def test_while_loading_it_says_so_and_answers_once_loaded(start: Start) -> None:
    go = threading.Event()

    def load() -> FakeModel:
        go.wait(5)
        return FakeModel()

    engine = start(load=load)

    assert engine.state().name == "loading"
    with pytest.raises(ModelWarmingUp, match="still being loaded"):
        engine.predict("sentiment", {"statement": "fine"})
    go.set()
    assert engine.wait_until_settled(5).name == "ready"
    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD


def test_a_short_load_is_waited_for(start: Start) -> None:
    def load() -> FakeModel:
        time.sleep(0.1)
        return FakeModel()

    engine = start(load=load, settings=replace(QUICK, warming_seconds=5))

    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD


def test_a_failed_load_keeps_its_message_and_can_be_tried_again(start: Start) -> None:
    weights = ["missing"]

    def load() -> FakeModel:
        if weights:
            raise BaseWeightsMissing(["nowhere"], "  1. put them somewhere")
        return FakeModel()

    engine = start(load=load)

    assert engine.wait_until_settled(5).name == "failed"
    with pytest.raises(ModelNotLoaded, match="put them somewhere"):
        engine.predict("sentiment", {"statement": "fine"})
    weights.clear()
    engine.start()
    assert engine.wait_until_settled(5).name == "ready"
    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD


def test_a_crash_while_loading_is_a_failed_state_not_an_endless_wait(start: Start) -> None:
    def load() -> FakeModel:
        raise OSError("disk gone")

    engine = start(load=load)

    state = engine.wait_until_settled(5)
    assert state.name == "failed"
    assert "disk gone" in state.message


def test_an_engine_that_was_not_started_refuses() -> None:
    engine = engine_for({"sentiment": ModelSource(LABELS, "statement", FakeModel)}, QUICK)

    assert engine.state().name == "stopped"
    with pytest.raises(ModelNotLoaded, match="not started in this process"):
        engine.predict("sentiment", {"statement": "fine"})


def test_a_stopped_engine_refuses(start: Start) -> None:
    engine = start()
    engine.stop()

    with pytest.raises(ModelNotLoaded, match="stopped"):
        engine.predict("sentiment", {"statement": "fine"})


def test_a_forked_child_is_told_to_start_its_own(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = start()
    monkeypatch.setattr("inference.engine.os.getpid", lambda: -1)

    with pytest.raises(ModelNotLoaded, match="after the fork"):
        engine.predict("sentiment", {"statement": "fine"})


def test_a_model_that_hangs_on_everything_is_a_failed_state_until_it_comes_back(start: Start) -> None:
    release = threading.Event()

    def hang() -> Prediction:
        release.wait(20)
        return GOOD

    engine = start(FakeModel(odd=hang), settings=replace(QUICK, lanes=1, predict_seconds=0.03))
    deadline = time.monotonic() + 10
    while engine.state().name == "ready" and time.monotonic() < deadline:
        with pytest.raises((ModelTimeout, ModelNotLoaded)):
            engine.predict("sentiment", {"statement": "odd"})

    assert engine.state().name == "failed"
    assert "hangs" in engine.state().message
    release.set()
    while engine.state().name != "ready":
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_an_unknown_task_field_or_label_is_named(start: Start) -> None:
    engine = start()

    with pytest.raises(ModelNotLoaded, match="'nli'"):
        engine.predict("nli", {"statement": "fine"})
    with pytest.raises(InvalidAnswer, match="'statement'"):
        engine.predict("sentiment", {"text": "fine"})
    with pytest.raises(ModelNotLoaded, match="'angry'"):
        engine.explain("sentiment", {"statement": "fine"}, "angry")


def raising() -> Prediction:
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (replace(GOOD, probabilities={"negative": 0.1, "positive": float("nan"), "neutral": 0.2}), "nan"),
        (replace(GOOD, probabilities={"negative": 0.1, "positive": float("inf"), "neutral": 0.2}), "inf"),
        (replace(GOOD, probabilities={"negative": 0.1, "positive": 0.9}), "labels"),
        (replace(GOOD, probabilities={"negative": 0.5, "positive": 0.9, "neutral": 0.2}), "add up"),
        (replace(GOOD, label="neutral"), "most probable"),
        (replace(GOOD, label="angry"), "most probable"),
    ],
)
def test_broken_numbers_never_become_a_label(start: Start, answer: Prediction, reason: str) -> None:
    engine = start(FakeModel(odd=lambda: answer))

    with pytest.raises(BadModelAnswer, match=reason):
        engine.predict("sentiment", {"statement": "odd"})
    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD


def test_a_model_that_raises_is_unavailable_and_the_next_text_is_answered(start: Start) -> None:
    engine = start(FakeModel(odd=raising))

    with pytest.raises(ModelFailed, match="broken") as caught:
        engine.predict("sentiment", {"statement": "odd"})

    assert isinstance(caught.value, ModelUnavailable)
    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD


def test_a_model_that_hangs_times_out_and_the_engine_recovers(start: Start) -> None:
    release = threading.Event()

    def hang() -> Prediction:
        release.wait(20)
        return GOOD

    engine = start(FakeModel(odd=hang), settings=replace(QUICK, lanes=1, predict_seconds=0.2))
    with pytest.raises(ModelTimeout):
        engine.predict("sentiment", {"statement": "odd"})

    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD
    assert engine.counts()["predict"].abandoned == 1
    release.set()


def test_a_hanging_explanation_delays_no_prediction(start: Start) -> None:
    release = threading.Event()
    model = FakeModel()
    engine = start(model)

    def hang() -> Attribution:
        release.wait(20)
        return WHY

    model.explaining = hang
    with pytest.raises(ModelTimeout):
        engine.explain("sentiment", {"statement": "fine"}, "positive", seconds=0.05)
    started = time.monotonic()
    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD
    assert time.monotonic() - started < 1
    release.set()


def test_more_texts_than_the_queue_takes_are_refused(start: Start) -> None:
    release = threading.Event()

    def hang() -> Prediction:
        release.wait(20)
        return GOOD

    engine = start(FakeModel(odd=hang), settings=replace(QUICK, lanes=1, batch_limit=1, predict_queue=2))
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(engine.predict("sentiment", {"statement": "odd"}))
        except ModelQueueFull as error:
            outcomes.append(error)

    people = [threading.Thread(target=ask) for _ in range(6)]
    for person in people:
        person.start()
    deadline = time.monotonic() + 5
    while engine.counts()["predict"].refused < 3 and time.monotonic() < deadline:
        time.sleep(0.002)
    release.set()
    for person in people:
        person.join(5)

    assert outcomes.count(GOOD) in (2, 3)
    assert sum(isinstance(outcome, ModelQueueFull) for outcome in outcomes) == 6 - outcomes.count(GOOD)


def test_importing_and_building_an_engine_imports_no_torch() -> None:
    program = (
        "import sys, inference, inference.engine, inference.errors, inference.classify, inference.explain\n"
        "from hits.tasks import task\n"
        "inference.engine.engine_for({'sentiment': inference.engine.embedded_source(task('sentiment'))})\n"
        "found = {'torch', 'transformers', 'captum', 'tokenizers', 'huggingface_hub', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported {found}' if found else 0)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr


def test_an_embedded_source_takes_labels_and_field_from_the_task() -> None:
    source = embedded_source(task("sentiment"))

    assert source.labels == ("negative", "positive", "neutral")
    assert source.text_field == "statement"


def test_a_task_that_the_model_would_read_from_two_fields_is_refused() -> None:
    with pytest.raises(ModelNotLoaded, match="one field"):
        embedded_source(replace(task("sentiment"), model_fields=("prompt", "statement")))
