"""Parquet and JSON lines hold the same rows, whatever characters and gaps are in them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hits.export import files
from hits.export.files import SplitFiles, sha256_of_file
from hits.export.rows import columns
from hits.states import Split
from hits.tasks import task
from tests.hits.export.published import published


def test_both_forms_hold_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "GROUP", 3)
    described = columns(task("sentiment"), with_attributions=True)
    texts = ["plain", "two\nlines", "U+2028 \u2028 and \x85", "🙂 \u05e9", 'quotes " and \\']
    with SplitFiles(tmp_path, described) as opened:
        for number, text in enumerate(texts):
            split = Split.TEST if number == 4 else Split.TRAIN
            opened.add(published(public_id=f"e{number}", answer={"statement": text}, split=split))

    lines = (tmp_path / "jsonl" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4
    assert [json.loads(line)["statement"] for line in lines] == texts[:4]
    assert pq.read_table(tmp_path / "data" / "train.parquet").to_pylist() == [json.loads(line) for line in lines]
    assert pq.read_table(tmp_path / "data" / "test.parquet").num_rows == 1
    assert pq.ParquetFile(tmp_path / "data" / "train.parquet").num_row_groups == 2
    assert not (tmp_path / "data" / "dev.parquet").exists()


def test_a_hash_is_the_one_that_sha256sum_prints(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")

    assert sha256_of_file(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
