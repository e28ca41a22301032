"""Reads the rows of published files one by one, whatever they are packed in; each with its line."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from hits.errors import Finding, InvalidInput
from hits.imports.rows import InvalidRows


def rows_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line, row) of a CSV, TSV, JSON lines or SQuAD JSON file, also gzipped.

    Of a SQuAD file the line is the number of the question. Raises InvalidInput for a file that can't be read, and
    InvalidRows at a row that is none.
    """
    name = path.name.removesuffix(".gz")
    try:
        with _opened(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            if name.endswith((".csv", ".tsv")):
                yield from _table(path, text, "\t" if name.endswith(".tsv") else ",")
            elif name.endswith(".jsonl"):
                yield from _lines(path, text)
            elif name.endswith(".json"):
                yield from _questions(path, text)
            else:
                raise InvalidInput(
                    f"{path} is of no known form. Name files that end in .csv, .tsv, .jsonl, .json or .gz."
                )
    except (OSError, EOFError) as error:
        raise InvalidInput(f"{path} can't be read: {getattr(error, 'strerror', None) or error}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: byte {error.object[error.start]:#04x}.") from error


def sha256_of(path: Path) -> str:
    """Return the hash of a file. Raises InvalidInput for one that can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror or error}.") from error


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.name.endswith(".gz") else path.open("rb")


def _table(path: Path, text: io.TextIOWrapper, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(text, delimiter=delimiter, strict=True)
    try:
        for row in reader:
            # The row ends here; a field may hold line ends.
            if None in row or None in row.values():
                raise _wrong(
                    path, reader.line_num, f"{len([v for v in row.values() if v])} values, not as many as the head"
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise _wrong(path, reader.line_num, f"not a row of a table: {error}") from error


def _lines(path: Path, text: io.TextIOWrapper) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise _wrong(path, number, f"not JSON: {line.strip()[:60]!r}") from error
        except RecursionError as error:
            raise _wrong(path, number, "not a row: nested too deeply") from error
        if not isinstance(row, dict):
            raise _wrong(path, number, f"not an object: {line.strip()[:60]!r}")
        yield number, row


def _questions(path: Path, text: io.TextIOWrapper) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        data = json.load(text)["data"]
        questions = [
            {"context": paragraph["context"], **question}
            for article in data
            for paragraph in article["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not of the SQuAD form: data, paragraphs, qas.") from error
    yield from enumerate(questions, start=1)


def _wrong(path: Path, line: int, reason: str) -> InvalidRows:
    return InvalidRows([(path.name, Finding(line, reason))], 1)
