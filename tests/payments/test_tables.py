"""Tables as files: what is read back is what was written, and nothing in them runs."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape
from pyarrow import parquet

from hits.money import from_cents
from payments import tables
from payments.errors import TableTooLong
from payments.tables import (
    Cell,
    Column,
    ColumnKind,
    Table,
    csv_lines,
    neutralised,
    write_csv,
    write_parquet,
    write_xlsx,
)

COLUMNS = (
    Column("what"),
    Column("count", ColumnKind.COUNT),
    Column("amount", ColumnKind.MONEY),
    Column("at", ColumnKind.MOMENT),
)
AT = datetime(2026, 11, 15, 12, 0, 1, 250_000, tzinfo=UTC)
HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", '=HYPERLINK("http://x")', "=cmd|' /C calc'!A0"]
FOREIGN = "Größe, 𝄞 und 🤦🏽‍♀️"


def table(*rows: Sequence[Cell]) -> Table:
    return Table("a table", COLUMNS, rows)


def text_of(found: Table, **options: bool) -> str:
    return "".join(csv_lines(found, **options))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_cell_that_would_run_as_a_formula_is_made_inert(text: str) -> None:
    assert neutralised(text) == "'" + text


def test_the_csv_keeps_numbers_numeric_times_in_utc_and_text_inert() -> None:
    [head, row, empty] = list(
        csv.reader(
            io.StringIO(text_of(table(("=1", 3, Decimal("-0.30"), AT), (FOREIGN, None, None, None))), newline="")
        )
    )

    assert head == ["what", "count", "amount", "at"]
    assert row == ["'=1", "3", "-0.30", "2026-11-15T12:00:01.250000Z"]
    assert empty == [FOREIGN, "", "", ""]


def test_a_csv_has_a_byte_order_mark_only_when_it_is_asked_for(tmp_path: Path) -> None:
    write_csv(table(), tmp_path / "plain.csv")
    write_csv(table(), tmp_path / "marked.csv", byte_order_mark=True)

    assert (tmp_path / "plain.csv").read_bytes() == b"what,count,amount,at\r\n"
    assert (tmp_path / "marked.csv").read_bytes() == b"\xef\xbb\xbfwhat,count,amount,at\r\n"


cells = st.text(max_size=20)
money = st.integers(-10_000_000, 10_000_000).map(from_cents)


@settings(max_examples=50)
@given(what=cells, amount=money, count=st.integers(0, 10**6))
def test_whatever_is_in_it_the_csv_reads_back_the_same_and_no_text_starts_a_formula(
    what: str, amount: Decimal, count: int
) -> None:
    _, row = list(csv.reader(io.StringIO(text_of(table((what, count, amount, AT))), newline="")))

    assert row[0] == neutralised(what)
    assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))
    assert (int(row[1]), Decimal(row[2])) == (count, amount)


def test_a_long_csv_comes_in_parts_and_no_row_waits_for_the_last(tmp_path: Path) -> None:
    read = []

    def rows() -> Iterator[Sequence[Cell]]:
        for number in range(3000):
            read.append(number)
            yield "a text", number, Decimal("0.30"), AT

    parts = csv_lines(Table("long", COLUMNS, rows()))
    next(parts)

    assert 0 < len(read) < 1000
    assert sum(part.count("\n") for part in parts) + len(read) > 3000


def test_the_xlsx_reads_back_with_numbers_as_numbers_and_no_formula_in_it(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"

    write_xlsx(table(*((text, 3, Decimal("1234.56"), AT) for text in (*HOSTILE, FOREIGN, "http://x.org"))), path)

    sheet = openpyxl.load_workbook(path).worksheets[0]
    rows = list(sheet.iter_rows(min_row=2))
    assert [cell.value for cell in sheet[1]] == ["what", "count", "amount", "at"]
    assert [unescape(row[0].value) for row in rows] == [*HOSTILE, FOREIGN, "http://x.org"]
    assert {cell.data_type for row in rows for cell in row} == {"s", "n", "d"}
    assert all(cell.hyperlink is None for row in rows for cell in row)
    assert (rows[0][1].value, rows[0][2].value) == (3, 1234.56)
    assert rows[0][3].value == AT.replace(tzinfo=None, microsecond=250_000)


def test_what_no_sheet_holds_is_refused_with_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TableTooLong, match=r"a text of 32,768 characters.*CSV or Parquet"):
        write_xlsx(table(("x" * 32_768, 1, Decimal(1), AT)), tmp_path / "long.xlsx")
    monkeypatch.setattr(tables, "XLSX_ROWS", 3)
    write_xlsx(table(*[("x", 1, Decimal(1), AT)] * 2), tmp_path / "full.xlsx")
    with pytest.raises(TableTooLong, match="more than the 2 rows"):
        write_xlsx(table(*[("x", 1, Decimal(1), AT)] * 3), tmp_path / "over.xlsx")


def test_the_parquet_file_keeps_cents_exact_and_times_in_utc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_BATCH_ROWS", 2)
    rows = [(FOREIGN, 3, Decimal("9999999999999999.99"), AT), ("=1", None, Decimal("-0.01"), None), ("", 0, None, AT)]

    write_parquet(table(*rows), tmp_path / "table.parquet")

    found = parquet.read_table(tmp_path / "table.parquet")
    assert [tuple(row.values()) for row in found.to_pylist()] == rows
    assert [str(kind) for kind in found.schema.types] == [
        "string",
        "int64",
        "decimal128(18, 2)",
        "timestamp[us, tz=UTC]",
    ]


def test_a_table_without_rows_is_a_sound_file_of_each_kind(tmp_path: Path) -> None:
    write_xlsx(table(), tmp_path / "empty.xlsx")
    write_parquet(table(), tmp_path / "empty.parquet")

    assert openpyxl.load_workbook(tmp_path / "empty.xlsx").worksheets[0].max_row == 1
    assert parquet.read_table(tmp_path / "empty.parquet").num_rows == 0


@pytest.mark.slow
@pytest.mark.parametrize("byte_order_mark", [True, False])
def test_libreoffice_opens_the_csv_with_formulas_inert_and_letters_right(tmp_path: Path, byte_order_mark: bool) -> None:
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        pytest.skip("LibreOffice is not installed: apt-get install libreoffice-calc")
    path = tmp_path / "table.csv"
    write_csv(
        table(*((text, 3, Decimal("0.30"), AT) for text in (*HOSTILE, FOREIGN))), path, byte_order_mark=byte_order_mark
    )

    subprocess.run(
        [
            office,
            f"-env:UserInstallation=file://{tmp_path / 'profile'}",
            "--headless",
            # Field separator, quote, UTF-8, from row 1; detect numbers as a person's double click does.
            "--infilter=CSV:44,34,76,1,,0,false,true",
            "--convert-to",
            "xlsx",
            "--outdir",
            str(tmp_path / "out"),
            str(path),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )

    rows = list(openpyxl.load_workbook(tmp_path / "out" / "table.xlsx").worksheets[0].iter_rows(min_row=2))
    assert all(cell.data_type != "f" for row in rows for cell in row)
    assert [row[0].value for row in rows][-1] == FOREIGN
    # LibreOffice knows one kind of line break.
    assert [str(row[0].value).lstrip("'") for row in rows][:-1] == [text.replace("\r", "\n") for text in HOSTILE]
    assert all(row[2].data_type == "n" for row in rows)
