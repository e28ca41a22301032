"""`dynahit model evaluate` and `train`: what is measured and shown, and which files are wanted when they are absent."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.cli import dynahit
from hits.predictions import AnswerSpan, Attribution, Prediction
from inference.errors import NothingToRead
from inference.target import ModelCard, ModelInput

LABELS = ("negative", "positive", "neutral")


class AlwaysFirst:
    """A model that says the first label, or the first word of the passage."""

    model_id, revision = "first", "r1"
    card = ModelCard("first", "r1", LABELS)

    def predict_all(self, inputs: Sequence[ModelInput]) -> list[Prediction]:
        return [Prediction("first", "r1", LABELS[0], {}, 0.0, span=AnswerSpan(0, 3, item[0][:3])) for item in inputs]

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        raise NotImplementedError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(dynahit, ["model", *arguments])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "published" / "sentiment_dynasent"
    folder.mkdir(parents=True)
    votes = {label: ["w"] for label in LABELS}
    rows = [{"sentence": "so so", "gold_label": label, "label_distribution": votes} for label in LABELS[:2]]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "dynasent-v1.1-round02-dynabench-dev.jsonl").write_text(content)
    (folder / "dynasent-v1.1-round01-yelp-test.jsonl.gz").write_bytes(gzip.compress(content.encode() * 5))
    return folder.parent


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answer every reference with AlwaysFirst; the list is what was asked for."""
    references: list[str] = []

    def load(spec: object, reference: str, **more: object) -> AlwaysFirst:
        references.append(reference)
        return AlwaysFirst()

    monkeypatch.setattr("inference.loading.load_model", load)
    return references


def test_the_tasks_own_model_is_measured_on_all_held_out_rows(data: Path, asked: list[str]) -> None:
    result = run("evaluate", "sentiment", "--data", str(data), "--json")

    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["task"], printed["model"], printed["revision"]) == ("sentiment", "first", "r1")
    assert printed["results"]["round 1 test"]["rows"] == 10
    assert printed["results"]["round 1 test"]["accuracy"] == 0.5
    assert printed["results"]["round 2 dev"]["confusion"]["positive"] == {"negative": 1, "positive": 0, "neutral": 0}
    assert asked == ["embedded:sentiment"]


def test_another_model_on_a_few_rows_is_shown_in_tables(data: Path, asked: list[str]) -> None:
    result = run("evaluate", "sentiment", "--data", str(data), "--model", "dir:/somewhere", "--rows", "4")

    assert result.exit_code == 0, result.output
    assert "first, revision r1" in result.stdout
    assert "50.0%" in result.stdout
    assert "answered neutral" in result.stdout
    assert asked == ["dir:/somewhere"]


def test_rows_of_which_no_word_is_read_have_a_column_of_their_own(
    data: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind(self: AlwaysFirst, inputs: Sequence[ModelInput]) -> list[Prediction]:
        raise NothingToRead

    monkeypatch.setattr(AlwaysFirst, "predict_all", blind)

    result = run("evaluate", "sentiment", "--data", str(data), "--rows", "4")

    assert result.exit_code == 0, result.output
    assert "no word read" in result.stdout
    assert "0.0%" in result.stdout


def test_a_readers_table_has_exact_match_and_f1(tmp_path: Path, asked: list[str]) -> None:
    passage = {"context": "May was", "qas": [{"id": "1", "question": "When?", "answers": [{"text": "May"}]}]}
    articles = [{"title": f"title {number}", "paragraphs": [passage]} for number in range(40)]
    folder = tmp_path / "qa_squad"
    folder.mkdir()
    content = gzip.compress(json.dumps({"data": articles}).encode())
    (folder / "squad_v1.1_dev_from_explorer.json.gz").write_bytes(content)

    result = run("evaluate", "qa", "--data", str(tmp_path))

    assert result.exit_code == 0, result.output
    assert "exact match" in result.stdout
    assert "100.0%" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (("evaluate", "sentiment"), ["round01-yelp-test.jsonl.gz", "round02-dynabench-dev.jsonl"]),
        (("train", "nli", "--out", "out"), ["mnli_dev_matched_and_mismatched.csv.gz", "snli_dev.csv.gz"]),
    ],
)
def test_absent_files_are_listed_with_their_source(
    tmp_path: Path, arguments: tuple[str, ...], absent: list[str]
) -> None:
    result = run(*arguments, "--data", str(tmp_path))

    assert result.exit_code == 1
    assert "files are not in" in result.stderr
    assert all(name in result.stderr for name in absent)
    assert "github.com/" in result.stderr
    assert not (tmp_path / "out").exists()


def test_training_shows_what_was_reached_and_where_it_was_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "sentiment_dynasent" / "dynasent-v1.1-round01-yelp-dev.jsonl.gz").write_bytes(b"")
    reached = {"rows": 2, "accuracy": 0.5, "macro_f1": 0.25, "confusion": {"negative": {"negative": 2}}}
    seeds: list[int] = []

    def train(recipe: object, data: Path, out: Path, *, seed: int, **more: object) -> dict[str, object]:
        seeds.append(seed)
        return {"evaluation": {"round 1 test": reached}, "delta": {"bytes": 2_850_000}, "revision": "abc"}

    monkeypatch.setattr("inference.train.train", train)

    result = run("train", "sentiment", "--data", str(data), "--out", str(tmp_path / "out"), "--seed", "7")

    assert result.exit_code == 0, result.output
    assert seeds == [7]
    assert "50.0%" in result.stdout
    assert "2.9 MB, revision abc" in result.stdout.replace("\n", "")


def test_an_unknown_task_is_refused_with_the_list() -> None:
    result = run("evaluate", "parsing", "--data", ".")

    assert result.exit_code == 2
    assert "'hate', 'nli', 'qa', 'sentiment'" in result.output
