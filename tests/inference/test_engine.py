"""The engine: states, deadlines, fault injection through fake models, and no torch before the start."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from hits.errors import InvalidAnswer, InvalidInput, NotFound
from hits.predictions import AnswerSpan, Attribution, MemberAnswer, ModelUnavailable, Prediction, WordAttribution
from hits.tasks import AnswerKind, task
from inference.engine import EngineSettings, InProcessEngine, ModelSource, embedded_source, engine_for
from inference.ensembles import Ensemble, Majority
from inference.errors import (
    BadModelAnswer,
    BaseWeightsMissing,
    CallerGone,
    ModelFailed,
    ModelNotLoaded,
    ModelQueueFull,
    ModelTimeout,
    ModelWarmingUp,
)
from inference.right_of_way import pass_checkpoint
from inference.target import ModelCard, ModelInput

LABELS = ("negative", "positive", "neutral")
GOOD = Prediction("fake", "1", "positive", {"negative": 0.1, "positive": 0.7, "neutral": 0.2}, 1.0)
WHY = Attribution("fake", "1", "none", 1, "positive", (), 0.0, True, 0.0)
QUICK = EngineSettings(lanes=2, predict_seconds=2, explain_seconds=2, warming_seconds=0.05, predict_queue=4)


class FakeModel:
    """Answers GOOD unless told otherwise by its last text."""

    model_id, revision = "fake", "1"
    card = ModelCard("fake", "1", LABELS, parameters=7)

    def __init__(self, **behaviour: Callable[[], Prediction]) -> None:
        self.behaviour = behaviour
        self.explaining: Callable[[], Attribution] = lambda: WHY
        self.explained = 0

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        return [self.behaviour.get(item[-1], lambda: GOOD)() for item in inputs]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        self.explained += 1
        return replace(self.explaining(), target=target)


Start = Callable[..., InProcessEngine]


@pytest.fixture
def start() -> Iterator[Start]:
    engines: list[InProcessEngine] = []

    def begin(
        model: FakeModel | None = None, load: Callable[[], FakeModel] | None = None, settings: EngineSettings = QUICK
    ) -> InProcessEngine:
        source = ModelSource(AnswerKind.TEXT, ("statement",), LABELS, load or (lambda: model or FakeModel()))
        engine = InProcessEngine({"sentiment": source}, settings)
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
    engine = InProcessEngine({"sentiment": ModelSource(AnswerKind.TEXT, ("statement",), LABELS, FakeModel)}, QUICK)

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
        "import inference.loading, inference.published, inference.read_span, inference.ensembles\n"
        "inference.engine.engine_for({'sentiment': 'embedded:sentiment', 'qa': 'hub:a/b@main', 'nli': 'dir:/x'})\n"
        "found = {'torch', 'transformers', 'captum', 'tokenizers', 'huggingface_hub', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported {found}' if found else 0)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr


def test_a_source_takes_kind_labels_and_fields_from_the_task() -> None:
    source = embedded_source(task("sentiment"))

    assert (source.kind, source.labels) == (AnswerKind.TEXT, ("negative", "positive", "neutral"))
    assert source.fields == ("statement",)
    assert embedded_source(task("nli")).fields == ("premise", "hypothesis")
    reads = embedded_source(task("qa"))
    assert (reads.kind, reads.labels, reads.fields) == (AnswerKind.SPAN, (), ("passage", "question"))


def test_a_task_of_three_texts_needs_a_source_of_its_own() -> None:
    with pytest.raises(ModelNotLoaded, match="a ModelSource of your own"):
        embedded_source(replace(task("nli"), model_fields=("premise", "hypothesis", "premise")))


def test_an_engine_for_an_unknown_task_or_reference_is_refused() -> None:
    with pytest.raises(NotFound, match="'parsing'"):
        engine_for({"parsing": "embedded:parsing"})
    with pytest.raises(InvalidInput, match="'gpt'"):
        engine_for({"nli": "gpt"})


def several(loads: dict[str, Callable[[], FakeModel]]) -> InProcessEngine:
    sources = {code: ModelSource(AnswerKind.TEXT, ("text",), LABELS, load) for code, load in loads.items()}
    return InProcessEngine(sources, replace(QUICK, warming_seconds=5))


def test_each_model_answers_once_it_is_there_and_the_one_that_is_asked_for_is_loaded_next() -> None:
    loaded: list[str] = []
    go = {code: threading.Event() for code in "abcd"}

    def load(code: str) -> FakeModel:
        go[code].wait(10)
        loaded.append(code)
        return FakeModel()

    engine = several({code: lambda code=code: load(code) for code in "abcd"})  # type: ignore[misc]  # bound early
    engine.start()
    try:
        with ThreadPoolExecutor(1) as person:
            asked = person.submit(engine.predict, "d", {"text": "fine"})
            deadline = time.monotonic() + 5
            while "d" not in engine._to_load[:1]:
                assert time.monotonic() < deadline
                time.sleep(0.002)
            go["a"].set()
            go["d"].set()
            assert asked.result(5) == GOOD
        assert loaded == ["a", "d"]
        assert engine.state().name == "loading"
        for event in go.values():
            event.set()
        assert engine.wait_until_settled(5).name == "ready"
    finally:
        engine.stop()


def test_one_model_that_fails_to_load_leaves_the_others_answering() -> None:
    def fail() -> FakeModel:
        raise BaseWeightsMissing(["nowhere"], "  1. put them somewhere")

    engine = several({"bad": fail, "good": FakeModel})
    engine.start()
    try:
        state = engine.wait_until_settled(5)
        assert (state.name, state.message.partition(":")[0]) == ("failed", "bad")
        assert engine.predict("good", {"text": "fine"}) == GOOD
        with pytest.raises(ModelNotLoaded, match="put them somewhere"):
            engine.predict("bad", {"text": "fine"})
    finally:
        engine.stop()


def test_cards_are_known_once_the_model_is_loaded(start: Start) -> None:
    engine = start()

    card = engine.card("sentiment")
    assert card is not None
    assert card.parameters == 7
    assert engine.card("sentiment", "fake") == card
    assert engine.card("sentiment", "another") is None
    assert engine.card("nli") is None


def test_the_same_explanation_is_computed_once_and_others_are_not_mixed_up(start: Start) -> None:
    model = FakeModel()
    engine = start(model, settings=replace(QUICK, remembered_explanations=2))
    warm = model.explained

    def ask(text: str, target: str, method: str | None = None) -> str:
        return engine.explain("sentiment", {"statement": text}, target, method=method).target

    assert [ask("one", "positive"), ask("one", "positive")] == ["positive"] * 2
    assert model.explained == warm + 1
    assert ask("one", "negative") == "negative"
    assert ask("one", "negative", "gradient-shap") == "negative"
    assert model.explained == warm + 3
    ask("one", "positive")
    assert model.explained == warm + 4, "only the last two are kept"


class Naming(FakeModel):
    """Explains the first word of any text, as a word of the field that it was made for."""

    def __init__(self, field: str) -> None:
        super().__init__()
        self.field = field

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        word = item[0].split()[0]
        return replace(WHY, target=target, words=(WordAttribution(0, len(word), word, 1.0, self.field),))


def test_one_model_under_two_tasks_explains_each_by_its_own_names() -> None:
    sources = {
        code: ModelSource(AnswerKind.TEXT, (field,), LABELS, partial(Naming, field))
        for code, field in (("sentiment", "statement"), ("hate", "text"))
    }
    engine = InProcessEngine(sources, QUICK)
    engine.start()
    try:
        assert engine.wait_until_settled(5).name == "ready"
        first = engine.explain("sentiment", {"statement": "ok"}, "positive")
        second = engine.explain("hate", {"text": "ok"}, "positive")
    finally:
        engine.stop()

    assert [first.words[0].field, second.words[0].field] == ["statement", "text"]


NAN = float("nan")


@pytest.mark.parametrize(
    "wrong",
    [
        {"words": (WordAttribution(0, 3, "fin", NAN, "statement"),)},
        {"words": (WordAttribution(0, 3, "bad", 1.0, "statement"),)},
        {"words": (WordAttribution(2, 9, "ne", 1.0, "statement"),)},
        {"words": (WordAttribution(-4, 4, "fine", 1.0, "statement"),)},
        {"words": (WordAttribution(0, 4, "fine", 1.0, "elsewhere"),)},
        {"convergence_delta": float("inf")},
        {"seconds": NAN},
        {"steps": -1},
        {"method": "a\0"},
        {"method": "m" * 500},
        {"target": "angry"},
    ],
)
def test_an_explanation_that_is_none_of_the_text_is_never_kept(start: Start, wrong: dict[str, object]) -> None:
    class Wrong(FakeModel):
        def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
            right = super().explain(item, target, method)
            return replace(right, **wrong) if item[0] == "fine" and self.explained < 3 else right  # type: ignore[arg-type]

    engine = start(Wrong())

    with pytest.raises(BadModelAnswer):
        engine.explain("sentiment", {"statement": "fine"}, "positive")
    engine.explain("sentiment", {"statement": "another"}, "positive")
    assert engine.explain("sentiment", {"statement": "fine"}, "positive").target == "positive"


@pytest.mark.parametrize("confidence", [NAN, -0.1, 9.0])
def test_a_confidence_that_is_none_is_no_answer(start: Start, confidence: float) -> None:
    engine = start(FakeModel(odd=lambda: replace(GOOD, confidence=confidence)))

    with pytest.raises(BadModelAnswer, match="confidence"):
        engine.predict("sentiment", {"statement": "odd"})


def test_a_members_answer_is_looked_at_as_the_shown_one_is(start: Start) -> None:
    odd = MemberAnswer("m", "1", "positive", {"negative": -1.0, "positive": 1.0, "neutral": 1.0})
    engine = start(FakeModel(odd=lambda: replace(GOOD, members=(odd,))))

    with pytest.raises(BadModelAnswer, match="probabilities"):
        engine.predict("sentiment", {"statement": "odd"})


def test_an_explanation_ends_when_whoever_asked_has_gone(start: Start) -> None:
    ended = threading.Event()
    working = threading.Event()

    def work() -> Attribution:
        working.set()
        deadline = time.monotonic() + 10
        try:
            while time.monotonic() < deadline:
                pass_checkpoint()
                time.sleep(0.002)
        except CallerGone:
            ended.set()
            raise
        return WHY

    model = FakeModel()
    engine = start(model, settings=replace(QUICK, explain_seconds=10))
    model.explaining = work
    with pytest.raises(CallerGone):
        engine.explain("sentiment", {"statement": "fine"}, "positive", gone=working.is_set)

    assert ended.wait(5)
    assert engine.counts()["explain"].left == 1


def test_an_explanation_gives_way_to_a_prediction_of_any_model_of_the_process(start: Start) -> None:
    asked, leave = threading.Event(), threading.Event()

    def hold() -> Prediction:
        asked.set()
        leave.wait(5)
        return GOOD

    def explain() -> Attribution:
        pass_checkpoint()
        return WHY

    in_service, beside = start(FakeModel(slow=hold)), FakeModel()
    beside.explaining = explain
    other = start(beside, settings=replace(QUICK, explain_seconds=10, give_way_seconds=5))
    with ThreadPoolExecutor(2) as people:
        predicted = people.submit(in_service.predict, "sentiment", {"statement": "slow"})
        asked.wait(5)
        explained = people.submit(other.explain, "sentiment", {"statement": "fine"}, "positive")
        with pytest.raises(TimeoutError):
            explained.result(0.3)
        leave.set()

        assert explained.result(5).target == "positive"
        assert predicted.result(5) == GOOD


def test_an_explanation_past_its_deadline_stops_computing(start: Start) -> None:
    ended = threading.Event()

    def work() -> Attribution:
        try:
            for _ in range(5000):
                pass_checkpoint()
                time.sleep(0.002)
        finally:
            ended.set()
        return WHY

    model = FakeModel()
    engine = start(model, settings=replace(QUICK, explain_seconds=10))
    model.explaining = work
    with pytest.raises(ModelTimeout):
        engine.explain("sentiment", {"statement": "fine"}, "positive", seconds=0.05)

    assert ended.wait(5)


def test_an_explanation_of_another_version_than_the_one_that_answers_is_refused(start: Start) -> None:
    with pytest.raises(ModelNotLoaded, match="not loaded any more"):
        start().explain("sentiment", {"statement": "fine"}, "positive", model=("fake", "0"))


@pytest.mark.parametrize(
    "span", [None, AnswerSpan(0, 4, "four"), AnswerSpan(3, 3, ""), AnswerSpan(90, 94, "word"), AnswerSpan(-3, -1, "rd")]
)
def test_a_span_that_is_not_in_the_passage_is_never_an_answer(span: AnswerSpan | None) -> None:
    answer = replace(GOOD, label="", probabilities={}, span=span, confidence=0.5)
    source = ModelSource(AnswerKind.SPAN, ("passage", "question"), (), lambda: FakeModel(odd=lambda: answer))
    engine = InProcessEngine({"qa": source}, replace(QUICK, warming_seconds=5))
    engine.start()
    try:
        with pytest.raises(BadModelAnswer):
            engine.predict("qa", {"passage": "one word", "question": "odd"})
    finally:
        engine.stop()


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried\nto allocate")]
)
def test_no_memory_left_is_a_typed_error_on_one_line_and_the_next_text_is_answered(
    start: Start, error: Exception
) -> None:
    def fail() -> Prediction:
        raise error

    engine = start(FakeModel(odd=fail))
    with pytest.raises(ModelFailed) as caught:
        engine.predict("sentiment", {"statement": "odd"})

    assert "\n" not in str(caught.value)
    assert engine.predict("sentiment", {"statement": "fine"}) == GOOD


def test_a_hundred_people_at_once_all_get_an_answer_or_are_told_to_come_back(start: Start) -> None:
    engine = start(settings=replace(QUICK, predict_queue=30, predict_seconds=10))

    def ask(number: int) -> str:
        try:
            return engine.predict("sentiment", {"statement": f"fine {number}"}).label
        except ModelQueueFull as error:
            return str(error)

    with ThreadPoolExecutor(100) as people:
        answers = list(people.map(ask, range(600)))

    assert answers.count("positive") >= 30
    assert all(answer == "positive" or "no try was used" in answer for answer in answers)
    counts = engine.counts()["predict"]
    assert counts.answered == answers.count("positive")
    assert (counts.failed, counts.timed_out, counts.waiting) == (0, 0, 0)


def test_one_member_of_an_ensemble_answers_alone_by_its_configured_name() -> None:
    class Other(FakeModel):
        model_id = "other"
        card = ModelCard("other", "1", LABELS)

    says = {"fine": lambda: replace(GOOD, model_id="other")}
    source = ModelSource(
        AnswerKind.TEXT,
        ("statement",),
        LABELS,
        lambda: Ensemble([FakeModel(), Other(**says)], Majority()),
        reference="ensemble:majority(served:fake, served:other)",
        members=("served:fake", "served:other"),
    )
    engine = InProcessEngine({"sentiment": source}, QUICK)
    engine.start()
    try:
        assert engine.wait_until_settled(5).name == "ready"
        alone = engine.of_model("sentiment", "served:other").predict("sentiment", {"statement": "fine"})
        together = engine.of_model("sentiment", source.reference).predict("sentiment", {"statement": "fine"})
        ahead = engine.of_model("sentiment", "served:fake").ask_ahead("sentiment", {"statement": "fine"}).answer()

        assert (alone.model_id, alone.members) == ("other", ())
        assert ahead.model_id == "fake"
        assert len(together.members) == 2
        with pytest.raises(ModelNotLoaded, match="served:far does not answer for the task 'sentiment'"):
            engine.of_model("sentiment", "served:far")
    finally:
        engine.stop()
