"""Figures from outcomes: known answers, pairs of models, and no answer counts as wrong."""

from __future__ import annotations

import pytest

from hits.measures.scores import NO_ANSWER, Tally, difference, is_wrong, macro_f1, parts_of

CLASSES = ("a", "b", "c")
#: 20 + 30 + 25 right of 100; the reference is scipy's bootstrap over these rows (40,000 samples, BCa).
CONFUSION = ((20, 3, 2), (4, 30, 6), (1, 9, 25))
ROWS = [[right, said] for right, row in enumerate(CONFUSION) for said, count in enumerate(row) for _ in range(count)]


def tally(outcomes: list[list[float]], classes: tuple[str, ...] = CLASSES) -> Tally:
    found = Tally(classes)
    found.add(outcomes)
    return found


def test_accuracy_error_and_macro_f1_are_those_of_the_confusion() -> None:
    scores = tally(ROWS).scores(resamples=20_000)

    assert scores["accuracy"].value == 0.75
    assert scores["error"].value == 0.25
    assert scores["error"].low == pytest.approx(1 - scores["accuracy"].high, abs=0.01)
    macro = scores["macro_f1"]
    assert macro.value == pytest.approx(0.7556671)
    assert (macro.low, macro.high) == pytest.approx((0.6657, 0.8345), abs=0.01)
    as_names = {one: dict(zip(CLASSES, row, strict=True)) for one, row in zip(CLASSES, CONFUSION, strict=True)}
    assert macro_f1(as_names) == pytest.approx(macro.value)


def test_a_label_that_never_occurs_counts_nothing() -> None:
    assert macro_f1({"a": {"a": 2, "b": 0}, "b": {"a": 0, "b": 0}}) == 0.5


def test_no_answer_is_wrong_and_hurts_no_other_label() -> None:
    scores = tally([[0, 0], [1, 1], [2, NO_ANSWER]]).scores()

    assert scores["error"].value == pytest.approx(1 / 3)
    assert scores["macro_f1"].value == pytest.approx(2 / 3)
    assert is_wrong(CLASSES, [2, NO_ANSWER])


def test_readers_of_passages_are_wrong_below_the_overlap_that_fools_a_model() -> None:
    scores = tally([[1, 1.0], [0, 0.4], [0, 0.3999], [0, 0.0]], ()).scores()

    assert {name: one.value for name, one in scores.items()} == pytest.approx(
        {"error": 0.5, "f1": 0.45, "exact_match": 0.25}, abs=1e-4
    )


def test_a_few_rows_that_are_all_alike_are_no_clear_difference() -> None:
    few, many = (difference(CLASSES, [[0, 1]] * count, [[0, 0]] * count, "error") for count in (3, 30))

    assert (few.value, few.is_clear) == (-1.0, False)
    assert (many.value, many.is_clear) == (-1.0, True)
    same = difference(CLASSES, [[0, 0]] * 3, [[0, 0]] * 3, "accuracy")
    assert same.low < 0 < same.high


def test_a_difference_is_paired() -> None:
    before = [[0, 0]] * 50 + [[1, 0]] * 20 + [[1, 1]] * 30
    after = [[0, 0]] * 50 + [[1, 1]] * 20 + [[1, 1]] * 30

    less = difference(CLASSES, before, after, "error")
    assert less.value == pytest.approx(-0.2)
    assert less.high < 0
    assert difference(CLASSES, before, after, "accuracy").value == pytest.approx(0.2)
    macro = difference(CLASSES, before, after, "macro_f1")
    assert macro.value == pytest.approx(
        tally(after).scores()["macro_f1"].value - tally(before).scores()["macro_f1"].value
    )
    assert macro.low > 0
    same = difference(CLASSES, before, before, "error")
    assert (same.value, same.is_clear) == (0, False)
    assert difference((), [[0, 0.2]], [[1, 1.0]], "f1").value == pytest.approx(0.8)
    assert difference((), [[0, 0.2]], [[1, 1.0]], "exact_match").value == 1


def test_outcomes_of_other_rows_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same rows"):
        difference(CLASSES, [[0, 0]], [[1, 0]], "error")
    with pytest.raises(ValueError, match="same rows"):
        difference((), [[0, 0.1]], [], "error")


def test_errors_are_counted_by_part_and_a_row_may_have_several() -> None:
    found = parts_of(CLASSES, [[0, 0], [1, 0], [1, 1]], [("x",), ("x", "y", "y"), ()])

    assert found == {"x": {"rows": 2, "wrong": 1}, "y": {"rows": 1, "wrong": 1}}
