"""What published rows may hold: more than writers may write here, and nothing that the tables can't keep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hits.errors import Finding, InvalidAnswer
from hits.imports.rows import InvalidRows, PublishedRow, check_row
from hits.tasks import task

ROW = PublishedRow("r1", {"prompt": ""}, {"message": "no"}, "hateful")


def test_a_published_text_may_be_shorter_than_ours_and_its_ends_are_trimmed() -> None:
    found = check_row(task("hate"), replace(ROW, answer={"message": "  no\r\nway "}, context={"prompt": ""}))

    assert (found.answer, found.context) == ({"message": "no\nway"}, {"prompt": ""})


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (replace(ROW, name="x" * 101), "longer than 100"),
        (replace(ROW, label="hate"), "'hate' is no label of the hate task"),
        (replace(ROW, answer={}), "is missing"),
        (replace(ROW, answer={"message": "x" * 20_001}), "20,001 characters"),
        (replace(ROW, writer="x" * 41), "longer than 40"),
        (replace(ROW, why="a\x01"), r"U\+0001"),
    ],
)
def test_what_the_tables_can_not_keep_is_said(row: PublishedRow, said: str) -> None:
    with pytest.raises(InvalidAnswer, match=said):
        check_row(task("hate"), row)


def test_many_wrong_rows_are_counted_and_the_first_are_shown() -> None:
    error = InvalidRows([("a.csv", Finding(number, "wrong")) for number in range(30)], 4000)

    assert "4,000 rows can't be used" in str(error)
    assert "a.csv, line 19: wrong" in str(error)
    assert "line 20" not in str(error)
    assert "and 3,980 more" in str(error)
