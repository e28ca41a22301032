"""Published files: whatever they are packed in, row by row with its line; broken ones are said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hits.errors import InvalidInput
from hits.imports.files import rows_of, sha256_of
from hits.imports.rows import InvalidRows


def written(path: Path, content: str) -> Path:
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_table_is_read_with_the_line_on_which_a_row_ends(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, '\ufeffid,text\n1,"two\nlines"\n2,🙂\n')

    assert list(rows_of(path)) == [(3, {"id": "1", "text": "two\nlines"}), (4, {"id": "2", "text": "🙂"})]


def test_tabs_divide_a_tsv(tmp_path: Path) -> None:
    assert list(rows_of(written(tmp_path / "a.tsv", "id\ttext\n1\ta, b\n"))) == [(2, {"id": "1", "text": "a, b"})]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_json_lines_skip_empty_ones(tmp_path: Path, name: str) -> None:
    assert list(rows_of(written(tmp_path / name, '{"a": 1}\n\n{"a": 2}\n'))) == [(1, {"a": 1}), (3, {"a": 2})]


def test_a_squad_file_is_read_by_question(tmp_path: Path) -> None:
    data = {"data": [{"paragraphs": [{"context": "C", "qas": [{"id": "1"}, {"id": "2"}]}]}]}

    found = list(rows_of(written(tmp_path / "a.json.gz", json.dumps(data))))

    assert found == [(1, {"context": "C", "id": "1"}), (2, {"context": "C", "id": "2"})]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", '{"a": 1}\nno json\n', "line 2: not JSON: 'no json'"),
        ("a.jsonl", "[1]\n", "line 1: not an object"),
        ("a.jsonl", "[" * 100_000 + "\n", "line 1"),
        ("a.csv", "id,text\n1,2,3\n", "line 2"),
        ("a.csv", "id,text\n1\n", "line 2"),
        ("a.csv", 'id,text\n1,"open\n', "not a row of a table"),
    ],
)
def test_a_row_that_is_none_is_said_with_its_line(tmp_path: Path, name: str, content: str, said: str) -> None:
    with pytest.raises(InvalidRows, match=said):
        list(rows_of(written(tmp_path / name, content)))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("a.json", "{}", "not of the SQuAD form"), ("a.zip", "", "no known form"), ("a.csv.gz", "", "can't be read")],
)
def test_a_file_of_another_form_is_said(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"no gzip" if name.endswith(".gz") else content.encode())

    with pytest.raises(InvalidInput, match=said):
        list(rows_of(path))


def test_a_file_that_is_not_there_or_no_text_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be read"):
        list(rows_of(tmp_path / "missing.csv"))
    with pytest.raises(InvalidInput, match="can't be read"):
        sha256_of(tmp_path / "missing.csv")
    (tmp_path / "latin.csv").write_bytes("id,text\n1,Kühl\n".encode("latin-1"))
    with pytest.raises(InvalidInput, match="0xfc"):
        list(rows_of(tmp_path / "latin.csv"))
