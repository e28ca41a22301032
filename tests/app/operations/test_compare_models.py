"""Reading what was measured: matrix, two models side by side, leaderboard, files."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from app.operations.compare_models import compare, matrix_csv, read_leaderboard, read_matrix, read_parts
from app.operations.measure_models import measure_model
from hits.clock import FixedClock
from hits.errors import InvalidInput, NotFound
from hits.measures.sets import rows_set
from hits.measures.transfers import TRANSFERS
from hits.tasks import task
from tests.factories import NOON
from tests.measured import RuledModel, always, measured, sentiment_rows, sentiment_set, told

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def test_two_models_are_compared_row_by_row(session: Session) -> None:
    measured(session, always("positive"), RuledModel(told, "good one"))

    found = compare(session, "sentiment", "always positive", "good one")

    (one,) = found.compared
    assert (one.before.value, one.after.value) == pytest.approx((2 / 3, 0))
    assert one.difference.value == pytest.approx(-2 / 3)
    assert one.difference.high < 0
    assert "errs less than always positive one on made up (-66.7 points" in found.words[0]
    assert compare(session, "sentiment", "good one", "always positive", "macro_f1").compared[0].difference.value < 0
    assert found.as_json()["sets"][0]["difference"]["rows"] == 30
    with pytest.raises(NotFound, match="good one"):
        compare(session, "sentiment", "always positive", "another")
    with pytest.raises(InvalidInput, match="error, accuracy, macro_f1"):
        read_matrix(session, "sentiment", "f1")


def test_the_leaderboard_takes_test_sets_and_says_who_is_not_clearly_behind(session: Session) -> None:
    almost = RuledModel(lambda texts: "neutral" if "day 0." in texts[0] else told(texts), "almost")
    measured(session, always("positive"), RuledModel(told, "good one"), almost)

    board = read_leaderboard(session, "sentiment", metric="accuracy")

    assert [(one.model.model_id, one.place, one.apart) for one in board.placed] == [
        ("good one", 1, None),
        ("almost", 2, False),
        ("always positive", 3, True),
    ]
    with pytest.raises(InvalidInput, match="There are: made up"):
        read_leaderboard(session, "sentiment", ["none of these"])


def test_models_that_answer_between_other_classes_are_no_part_of_the_leaderboard(session: Session) -> None:
    hateful = RuledModel(lambda texts: "hateful" if "negative" in texts[0] else "not_hateful", "hate", ("a", "b"))
    measured(session, RuledModel(told, "own"))
    measure_model(
        session,
        FixedClock(NOON),
        hateful,
        sentiment_set(),
        model_task="hate",
        transfer=TRANSFERS["hate-as-sentiment"],
        resamples=200,
    )

    assert [one.name for one in read_matrix(session, "sentiment").models] == [
        "own one",
        "hate one by hate-as-sentiment",
    ]
    assert [one.model.name for one in read_leaderboard(session, "sentiment").placed] == ["own one"]
    assert compare(session, "sentiment", "own", "hate one by hate-as-sentiment").compared == ()


def test_errors_by_part_are_kept_and_files_hold_no_formulas(session: Session) -> None:
    rows = sentiment_rows(6, functionality=("negation",))
    measured(session, always("positive", "=1+1"), sets=[rows_set(task("sentiment"), "tests", rows, kind="functions")])

    (one,) = read_parts(session, "sentiment")
    assert one.parts == {"functionality": {"negation": {"rows": 6, "wrong": 4}}}
    lines = matrix_csv(read_matrix(session, "sentiment")).splitlines()
    assert lines[0].startswith("task,model,revision,map,set,kind,round,split,metric,value,low,high")
    assert "'=1+1" in lines[1]
    assert len(lines) == 2
    assert matrix_csv(read_matrix(session, "nli")).count("\n") == 1
