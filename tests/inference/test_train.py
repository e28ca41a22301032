"""Training: data read right, one seed gives one file, what is frozen stays, the card is of the merged model."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from rich.console import Console
from rich.progress import Progress

from inference.classify import Classifier
from inference.embedded import DELTA, load_embedded
from inference.low_rank import read_delta
from inference.tiny import LABELS, tiny_model
from inference.train import (
    RECIPES,
    DataFile,
    Recipe,
    Row,
    _batches,
    average,
    fine_tune,
    main,
    measure,
    read_rows,
    train,
)

torch = pytest.importorskip("torch")


def votes(**counts: int) -> dict[str, list[str]]:
    return {label: ["w"] * counts.get(label, 0) for label in (*LABELS, "mixed")}


ROWS: list[dict[str, object]] = [
    {"sentence": "the food was good", "gold_label": "positive", "label_distribution": votes(positive=5)},
    {"sentence": "the room was bad", "gold_label": "negative", "label_distribution": votes(negative=4)},
    {"sentence": "it was\u2028the room", "gold_label": "neutral", "label_distribution": votes(neutral=4)},
]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_rows_carry_text_label_and_votes(tmp_path: Path, name: str) -> None:
    split: dict[str, object] = {
        "sentence": "good and bad",
        "gold_label": "positive",
        "label_distribution": votes(positive=3, neutral=1, mixed=1),
    }

    rows = read_rows(write(tmp_path / name, [*ROWS, split]), LABELS)

    assert [row.label for row in rows] == ["positive", "negative", "neutral", "positive"]
    assert rows[2].text == "it was\u2028the room"
    assert rows[3] == Row("good and bad", "positive", (0.0, 0.75, 0.25))


def test_an_unknown_label_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [*ROWS, ROWS[0] | {"gold_label": "mixed"}])

    with pytest.raises(ValueError, match=r"rows\.jsonl:4: gold_label is 'mixed'"):
        read_rows(path, LABELS)


def test_every_row_is_in_exactly_one_batch() -> None:
    batches = list(_batches([index % 7 for index in range(100)], 8, Random(1)))

    assert sorted(index for batch in batches for index in batch) == list(range(100))
    assert max(len(batch) for batch in batches) == 8


def test_the_average_is_the_mean_of_the_members() -> None:
    assert average([{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 6.0])}])["w"].tolist() == [2.0, 4.0]


def test_fine_tuning_learns_the_rows_and_leaves_the_embeddings() -> None:
    loaded = tiny_model(spread=0.2)
    before = {name: value.clone() for name, value in loaded.model.state_dict().items()}
    rows = [
        Row("good", "positive", (0, 1, 0)),
        Row("bad", "negative", (1, 0, 0)),
        Row("room", "neutral", (0, 0, 1)),
    ] * 8
    recipe = replace(RECIPES["sentiment"], epochs=40, batch_size=8, body_rate=3e-3, head_rate=3e-3)

    with Progress(disable=True) as progress:
        after = fine_tune(recipe, rows, loaded.tokenizer, loaded.model, seed=1, progress=progress)

    assert measure(Classifier(loaded, LABELS), rows)["accuracy"] == 1
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        assert torch.equal(after[f"bert.embeddings.{name}.weight"], before[f"bert.embeddings.{name}.weight"])
    assert not torch.equal(after["classifier.weight"], before["classifier.weight"])
    assert not loaded.model.training


def test_accuracy_and_confusion_count_every_row() -> None:
    classifier = Classifier(tiny_model(), LABELS)
    rows = [Row(text, label, (0, 0, 0)) for text in ("good", "bad", "the room") for label in LABELS]

    result = measure(classifier, rows)

    assert result["rows"] == 9
    assert result["accuracy"] == pytest.approx(1 / 3, abs=1e-4)
    assert {right: sum(answers.values()) for right, answers in result["confusion"].items()} == dict.fromkeys(LABELS, 3)


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    write(tmp_path / "data" / "train.jsonl", ROWS * 4)
    write(tmp_path / "data" / "test.jsonl.gz", list(ROWS))
    return replace(
        RECIPES["sentiment"],
        train=DataFile("train.jsonl", "made up", "none"),
        tests={"test": DataFile("test.jsonl.gz", "made up", "none")},
        members=2,
        epochs=1,
        batch_size=4,
    )


@pytest.mark.model
@pytest.mark.slow
def test_the_same_seed_gives_the_same_file_and_the_card_describes_what_is_loaded(
    tmp_path: Path, recipe: Recipe, base_folder: Path
) -> None:
    quiet = Console(quiet=True)

    cards = [
        train(recipe, tmp_path / "data", tmp_path / name, seed=seed, base=base_folder, console=quiet)
        for name, seed in (("one", 1), ("same", 1), ("other", 2))
    ]

    assert cards[0]["delta"] == cards[1]["delta"]
    assert cards[0]["delta"]["sha256"] != cards[2]["delta"]["sha256"]
    assert not any("embeddings.weight" in key for key in read_delta(tmp_path / "one" / DELTA))
    loaded = load_embedded("sentiment", LABELS, base=base_folder, folder=tmp_path / "one")
    assert loaded.revision == cards[0]["revision"]
    result = measure(Classifier(loaded, LABELS), read_rows(tmp_path / "data" / "test.jsonl.gz", LABELS))
    assert result.items() <= cards[0]["evaluation"]["test"].items()
    assert cards[0]["training_data"]["rows"] == 12


def test_a_missing_data_folder_is_named(tmp_path: Path, base_folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="round01-yelp-dev"):
        main(["sentiment", "--data", str(tmp_path), "--out", str(tmp_path / "out"), "--base", str(base_folder)])
