"""Mixtures: nothing of dev or test is learned, weights repeat rows, classes can be balanced."""

from __future__ import annotations

from collections import Counter

import pytest

from hits.errors import InvalidInput
from hits.predictions import AnswerSpan
from inference.training.corpora import Asked, Row
from inference.training.mixture import Source, class_weights, held_back, learned_in, limited, watched, without_leaks


def row(text: str, label: str = "x", group: str = "") -> Row:
    return Row((text,), label, (1.0, 0.0), group)


def pair(premise: str, hypothesis: str) -> Row:
    return Row((premise, hypothesis), "x", (1.0, 0.0), premise)


def test_a_training_row_that_shares_a_text_or_a_context_with_dev_or_test_is_not_learned() -> None:
    base = Source("base", train=[row("Good  FOOD"), row("bad food"), row("cold")])
    first = Source(
        "round 1", train=[row("loud")], dev=[row("Cold "), row("warm")], test=[row("good food"), row("WARM")]
    )

    clean_base, clean_first = without_leaks([base, first])

    assert clean_base.train == [row("bad food")]
    assert clean_base.left_out == {"row that shares a text or a family with a dev or test row": 2}
    assert clean_first.dev == [row("Cold ")]
    assert clean_first.left_out == {"dev row that shares a text or a family with a test row": 1}


def test_a_premise_or_passage_of_the_test_is_not_learned_with_another_text() -> None:
    answers = (AnswerSpan(0, 1, "a"),)
    pairs = Source("a", train=[pair("p", "h"), pair("q", "i")], test=[pair("p", "other")])
    asked = Source("b", train=[Asked("p1", "who?", answers, "g")], test=[Asked("p1", "when?", answers, "g")])

    assert without_leaks([pairs])[0].train == [pair("q", "i")]
    assert without_leaks([asked])[0].train == []
    # A premise that is another row's hypothesis ties nothing together.
    assert len(without_leaks([Source("a", train=[pair("p", "h")], test=[pair("h", "p")])])[0].train) == 1


def test_what_was_made_of_a_test_row_in_another_round_is_not_learned() -> None:
    first = Source("round 1", train=[row("it is good", group="7"), row("cold", group="8")], families=True)
    second = Source("round 2", train=[row("warm", group="9")], test=[row("it is not good", group="7")], families=True)
    base = Source("base", train=[row("another seven", group="7")])

    cleaned = without_leaks([base, first, second])

    assert [source.train for source in cleaned] == [
        [row("another seven", group="7")],
        [row("cold", group="8")],
        [row("warm", group="9")],
    ]


def test_what_is_held_back_is_whole_groups_and_the_same_every_time() -> None:
    source = Source("base", train=[row(f"text {number}", group=f"g{number // 4}") for number in range(400)])

    once, again = held_back(source, 10), held_back(source, 10)

    assert once == again
    assert 16 <= len(once.dev) <= 80
    assert not {one.group for one in once.dev} & {one.group for one in once.train}
    alone = held_back(Source("base", train=[row(f"text {number}") for number in range(400)]), 10)
    assert 16 <= len(alone.dev) <= 80


def test_weights_repeat_rows_or_take_other_ones_in_each_epoch() -> None:
    sources = [
        Source("a", train=[row(f"a{n}") for n in range(4)], weight=2.5),
        Source("b", train=[row(f"b{n}") for n in range(10)], weight=0.5),
        Source("c", train=[row("c")], weight=0),
    ]

    first, second = (learned_in(sources, epoch) for epoch in range(2))

    assert first == learned_in(sources, 0)
    assert Counter(place < 4 for place in first) == {True: 10, False: 5}
    assert sorted(Counter(place for place in first if place < 4).values()) == [2, 2, 3, 3]
    assert {place for place in [*first, *second] if place >= 4} == set(range(4, 14))


def test_a_limit_takes_rows_from_everywhere() -> None:
    source = limited(Source("a", train=[row(str(n)) for n in range(100)], test=[row("t")]), 4)

    assert [one.texts[0] for one in source.train if isinstance(one, Row)] == ["0", "25", "50", "75"]
    assert source.test == [row("t")]


def test_balanced_classes_count_the_same_in_total() -> None:
    sources = [Source("a", train=[row("1", "x"), row("2", "x"), row("3", "x"), row("4", "y")])]

    balanced = class_weights("balanced", sources, ("x", "y"))

    assert balanced is not None
    assert balanced[0] * 3 == pytest.approx(balanced[1] * 1)
    assert class_weights({"y": 2.0}, sources, ("x", "y")) == [1.0, 2.0]
    assert class_weights(None, sources, ("x", "y")) is None
    for said, labels in (("even", ("x",)), ({"z": 1.0}, ("x",)), ({"x": 0.0}, ("x",)), ("balanced", ())):
        with pytest.raises(InvalidInput):
            class_weights(said, sources, labels)


def test_small_sources_are_watched_too() -> None:
    large = Source("base", train=[], dev=[row(f"a{n}") for n in range(1000)])
    small = Source("round 1", train=[], dev=[row(f"b{n}") for n in range(5)])

    counts = Counter(one.texts[0][0] for one in watched([large, small], 100) if isinstance(one, Row))

    assert counts["b"] == 5
    assert counts["a"] <= 100
