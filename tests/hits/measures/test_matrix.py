"""The matrix, what it says in words about two models, and the leaderboard with its ties."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hits.errors import NotFound
from hits.measures.intervals import Estimate
from hits.measures.matrix import Compared, leaderboard, matrix_of, model_of, ranked, readings
from hits.measures.stored import ModelHead, SetHead, Stored
from tests.factories import NOON


def head(number: int, name: str, kind: str = "base", round_number: int | None = None) -> SetHead:
    return SetHead(number, name, kind, round_number, "test" if kind == "round" else None, 100)


def model(name: str, minutes: int = 0) -> ModelHead:
    return ModelHead(name[0] * 64, "", name, "one", NOON + timedelta(minutes=minutes))


def figure(value: float, spread: float = 0.02) -> Estimate:
    return Estimate(value, value - spread, value + spread, 100, 0, 1000)


BASE, FIRST, SECOND = head(9, "SNLI"), head(1, "round 1 test", "round", 1), head(2, "round 2 test", "round", 2)
OLD, NEW = model("old"), model("new", 5)


def stored(**figures: dict[SetHead, float]) -> list[Stored]:
    models = {"old": OLD, "new": NEW}
    return [
        Stored(models[name], one, "error", figure(value), None, NOON)
        for name, some in figures.items()
        for one, value in some.items()
    ]


def test_sets_stand_by_round_and_what_was_not_measured_is_empty() -> None:
    found = matrix_of("nli", stored(old={BASE: 0.2, SECOND: 0.6}, new={FIRST: 0.3, SECOND: 0.4}), "error")

    assert found.sets == (FIRST, SECOND, BASE)
    assert found.cell(OLD, FIRST) is None
    assert found.cell(NEW, SECOND) == figure(0.4)
    assert [(row["model"], row["set"], row["value"]) for row in found.as_rows()] == [
        ("old", "round 2 test", 0.6),
        ("old", "SNLI", 0.2),
        ("new", "round 1 test", 0.3),
        ("new", "round 2 test", 0.4),
    ]


def test_words_say_what_became_better_what_was_forgotten_and_how_hard_the_new_round_is() -> None:
    compared = [
        Compared(FIRST, figure(0.5), figure(0.3), figure(-0.2)),
        Compared(SECOND, figure(0.6), figure(0.59), figure(-0.01)),
        Compared(BASE, figure(0.2), figure(0.26), figure(0.06)),
    ]

    said = "\n".join(readings(OLD, NEW, compared))

    assert "errs less than old one on round 1 test (-20.0 points, 95% interval -22.0 to -18.0)" in said
    assert "forgotten something, on SNLI (+6.0 points" in said
    assert "No clear difference on round 2 test" in said
    assert "The newest round, round 2 test, has it err on 59.0%" in said
    assert "no set in common" in readings(OLD, NEW, [])[0]


def test_the_leaderboard_ranks_by_set_and_says_what_is_not_clearly_apart() -> None:
    matrix = matrix_of(
        "nli",
        stored(old={BASE: 0.2, FIRST: 0.5, SECOND: 0.6}, new={BASE: 0.25, FIRST: 0.3, SECOND: 0.4}),
        "error",
    )

    board = leaderboard(matrix, matrix.sets, lambda first, second, one: figure(0.05, 0.2))

    assert [(one.model, one.place, one.mean_rank) for one in board.placed] == [
        (NEW, 1, pytest.approx(4 / 3)),
        (OLD, 2, pytest.approx(5 / 3)),
    ]
    assert board.placed[0].mean == pytest.approx(0.95 / 3)
    # Three independent intervals of +-0.02 each: sqrt(3) * 0.02 / 3.
    assert board.placed[0].high - board.placed[0].mean == pytest.approx(0.02 / 3**0.5)
    assert [one.apart for one in board.placed] == [None, False]
    assert leaderboard(matrix, matrix.sets, lambda *_: figure(0.05, 0.01)).placed[1].apart
    # Behind by its ranks, and yet clearly better in the mean: that is not clearly behind.
    assert not leaderboard(matrix, matrix.sets, lambda *_: figure(-0.05, 0.01)).placed[1].apart


def test_equal_models_share_a_place_and_who_lacks_a_set_is_left_out() -> None:
    same = matrix_of("nli", stored(old={BASE: 0.2}, new={BASE: 0.2}), "error")
    board = leaderboard(same, same.sets, lambda *_: figure(0, 0.1))
    assert [(one.place, one.shared, one.mean_rank) for one in board.placed] == [(1, True, 1.5), (1, True, 1.5)]

    torn = matrix_of("nli", stored(old={BASE: 0.2}, new={BASE: 0.2, FIRST: 0.1}), "error")
    board = leaderboard(torn, torn.sets, lambda *_: figure(0))
    assert ([one.model for one in board.placed], board.left_out) == ([NEW], (OLD,))
    assert leaderboard(torn, [], lambda *_: figure(0)).placed == ()


def test_more_is_better_where_it_is() -> None:
    some = [
        Stored(OLD, BASE, "accuracy", figure(0.7), None, NOON),
        Stored(NEW, BASE, "accuracy", figure(0.8), None, NOON),
    ]
    matrix = matrix_of("nli", some, "accuracy")

    assert leaderboard(matrix, matrix.sets, lambda *_: figure(0.1)).placed[0].model == NEW


def test_models_are_named_by_handle_or_by_a_name_that_only_one_has() -> None:
    assert model_of([OLD, NEW], OLD.handle) == OLD
    assert model_of([OLD, NEW], "new") == NEW
    with pytest.raises(NotFound, match="There are: oooooooooooo"):
        model_of([OLD, NEW], "other")
    with pytest.raises(NotFound, match="names 2"):
        model_of([OLD, OLD], "old")


def test_ranks_of_equal_values_are_shared() -> None:
    assert ranked([0.3, 0.1, 0.3, 0.2]) == [3.5, 1, 3.5, 2]
