"""Cards: measured on what is served, sources by hash, and what fell short said so."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from inference.base_weights import locate_base_weights
from inference.bert import read_base_state
from inference.embedded import CARD, DELTA, read_card
from inference.heads import untrained_state
from inference.low_rank import factor, save_delta
from inference.training.cards import rows_to_measure, write_card
from inference.training.corpora import Row
from inference.training.recipes import RECIPES, DataFile, Part, Recipe

pytest.importorskip("torch")
pytestmark = pytest.mark.model

ROWS = [Row((f"text {number}",), label, (1.0, 0.0)) for number in range(3) for label in ("not_hateful", "hateful")]


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    (tmp_path / "rows.csv").write_text("made up")
    part = Part((DataFile("rows.csv", "made up for this test", "none"),), "all rows", lambda data: ROWS)
    return replace(
        RECIPES["hate"],
        train=part,
        tests={"high": part, "low": part},
        aims={"high": 0.9, "low": 0.1},
        chosen_on=replace(part, rows=lambda data: ROWS[:2]),
        rows_of_epoch=None,
    )


def test_a_card_has_sources_measures_and_what_is_below_its_aim(
    tmp_path: Path, recipe: Recipe, base_folder: Path
) -> None:
    base = read_base_state(locate_base_weights(base_folder))
    out = tmp_path / "out"
    out.mkdir()
    save_delta(out / DELTA, factor(base, untrained_state(base_folder, base, recipe.labels), rank=32))
    done: list[int] = []

    card = write_card(recipe, tmp_path, out, seed=3, folder=base_folder, training_cpu_seconds=5, advance=done.append)

    assert json.loads((out / CARD).read_text(encoding="utf-8")) == card
    assert sum(done) == rows_to_measure(recipe, tmp_path) == 14
    assert card["evaluation"]["low"]["rows"] == 6
    # Right answers are half one label, half the other, for the same texts.
    assert card["evaluation"]["low"]["accuracy"] == 0.5
    assert card["below_aim"] == ["high"]
    assert card["chosen_on"]["rows"]["rows"] == 2
    assert card["training_data"]["files"] == [
        {
            "source": "made up for this test",
            "licence": "none",
            "file": "rows.csv",
            "sha256": hashlib.sha256(b"made up").hexdigest(),
        }
    ]
    assert card["preprocessing"] == "emoji-names"
    assert card["command"].endswith("hate --data DIR --out DIR --seed 3")
    assert read_card(out).emoji_names
