"""Tables and the ledger as downloads, written to a file first: nobody who reads slowly keeps a transaction open."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from flask import Response

from app.extensions import db
from hits.errors import NotFound
from payments.tables import Table, write_csv, write_parquet, write_xlsx

#: By kind: what a browser is told that the file is.
_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "parquet": "application/vnd.apache.parquet",
}


def download(table: Table, kind: str, *, byte_order_mark: bool = False) -> Response:
    """Return a table as a file of a kind. Raises NotFound for another kind, TableTooLong."""
    if kind not in _TYPES:
        raise NotFound(f"There are no files of the kind {kind!r}. The kinds are {', '.join(_TYPES)}.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{table.name}.{kind}")
        if kind == "csv":
            write_csv(table, path, byte_order_mark=byte_order_mark)
        else:
            (write_xlsx if kind == "xlsx" else write_parquet)(table, path)
        return _sent(path, _TYPES[kind])


def text_download(lines: Iterator[str], name: str) -> Response:
    """Return lines of text as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(lines)
        return _sent(path, "text/plain; charset=utf-8")


def _sent(path: Path, mimetype: str) -> Response:
    """Return a file whose name is gone when it is sent, so that nothing is left behind whatever happens."""
    db.session.rollback()
    file = path.open("rb")
    response = Response(_pieces(file), content_type=mimetype)
    response.call_on_close(file.close)
    response.content_length = path.stat().st_size
    response.headers.set("Content-Disposition", "attachment", filename=path.name)
    return response


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(65_536):
            yield piece
