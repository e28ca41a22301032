"""Training as a whole: each head from rows to delta and card, one seed one file, the card of what is loaded."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from hits.tasks import task
from inference.embedded import DELTA, EMBEDDED, load_embedded, read_card
from inference.loading import asked_as
from inference.low_rank import read_delta
from inference.train import items_of, train
from inference.training.corpora import Asked, Row
from inference.training.measures import measure
from inference.training.recipes import RECIPES, Part, Recipe, Rows
from inference.training.splits import sample

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.model

QUIET = partial(Console, quiet=True)


def small(recipe: Recipe, learned: int, measured: int) -> Recipe:
    """Return the recipe with few rows of each part, in one member and short epochs."""

    def some(part: Part, count: int) -> Part:
        def rows(data: Path) -> Rows:
            return sample(part.rows(data), count)

        return replace(part, rows=rows)

    return replace(
        recipe,
        train=some(recipe.train, learned),
        tests={name: some(part, measured) for name, part in list(recipe.tests.items())[:1]},
        aims={},
        chosen_on=None if recipe.chosen_on is None else some(recipe.chosen_on, measured),
        lengths=tuple(min(length, 96) for length in recipe.lengths),
        members=min(recipe.members, 2),
        schedule=replace(recipe.schedule, bfloat16=False),
        rows_of_epoch=None,
    )


@pytest.mark.slow
@pytest.mark.parametrize("code", sorted(RECIPES))
def test_the_same_seed_gives_the_same_file_and_the_card_describes_what_is_loaded(
    tmp_path: Path, code: str, base_folder: Path, data_folder: Path
) -> None:
    recipe = small(RECIPES[code], 60, 12)

    cards = [
        train(recipe, data_folder, tmp_path / name, seed=seed, base=base_folder, console=QUIET())
        for name, seed in (("one", 1), ("same", 1), ("other", 2))
    ]

    assert cards[0]["delta"] == cards[1]["delta"]
    assert cards[0]["delta"]["sha256"] != cards[2]["delta"]["sha256"]
    assert not any("embeddings.weight" in key for key in read_delta(tmp_path / "one" / DELTA))
    loaded = load_embedded(code, recipe.labels, base=base_folder, folder=tmp_path / "one")
    assert loaded.revision == cards[0]["revision"]
    ((name, part),) = recipe.tests.items()
    assert measure(asked_as(task(code), loaded), part.rows(data_folder)).items() <= cards[0]["evaluation"][name].items()
    assert cards[0]["training_data"]["rows_by_epoch"] == [60] * len(recipe.lengths)
    assert json.loads((tmp_path / "one" / "card.json").read_text(encoding="utf-8")) == cards[0]


@pytest.mark.slow
def test_two_hundred_rows_are_enough_to_learn_them(tmp_path: Path, base_folder: Path, data_folder: Path) -> None:
    recipe = small(RECIPES["sentiment"], 200, 12)
    recipe = replace(recipe, tests={"learned": recipe.train}, lengths=(96,) * 6, members=1)

    card = train(recipe, data_folder, tmp_path, seed=1, base=base_folder, console=QUIET())

    assert card["evaluation"]["learned"]["accuracy"] > 0.8


@pytest.mark.slow
@pytest.mark.benchmark
@pytest.mark.parametrize("code", sorted(RECIPES))
def test_training_again_gives_the_committed_file(
    tmp_path: Path, code: str, base_folder: Path, data_folder: Path
) -> None:
    """Takes up to an hour each. Bits are the same only on the same kind of processor with the same versions."""
    committed = read_card(EMBEDDED / code)

    card = train(
        RECIPES[code], data_folder, tmp_path, seed=int(committed.details["seed"]), base=base_folder, console=QUIET()
    )

    if card["versions"] == committed.details["versions"] and card["processor"] == committed.details.get("processor"):
        assert card["delta"] == committed.details["delta"]
    for name, reached in committed.details["evaluation"].items():
        for key in ("accuracy", "f1"):
            if key in reached:
                assert card["evaluation"][name][key] == pytest.approx(reached[key], abs=0.03)


def test_every_epoch_has_the_rows_that_the_recipe_takes_for_it() -> None:
    from inference.tiny import tiny_reader

    rows = [Asked("the food was good", f"food {number}", (), "a") for number in range(3)]
    texts = [Row((f"good {number}",), "x", (1.0,)) for number in range(3)]
    recipe = replace(RECIPES["hate"], lengths=(16, 16), rows_of_epoch=lambda rows, epoch: rows[epoch : epoch + 1])

    first, second = items_of(recipe, texts, tiny_reader().tokenizer)

    assert len(first) == len(second) == 1
    assert first[0].encoded != second[0].encoded
    assert items_of(replace(RECIPES["qa"], rows_of_epoch=None), rows, tiny_reader().tokenizer) == [[], []]


def test_a_missing_data_folder_is_named(tmp_path: Path, base_folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="round01-yelp-dev"):
        train(RECIPES["sentiment"], tmp_path, tmp_path / "out", seed=1, base=base_folder, console=QUIET())
