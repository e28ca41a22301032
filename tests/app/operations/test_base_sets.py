"""Base sets: the published rows that are held back, or what is not there and where it comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.operations.base_sets import base_sets
from hits.errors import InvalidInput
from inference.training import recipes
from inference.training.corpora import Row
from inference.training.recipes import DataFile, Part


def test_the_rows_held_back_are_the_base_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "made-up.txt"
    path.write_text("Cold soup.\nGood bread.\n", encoding="utf-8")

    def rows(folder: Path) -> list[Row]:
        return [Row((line,), "positive", (0, 1, 0)) for line in (folder / path.name).read_text().splitlines()]

    part = Part((DataFile(path.name, "made up", "CC0"),), "all", rows)
    monkeypatch.setitem(recipes.RECIPES, "sentiment", replace(recipes.RECIPES["sentiment"], tests={"made up": part}))

    (found,) = base_sets("sentiment", tmp_path)

    assert (found.name, found.kind, len(found.load())) == ("made up", "base", 2)
    assert (found.load()[1].texts, found.load()[1].right) == (("Good bread.",), ("positive",))


def test_a_file_that_is_not_there_is_named_with_its_source(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"explorer\.json\.gz is not there"):
        base_sets("qa", tmp_path)
