"""Tables as files: CSV, XLSX and Parquet, row by row, so that a long table takes no more memory than a short one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Final

from payments.errors import TableTooLong

Cell = str | int | Decimal | datetime | None

#: A spreadsheet runs a cell that begins with one of these as a formula.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
#: What says that a CSV is UTF-8, for a spreadsheet that would guess something else.
BYTE_ORDER_MARK: Final = "\ufeff"
#: What one sheet of an XLSX file holds.
XLSX_ROWS: Final = 1_048_576
_XLSX_CHARACTERS: Final = 32_767
_BATCH_ROWS: Final = 5_000


class ColumnKind(StrEnum):
    """What the cells of a column are."""

    TEXT = "text"
    COUNT = "count"
    MONEY = "money"
    MOMENT = "moment"


@dataclass(frozen=True)
class Column:
    """A column's name and what it holds."""

    name: str
    kind: ColumnKind = ColumnKind.TEXT


@dataclass(frozen=True)
class Table:
    """A table whose rows are read once, in order. There is no row of totals, so that a sum over a column is right."""

    name: str
    columns: tuple[Column, ...]
    rows: Iterable[Sequence[Cell]]


def neutralised(text: str) -> str:
    """Return a text cell that no spreadsheet runs as a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def csv_lines(table: Table, *, byte_order_mark: bool = False) -> Iterator[str]:
    """Yield the table as CSV: numbers plain, times in UTC, text neutralised, lines ending with CR LF."""
    if byte_order_mark:
        yield BYTE_ORDER_MARK
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow([_csv_cell(value) for value in row])
        if out.tell() > 32_768:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()


def _csv_cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return neutralised(value)
    if isinstance(value, datetime):
        return _moment(value)
    return str(value)


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def write_csv(table: Table, path: Path, *, byte_order_mark: bool = False) -> None:
    """Write the table to a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(csv_lines(table, byte_order_mark=byte_order_mark))


def write_xlsx(table: Table, path: Path) -> None:
    """Write the table to an XLSX file: numbers are numbers, text is never a formula or a link.

    Raises TableTooLong for more rows than a sheet holds, or a text longer than a cell holds.
    """
    import xlsxwriter

    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "in_memory": False}
    # A file that can't be written is known before the first row.
    with path.open("wb") as file, xlsxwriter.Workbook(file, options) as book:
        sheet = book.add_worksheet(table.name[:31])
        bold = book.add_format({"bold": True})
        formats = {
            ColumnKind.MONEY: book.add_format({"num_format": "#,##0.00"}),
            ColumnKind.COUNT: book.add_format({"num_format": "0"}),
            ColumnKind.MOMENT: book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
            ColumnKind.TEXT: None,
        }
        sheet.freeze_panes(1, 0)
        for at, column in enumerate(table.columns):
            sheet.set_column(at, at, 36 if column.kind is ColumnKind.TEXT else 20)
            sheet.write_string(0, at, column.name, bold)
        for number, row in enumerate(table.rows, start=1):
            if number >= XLSX_ROWS:
                raise TableTooLong(table.name, f"more than the {XLSX_ROWS - 1:,} rows that a sheet of XLSX holds")
            for at, (column, value) in enumerate(zip(table.columns, row, strict=True)):
                _write_cell(sheet, number, at, value, formats[column.kind], table.name)


def _write_cell(sheet: Any, row: int, at: int, value: Cell, format_: Any, name: str) -> None:
    if value is None:
        return
    if isinstance(value, str):
        if len(value) > _XLSX_CHARACTERS:
            raise TableTooLong(name, f"a text of {len(value):,} characters, and a cell of XLSX holds 32,767")
        sheet.write_string(row, at, value)
    elif isinstance(value, datetime):
        # A spreadsheet knows no time zones; the head of the column says that it is UTC.
        sheet.write_datetime(row, at, value.astimezone(UTC).replace(tzinfo=None), format_)
    else:
        sheet.write_number(row, at, value, format_)


def write_parquet(table: Table, path: Path) -> None:
    """Write the table to a Parquet file: money as decimal128, times as timestamps in UTC."""
    import pyarrow as pa
    from pyarrow import parquet

    types = {
        ColumnKind.TEXT: pa.string(),
        ColumnKind.COUNT: pa.int64(),
        ColumnKind.MONEY: pa.decimal128(18, 2),
        ColumnKind.MOMENT: pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([(column.name, types[column.kind]) for column in table.columns])
    rows = iter(table.rows)
    with parquet.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, _BATCH_ROWS)):
            arrays = [
                pa.array(cells, type=kind) for cells, kind in zip(zip(*batch, strict=True), schema.types, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
