"""Writes the examples of each split as Parquet and as JSON lines, the same rows in the same order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from hits.export.rows import NUMBER, TEXT, WHOLE, YES_NO, Column, ExportedExample, Shape

#: Rows that are held until they are written together; a row group of the Parquet file.
GROUP: Final = 2000
#: Characters that some readers take for the end of a line; in JSON they may as well be written so.
_LINE_ENDS: Final = {ord(one): f"\\u{ord(one):04x}" for one in "\x85\u2028\u2029"}
_TYPES: Final = {TEXT: pa.string(), WHOLE: pa.int64(), NUMBER: pa.float64(), YES_NO: pa.bool_()}


def arrow_type(shape: Shape) -> pa.DataType:
    """Return a column's type in Parquet."""
    if isinstance(shape, dict):
        return pa.struct([(name, arrow_type(part)) for name, part in shape.items()])
    if isinstance(shape, list):
        return pa.list_(arrow_type(shape[0]))
    return _TYPES[shape]


class SplitFiles:
    """The files of all splits below a folder, open for writing; a split without examples gets none."""

    def __init__(self, folder: Path, columns: Mapping[str, Column]) -> None:
        self._folder = folder
        for name in ("data", "jsonl"):
            (folder / name).mkdir()
        self._columns = columns
        self._schema = pa.schema([(name, arrow_type(column.shape)) for name, column in columns.items()])
        self._files: dict[str, _Files] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for files in self._files.values():
            files.close()

    def add(self, example: ExportedExample) -> None:
        """Write an example to the files of its split."""
        files = self._files.get(example.split)
        if files is None:
            files = self._files[example.split] = _Files(self._folder, example.split, self._schema)
        files.add(example.record(self._columns))


class _Files:
    def __init__(self, folder: Path, split: str, schema: pa.Schema) -> None:
        self._lines = (folder / "jsonl" / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n")
        self._parquet = pq.ParquetWriter(folder / "data" / f"{split}.parquet", schema, compression="zstd")
        self._schema = schema
        self._held: list[dict[str, Any]] = []

    def add(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False, allow_nan=False)
        self._lines.write(line.translate(_LINE_ENDS) + "\n")
        self._held.append(record)
        if len(self._held) >= GROUP:
            self._write()

    def close(self) -> None:
        self._write()
        self._parquet.close()
        self._lines.close()

    def _write(self) -> None:
        if self._held:
            self._parquet.write_table(pa.Table.from_pylist(self._held, schema=self._schema))
            self._held.clear()


def sha256_of_file(path: Path) -> str:
    """Return the hash of a file, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
