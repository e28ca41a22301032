"""Base files: columns and labels are found by name, and what can't be used is named with file, line and next step."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hits.errors import InvalidInput
from hits.tasks import task
from inference.training.base_files import BaseFile, read_base
from inference.training.corpora import Asked, Row


def written(folder: Path, name: str, text: str) -> BaseFile:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return BaseFile(path)


def test_columns_and_labels_of_published_tables_are_found(tmp_path: Path) -> None:
    reviews = read_base(
        task("sentiment"), written(tmp_path, "a.tsv", 'Sentiment\tText\nNegative\tcold "soup\nPOS\tgood\n')
    )
    pairs = read_base(task("nli"), written(tmp_path, "b.csv.gz", "premise,hypothesis,label\np,h,entails\np,i,-\n"))

    assert reviews.train == [
        Row(('cold "soup',), "negative", (1.0, 0.0, 0.0), 'cold "soup'),
        Row(("good",), "positive", (0.0, 1.0, 0.0), "good"),
    ]
    assert [(one.texts, one.label, one.group) for one in pairs.train if isinstance(one, Row)] == [
        (("p", "h"), "entailment", "p")
    ]
    assert pairs.without_label == 1


def test_rows_keep_their_votes_and_their_split(tmp_path: Path) -> None:
    rows = [
        {"sentence": "a", "label": "positive", "label_distribution": {"positive": ["w1", "w2"], "negative": ["w3"]}},
        {"sentence": "b", "label": "positive", "label_distribution": {"negative": 3}, "split": "dev"},
        {"sentence": "c", "label": "neutral", "split": "test"},
        {"sentence": "d", "label": "neutral", "split": "withheld"},
    ]
    found = read_base(task("sentiment"), written(tmp_path, "a.jsonl", "\n".join(json.dumps(one) for one in rows)))

    assert isinstance(found.train[0], Row)
    assert found.train[0].votes == pytest.approx((1 / 3, 2 / 3, 0))
    assert isinstance(found.dev[0], Row)
    # The published label stands where the votes don't support it.
    assert found.dev[0].votes == (0, 1, 0)
    assert (len(found.train), len(found.dev), len(found.test)) == (1, 1, 1)


def test_questions_are_read_in_three_forms(tmp_path: Path) -> None:
    squad = {"data": [{"title": "t", "paragraphs": [{"context": "It was cold.", "qas": [
        {"id": "1", "question": "How?", "answers": [{"text": "cold", "answer_start": 7}]}]}]}]}  # fmt: skip
    listed = {"context": "It was cold.", "question": "How?", "answers": {"text": ["cold"], "answer_start": [7]}}
    ours = {"passage": "It was cold.", "question": "How?", "answer": "cold", "answer_start": 7, "label": "right"}
    spec = task("qa")

    found = [
        read_base(spec, written(tmp_path, "a.json", json.dumps(squad))),
        read_base(spec, written(tmp_path, "b.jsonl", json.dumps(listed))),
        read_base(spec, written(tmp_path, "c.jsonl", json.dumps(ours) + "\n" + json.dumps(ours | {"label": "wrong"}))),
    ]

    for one in found:
        assert isinstance(one.train[0], Asked)
        assert one.train[0].answers[0].text == "cold"
        assert len(one.train) == 1


def test_what_columns_and_labels_mean_can_be_said(tmp_path: Path) -> None:
    file = written(tmp_path, "a.csv", "words,y\ngood,1\nbad,0\n")
    said = BaseFile(
        file.path, columns=(("statement", "words"), ("label", "y")), labels=(("1", "positive"), ("0", "negative"))
    )

    assert [one.label for one in read_base(task("sentiment"), said).train if isinstance(one, Row)] == [
        "positive",
        "negative",
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "words,label\ngood,positive\n", "has no column 'statement'; its columns are words, label"),
        ("a.csv", "text,label\ngood,5 stars\n", r"a.csv:2: the label '5 stars' .* --base-label 5 stars=LABEL"),
        ("a.csv", "text,label\n", "holds no labelled row"),
        ("a.txt", "good", "of no known form"),
        ("a.jsonl", "[1]", "a.jsonl:1 is no object"),
        ("a.jsonl", "{", "can't be used"),
    ],
)
def test_what_can_not_be_used_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_base(task("sentiment"), written(tmp_path, name, text))


def test_an_answer_that_does_not_stand_in_the_passage_and_a_missing_file_are_named(tmp_path: Path) -> None:
    row = {"passage": "It was cold.", "question": "How?", "answer": "warm", "answer_start": 7}
    with pytest.raises(InvalidInput, match="'warm' does not stand at 7"):
        read_base(task("qa"), written(tmp_path, "a.jsonl", json.dumps(row)))
    with pytest.raises(InvalidInput, match="can't be read"):
        read_base(task("qa"), BaseFile(tmp_path / "none.csv"))
