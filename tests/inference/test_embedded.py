"""The model that comes with the repository: merged right, labels by name, refused when damaged, as good as its card."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hits.tasks import task
from inference.base_weights import BASE_SHA256, file_sha256
from inference.bert import LoadedModel, read_base_state
from inference.classify import Classifier
from inference.embedded import CARD, DELTA, EMBEDDED, load_embedded, read_card, revision_of
from inference.engine import EngineSettings, InProcessEngine, engine_for
from inference.errors import BaseWeightsWrong, FineTuningUnusable, LabelMismatch, ModelNotLoaded
from inference.loading import asked_as
from inference.low_rank import LEFT, RIGHT, read_delta
from inference.training.measures import measure
from inference.training.recipes import RECIPES
from inference.training.splits import sample

LABELS = ("negative", "positive", "neutral")
SENTIMENT = EMBEDDED / "sentiment"

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.model

TEXTS = (
    "The food was good, but the room was too loud.",
    "I would have loved this place if I enjoyed waiting an hour for cold soup.",
    "They serve breakfast until eleven.",
    "Not bad at all, I'll be back next week.",
    "a gorgeous , witty , seductive movie that is never boring .",
    "He didn't just try to shove medication down her throat.",
    "האוכל היה טעים 👍🏽",
    "The shop opens at nine and the line is usually gone by ten, " * 3,
)


@pytest.fixture(scope="module")
def loaded(base_folder: Path) -> LoadedModel:
    return load_embedded("sentiment", LABELS, base=base_folder)


@pytest.fixture(scope="module")
def classifier(loaded: LoadedModel) -> Classifier:
    return Classifier(loaded, LABELS)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SENTIMENT, tmp_path / "sentiment", ignore=shutil.ignore_patterns("__pycache__")))


def change_card(folder: Path, **changes: object) -> None:
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    (folder / CARD).write_text(json.dumps(card | changes), encoding="utf-8")


def test_plain_statements_get_their_plain_label(classifier: Classifier) -> None:
    for text, label in (
        ("This is the best meal I have ever had, absolutely wonderful!", "positive"),
        ("Terrible service and disgusting food, I will never return.", "negative"),
        ("The store is located on the second floor.", "neutral"),
    ):
        assert classifier.predict(text).label == label


def test_a_merged_matrix_is_the_base_plus_the_product(loaded: LoadedModel, base_folder: Path) -> None:
    name = "bert.encoder.layer.3.intermediate.dense.weight"
    delta = read_delta(SENTIMENT / DELTA)
    expected = read_base_state(base_folder)[name] + delta[LEFT + name].float() @ delta[RIGHT + name].float()

    assert torch.equal(loaded.model.state_dict()[name], expected)
    assert not torch.equal(read_base_state(base_folder)[name], expected)


def test_the_word_embeddings_are_the_bases_own(loaded: LoadedModel, base_folder: Path) -> None:
    name = "bert.embeddings.word_embeddings.weight"

    assert torch.equal(loaded.model.state_dict()[name], read_base_state(base_folder)[name])


def test_the_model_is_an_ordinary_frozen_single_precision_classifier(loaded: LoadedModel) -> None:
    from transformers import BertForSequenceClassification

    assert type(loaded.model) is BertForSequenceClassification
    assert not loaded.model.training
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {torch.float32}
    assert loaded.model.config.id2label == dict(enumerate(loaded.labels))


def test_name_and_revision_are_stable_and_follow_the_content(loaded: LoadedModel) -> None:
    card = read_card(SENTIMENT)

    assert loaded.model_id == "dynahit/sentiment-minilm-l6-r32"
    assert loaded.revision == card.details["revision"] == revision_of(BASE_SHA256, file_sha256(SENTIMENT / DELTA))
    assert revision_of("a", "b") != revision_of("a", "c") != revision_of("b", "c")


def test_the_tasks_labels_fit_by_name() -> None:
    assert {label.code for label in task("sentiment").labels} == set(read_card(SENTIMENT).labels)


def test_other_labels_are_refused_with_both_lists() -> None:
    with pytest.raises(LabelMismatch, match=r"'negative', 'neutral', 'positive'.*'bad', 'good'"):
        load_embedded("sentiment", ("good", "bad"))


def test_labels_in_another_order_are_taken_by_name(classifier: Classifier, base_folder: Path) -> None:
    turned = Classifier(load_embedded("sentiment", LABELS[::-1], base=base_folder), LABELS[::-1])

    for text in TEXTS[:3]:
        assert dict(turned.predict(text).probabilities) == dict(classifier.predict(text).probabilities)


def test_a_card_with_swapped_labels_moves_the_answers_with_them(damaged: Path, base_folder: Path) -> None:
    change_card(damaged, labels=["positive", "negative", "neutral"])

    swapped = Classifier(load_embedded("sentiment", LABELS, base=base_folder, folder=damaged), LABELS)

    assert swapped.predict("Terrible service and disgusting food.").label == "positive"


def test_a_task_without_an_embedded_model_is_named() -> None:
    with pytest.raises(ModelNotLoaded, match=r"'parsing'.*'sentiment'"):
        load_embedded("parsing", LABELS)


def test_a_changed_delta_is_refused(damaged: Path, base_folder: Path) -> None:
    content = bytearray((damaged / DELTA).read_bytes())
    content[-1] ^= 1
    (damaged / DELTA).write_bytes(content)

    with pytest.raises(FineTuningUnusable, match="the card says"):
        load_embedded("sentiment", LABELS, base=base_folder, folder=damaged)


@pytest.mark.parametrize("missing", [CARD, DELTA])
def test_a_missing_file_is_named(damaged: Path, base_folder: Path, missing: str) -> None:
    (damaged / missing).unlink()

    with pytest.raises(FineTuningUnusable, match=missing):
        load_embedded("sentiment", LABELS, base=base_folder, folder=damaged)


def test_a_broken_card_is_refused(damaged: Path, base_folder: Path) -> None:
    (damaged / CARD).write_text("{}", encoding="utf-8")

    with pytest.raises(FineTuningUnusable, match="model_id"):
        load_embedded("sentiment", LABELS, base=base_folder, folder=damaged)


def test_a_fine_tuning_for_another_base_is_refused(damaged: Path, base_folder: Path) -> None:
    change_card(damaged, base={"sha256": "0" * 64, "vocabulary_sha256": ""})

    with pytest.raises(FineTuningUnusable, match="made for base weights 000"):
        load_embedded("sentiment", LABELS, base=base_folder, folder=damaged)


def test_another_vocabulary_is_refused(damaged: Path, base_folder: Path) -> None:
    change_card(damaged, base={"sha256": BASE_SHA256, "vocabulary_sha256": "0" * 64})

    with pytest.raises(FineTuningUnusable, match="another vocabulary"):
        load_embedded("sentiment", LABELS, base=base_folder, folder=damaged)


def test_wrong_base_weights_are_refused(tmp_path: Path, base_folder: Path) -> None:
    wrong = tmp_path / "base"
    wrong.mkdir()
    for name in ("config.json", "tokenizer.json"):
        shutil.copy(base_folder / name, wrong / name)
    (wrong / "model.safetensors").write_bytes(b"something else")

    with pytest.raises(BaseWeightsWrong):
        load_embedded("sentiment", LABELS, base=wrong)


def test_loading_says_nothing_and_asks_no_network(base_folder: Path) -> None:
    program = (
        "import socket, sys\n"
        "def no(*args, **kwargs): raise OSError('network used')\n"
        "socket.socket.connect = no\n"
        "from inference.classify import Classifier\n"
        "from inference.embedded import load_embedded\n"
        "labels = ('negative', 'positive', 'neutral')\n"
        "Classifier(load_embedded('sentiment', labels), labels).predict('good')\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("text", TEXTS)
def test_explanations_of_the_real_model_are_complete(classifier: Classifier, text: str) -> None:
    prediction = classifier.predict(text)

    attribution = classifier.explain((text,), prediction.label)

    assert attribution.converged
    assert all(text[word.start : word.end] == word.text for word in attribution.words)
    assert any(word.score != 0 for word in attribution.words)


def test_the_words_that_carry_the_sentiment_carry_the_score(classifier: Classifier) -> None:
    attribution = classifier.explain(("The food was wonderful and the table was brown.",), "positive")

    assert max(attribution.words, key=lambda word: word.score).text == "wonderful"


@pytest.fixture(scope="module")
def engine(base_folder: Path) -> Iterator[InProcessEngine]:
    engine = engine_for(
        {"sentiment": "embedded:sentiment"},
        EngineSettings(lanes=2, predict_seconds=60, explain_seconds=60, predict_queue=200),
        base=base_folder,
    )
    engine.start()
    state = engine.wait_until_settled(120)
    assert state.name == "ready", state.message
    yield engine
    engine.stop()


def test_hundreds_of_predictions_beside_explanations_are_those_of_the_model_alone(
    engine: InProcessEngine, classifier: Classifier
) -> None:
    texts = TEXTS[:6]
    alone = {text: classifier.predict(text) for text in texts}
    expected = {text: classifier.explain((text,), "negative").words for text in texts}
    stop = threading.Event()
    explained: list[float] = []

    def keep_explaining() -> None:
        while not stop.is_set():
            text = texts[len(explained) % len(texts)]
            words = engine.explain("sentiment", {"statement": text}, "negative").words
            explained.append(max(abs(a.score - b.score) for a, b in zip(words, expected[text], strict=True)))

    def ask(number: int) -> tuple[float, bool]:
        text = texts[number % len(texts)]
        prediction = engine.predict("sentiment", {"statement": text})
        apart = max(abs(prediction.probabilities[label] - alone[text].probabilities[label]) for label in LABELS)
        return apart, prediction.label != alone[text].label

    with ThreadPoolExecutor(1) as explainer, ThreadPoolExecutor(8) as people:
        explaining = explainer.submit(keep_explaining)
        results = list(people.map(ask, range(300)))
        stop.set()
        explaining.result()

    assert max(apart for apart, _ in results) < 1e-5
    assert not any(flipped for _, flipped in results)
    assert explained
    assert max(explained) < 1e-4


def test_a_hundred_kilobytes_are_cut_flagged_and_quick(engine: InProcessEngine) -> None:
    started = time.perf_counter()

    prediction = engine.predict("sentiment", {"statement": "It was fine, thank you. " * 4200})

    assert prediction.truncated
    assert time.perf_counter() - started < 5


CODES = sorted(path.parent.name for path in EMBEDDED.glob(f"*/{CARD}"))


@pytest.mark.parametrize("code", [pytest.param(code, marks=[pytest.mark.slow] * (code == "qa")) for code in CODES])
def test_the_card_reports_what_the_model_reaches_on_held_out_rows(
    data_folder: Path, base_folder: Path, code: str
) -> None:
    name = next(iter(RECIPES[code].aims))
    reported = read_card(EMBEDDED / code).details["evaluation"][name]
    rows = sample(RECIPES[code].tests[name].rows(data_folder), 200)
    model = asked_as(task(code), load_embedded(code, RECIPES[code].labels, base=base_folder))

    result = measure(model, rows)

    assert reported["rows"] >= 1000 or reported["rows"] == len(RECIPES[code].tests[name].rows(data_folder))
    key = "f1" if code == "qa" else "accuracy"
    # 200 rows have a standard error of at most 3.5 points; three of them are allowed.
    assert abs(result[key] - reported[key]) < 0.105


@pytest.mark.parametrize("code", CODES)
def test_what_was_reached_is_the_aim_or_is_said_to_be_below_it(code: str) -> None:
    details = read_card(EMBEDDED / code).details
    aims = RECIPES[code].aims
    key = "f1" if code == "qa" else "accuracy"

    assert details["aims"] == aims
    assert details["below_aim"] == [name for name, aim in aims.items() if details["evaluation"][name][key] < aim]


@pytest.mark.parametrize("code", CODES)
def test_the_card_names_its_data_by_public_source_hash_and_licence(data_folder: Path, code: str) -> None:
    card = read_card(EMBEDDED / code).details
    recipe = RECIPES[code]

    for described, part in [
        (card["training_data"], recipe.train),
        *((card["evaluation"][name], part) for name, part in recipe.tests.items()),
    ]:
        assert described["files"] == [
            {
                "source": file.source,
                "licence": file.licence,
                "file": Path(file.path).name,
                "sha256": file_sha256(data_folder / file.path),
            }
            for file in part.files
        ]
    assert card["delta"]["bytes"] == (EMBEDDED / code / DELTA).stat().st_size < 4_500_000
    assert card["command"] == f"dynahit model train {code} --data DIR --out DIR --seed {card['seed']}"


def test_models_of_one_process_share_tokenizer_and_embeddings(base_folder: Path) -> None:
    loaded = [load_embedded(code, RECIPES[code].labels, base=base_folder) for code in (*CODES, "sentiment")]

    assert len({id(one.tokenizer) for one in loaded}) == 1
    for name in ("word", "position", "token_type"):
        weights = [getattr(one.model.bert.embeddings, f"{name}_embeddings").weight for one in loaded]
        assert len({weight.data_ptr() for weight in weights}) == 1


@pytest.mark.slow
def test_four_tasks_add_at_most_350_megabytes(base_folder: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "def megabytes(field):\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024\n"
        "from inference.runtime import single_threaded_torch\n"
        "single_threaded_torch()\n"
        "from transformers import BertForSequenceClassification, BertForQuestionAnswering\n"
        "from inference.embedded import EMBEDDED, load_embedded, read_card\n"
        "before = megabytes('VmRSS')\n"
        "codes = (sys.argv[1:] * 4)[:4]\n"
        "models = [load_embedded(code, read_card(EMBEDDED / code).labels) for code in codes]\n"
        "print(megabytes('VmRSS') - before)\n"
    )

    done = subprocess.run([sys.executable, "-c", program, *CODES], capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr
    assert 150 < float(done.stdout) < 350


@pytest.mark.parametrize("changes", [
    {"head": "song"}, {"preprocessing": "shouting"}, {"head": "span"}, {"labels": []},
])  # fmt: skip
def test_a_card_that_asks_for_the_unknown_is_refused(damaged: Path, changes: dict[str, object]) -> None:
    change_card(damaged, **changes)

    with pytest.raises(FineTuningUnusable, match=r"head|preprocessing"):
        read_card(damaged)
