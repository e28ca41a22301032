"""The recipes: labels of the task, sound licences, and held-out rows that share nothing with what is learned."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from hits.tasks import AnswerKind, task
from inference.training.corpora import Asked, Row
from inference.training.recipes import RECIPES, Part, Rows

KINDS = {"text": AnswerKind.TEXT, "pair": AnswerKind.PAIR, "span": AnswerKind.SPAN}


def parts(code: str) -> list[Part]:
    recipe = RECIPES[code]
    return [recipe.train, *recipe.tests.values(), *([] if recipe.chosen_on is None else [recipe.chosen_on])]


@cache
def rows_of(code: str, name: str, data: Path) -> Rows:
    recipe = RECIPES[code]
    part = {"train": recipe.train, "chosen": recipe.chosen_on, **recipe.tests}[name]
    return [] if part is None else part.rows(data)


def texts_of(rows: Rows) -> set[tuple[str, ...]]:
    return {row.texts if isinstance(row, Row) else (row.passage,) for row in rows}


@pytest.mark.parametrize("code", sorted(RECIPES))
def test_a_recipe_fits_its_task(code: str) -> None:
    recipe, spec = RECIPES[code], task(code)

    assert spec.kind is KINDS[recipe.head]
    assert sorted(recipe.labels) == ([] if recipe.head == "span" else sorted(spec.label_codes))
    assert spec.default_model == f"embedded:{code}"
    assert set(recipe.aims) <= set(recipe.tests)
    assert all(part.which for part in parts(code))
    assert len(recipe.lengths) >= 1
    assert max(recipe.lengths) <= recipe.max_length <= 512


@pytest.mark.parametrize("code", sorted(RECIPES))
def test_nothing_is_learned_from_data_that_forbids_commercial_use(code: str) -> None:
    files = RECIPES[code].train.files

    assert files
    assert not [file for file in files if "-NC" in file.licence or "anli" in file.path]
    assert all("/" in file.path and file.source and file.licence for file in files)


@pytest.mark.parametrize("code", sorted(RECIPES))
def test_no_text_is_both_learned_and_held_out(code: str, data_folder: Path) -> None:
    learned = rows_of(code, "train", data_folder)

    for name in (*RECIPES[code].tests, "chosen"):
        held_out = rows_of(code, name, data_folder)
        assert held_out or name == "chosen"
        assert sorted(texts_of(learned) & texts_of(held_out))[:5] == [], name


@pytest.mark.parametrize("code", ["nli", "qa"])
def test_no_premise_and_no_article_is_in_two_parts(code: str, data_folder: Path) -> None:
    names = ["train", "chosen", *RECIPES[code].aims]
    groups = [{row.group for row in rows_of(code, name, data_folder)} for name in names]

    everything = [group for one in groups for group in one]
    if code == "nli":
        # A premise of SNLI is none of MultiNLI, so the two tests are compared with the other parts only.
        everything = [group for one in (groups[0], groups[1], groups[2] | groups[3]) for group in one]
    assert len(everything) == len(set(everything))


def test_no_passage_is_in_two_parts_of_the_readers_data(data_folder: Path) -> None:
    learned, held_out = (
        {row.passage for row in rows_of("qa", name, data_folder) if isinstance(row, Asked)}
        for name in ("train", "SQuAD, unseen articles")
    )

    assert not learned & held_out


def test_a_text_is_not_learned_when_its_perturbation_is_held_out(data_folder: Path) -> None:
    learned = {row.group for row in rows_of("hate", "train", data_folder) if isinstance(row, Row) and not row.kind}
    chosen = {row.group for row in rows_of("hate", "chosen", data_folder) if isinstance(row, Row) and not row.kind}

    assert learned
    assert chosen
    assert not learned & chosen


def test_a_reader_sees_no_question_twice(data_folder: Path) -> None:
    recipe = RECIPES["qa"]
    everything = rows_of("qa", "train", data_folder)

    epochs = [recipe.learned_in(everything, epoch) for epoch in range(len(recipe.lengths))]

    asked = [(row.passage, row.question) for rows in epochs for row in rows if isinstance(row, Asked)]
    assert [len(rows) for rows in epochs] == [8000, 3500]
    assert len(asked) == len(set(asked))


def test_each_epoch_of_the_hate_speech_model_has_all_pairs_and_other_tweets(data_folder: Path) -> None:
    recipe = RECIPES["hate"]
    everything = rows_of("hate", "train", data_folder)

    first, second = ([row for row in recipe.learned_in(everything, epoch) if isinstance(row, Row)] for epoch in (0, 1))

    for rows in (first, second):
        assert {kind: count for kind, count in Counter(row.kind for row in rows).items() if kind} == {
            "0": 700,
            "1": 350,
            "2": 350,
        }
    assert [row for row in first if not row.kind] == [row for row in second if not row.kind]
    assert not {row.texts for row in first if row.kind == "1"} & {row.texts for row in second if row.kind == "1"}


def test_the_counts_that_the_card_names_are_those_of_the_data(data_folder: Path) -> None:
    learned = rows_of("nli", "train", data_folder)

    assert len(learned) == 13_000 + len([row for row in learned[13_000:] if isinstance(row, Row)])
    assert len(rows_of("hate", "HateCheck", data_folder)) == 3728
    assert len(rows_of("hate", "HatemojiBuild rounds 6 and 7", data_folder)) == 3918
    assert len(rows_of("sentiment", "round 1 test", data_folder)) == 3600
