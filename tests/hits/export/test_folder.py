"""The folder of an export appears whole or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hits.errors import InvalidInput
from hits.export.folder import DatasetFolder, edition_of, require_free
from hits.tasks import task
from tests.hits.export.published import published
from tests.hits.export.test_card import MANIFEST

EDITION = edition_of(task("sentiment"), [(MANIFEST, "a" * 64)], licences=["cc-by-4.0"], with_attributions=False)


def test_a_finished_folder_holds_files_that_its_checksums_fit(tmp_path: Path) -> None:
    with DatasetFolder(tmp_path / "data", EDITION) as folder:
        folder.add(published())
        folder.finish()

    lines = (tmp_path / "data" / "checksums.txt").read_text(encoding="utf-8").splitlines()
    listed = dict(reversed(line.split("  ")) for line in lines)
    there = {str(p.relative_to(tmp_path / "data")) for p in (tmp_path / "data").rglob("*") if p.is_file()}
    assert set(listed) == there - {"checksums.txt"}
    for name, digest in listed.items():
        assert hashlib.sha256((tmp_path / "data" / name).read_bytes()).hexdigest() == digest
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o755


def written(folder: Path, *, fills: bool = False, stops: bool = False) -> None:
    """Write an example; somebody fills the folder meanwhile, or stops it."""
    with DatasetFolder(folder, EDITION) as opened:
        opened.add(published())
        if fills:
            folder.mkdir()
            (folder / "mine").touch()
        if stops:
            raise KeyboardInterrupt
        opened.finish()


def test_without_its_end_nothing_stays(tmp_path: Path) -> None:
    with DatasetFolder(tmp_path / "data", EDITION) as folder:
        folder.add(published())
    with pytest.raises(KeyboardInterrupt):
        written(tmp_path / "data", stops=True)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_somebody_filled_meanwhile_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be written"):
        written(tmp_path / "data", fills=True)

    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["mine"]


def test_what_is_no_free_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)

    for name in ("file", "link"):
        with pytest.raises(InvalidInput, match="is not a folder"):
            require_free(tmp_path / name)


def test_an_edition_is_another_with_another_licence_round_or_option() -> None:
    others = [
        edition_of(task("sentiment"), [(MANIFEST, "b" * 64)], licences=["cc-by-4.0"], with_attributions=False),
        edition_of(task("sentiment"), [(MANIFEST, "a" * 64)], licences=["cc0-1.0"], with_attributions=False),
        edition_of(task("sentiment"), [(MANIFEST, "a" * 64)], licences=["cc-by-4.0"], with_attributions=True),
    ]

    assert len({EDITION.identity, *(one.identity for one in others)}) == 4
    assert EDITION.version == "2.1.0"
