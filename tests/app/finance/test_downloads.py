"""Downloads: whole, named, and without a transaction or a file that stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from app.extensions import db
from app.finance.downloads import download, text_download
from hits.errors import NotFound
from payments.tables import Column, Table

TABLE = Table("dynahit-test", (Column("what"),), [("Größe",)] * 20_000)

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def scratch(app: Flask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_download_is_whole_and_leaves_neither_transaction_nor_file(app: Flask, scratch: Path) -> None:
    for kind in ("csv", "xlsx", "parquet"):
        with app.test_request_context():
            db.session.connection()

            response = download(TABLE, kind)

            assert not db.session().in_transaction()
            assert list(scratch.iterdir()) == []
            content = response.get_data()
            assert len(content) == response.content_length
            assert f"filename=dynahit-test.{kind}" in response.headers["Content-Disposition"]
            assert content.startswith({"csv": b"what\r\n", "xlsx": b"PK", "parquet": b"PAR1"}[kind])


def test_lines_of_text_are_one_file(app: Flask, scratch: Path) -> None:
    with app.test_request_context():
        response = text_download(iter(["a\n", "ü\n"]), "lines.txt")

        assert response.get_data() == "a\nü\n".encode()
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_another_kind_is_not_there(app: Flask) -> None:
    with pytest.raises(NotFound, match="The kinds are csv, xlsx, parquet"):
        download(TABLE, "docx")
