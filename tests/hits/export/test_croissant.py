"""Croissant metadata: a file object for each file, a record set for each Parquet file, a field for each column."""

from __future__ import annotations

from hits.export.croissant import ExportedFile, croissant
from hits.export.rows import columns
from hits.tasks import task
from tests import factories as make


def test_files_and_columns_are_all_described() -> None:
    described = columns(task("qa"), with_attributions=True)
    files = [ExportedFile("data/train.parquet", 10, "a" * 64), ExportedFile("jsonl/train.jsonl", 20, "b" * 64)]

    found = croissant(
        name="qa-rounds-1",
        description="Questions.",
        version="1.1.0",
        identity="0123",
        licences=["cc-by-4.0"],
        published=make.NOON,
        files=files,
        columns=described,
    )

    assert [(one["contentUrl"], one["sha256"][0]) for one in found["distribution"]] == [
        ("data/train.parquet", "a"),
        ("jsonl/train.jsonl", "b"),
    ]
    (records,) = found["recordSet"]
    fields = {field["@id"]: field for field in records["field"]}
    assert set(fields) == {f"train/{name}" for name in described}
    assert fields["train/answer_start"]["dataType"] == "sc:Integer"
    assert fields["train/votes"]["repeated"]
    parts = {part["@id"]: part for part in fields["train/model_answer"]["subField"]}
    assert set(parts) == {f"train/model_answer/{name}" for name in ("start", "end", "text")}
    assert found["datePublished"] == "2026-11-15"
