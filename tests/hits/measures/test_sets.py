"""Sets from files: what a file calls things is said once, and all that is wrong in it is listed with its line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hits.errors import InvalidInput
from hits.measures.sets import Columns, InvalidSet, file_set, rows_set, sha256_of
from hits.tasks import task
from tests.measured import sentiment_rows

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("DYNAHIT_DATA", ROOT.parent / "shared/data"))
HATECHECK = DATA / "hate_base/hatecheck_test_suite_cases.csv"
AS_HATECHECK = Columns(
    {"message": "test_case", "label": "label_gold", "target": "target_ident"}, {"non-hateful": "not_hateful"}
)


def test_a_file_is_read_by_the_names_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "tests.csv"
    path.write_text(
        "functionality,case,gold,target\nnegation,It was not good.,neg,\nnegation,Not bad.,pos,food\n", encoding="utf-8"
    )
    columns = Columns({"statement": "case", "label": "gold"}, {"neg": "negative", "pos": "positive"})

    found = file_set(task("sentiment"), "mine", path, columns, functions=True)

    assert (found.kind, found.name) == ("functions", "mine")
    first, second = found.load()
    assert (first.texts, first.right) == (("It was not good.",), ("negative",))
    assert first.parts == {"functionality": ("negation",)}
    assert second.parts == {"functionality": ("negation",), "target": ("food",)}


def test_all_that_is_wrong_is_listed_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"statement": "Fine.", "label": "positive"},
        {"statement": "  ", "label": "positive"},
        {"statement": "Fine.", "label": "good"},
        {"label": "positive"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    with pytest.raises(InvalidSet) as caught:
        file_set(task("sentiment"), "mine", path)

    said = str(caught.value)
    assert [one.line for one in caught.value.findings] == [2, 3, 4]
    assert "'good' is none of the sentiment task" in said
    assert "--label good=OURS" in said
    assert "no 'statement'" in said


def test_questions_may_have_several_answers(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    row = {"passage": "In 1903.", "question": "When?"}
    path.write_text(
        json.dumps(row | {"answers": ["1903", "In 1903"]}) + "\n" + json.dumps(row | {"answer": "1903"}) + "\n",
        encoding="utf-8",
    )

    assert [one.right for one in file_set(task("qa"), "q", path).load()] == [("1903", "In 1903"), ("1903",)]


def test_sets_need_rows_and_a_name_and_are_known_by_their_rows() -> None:
    spec = task("sentiment")
    rows = sentiment_rows(4)

    assert rows_set(spec, "a", rows).sha256 == rows_set(spec, "b", list(rows)).sha256
    assert sha256_of(rows) != sha256_of(rows[::-1])
    for name, some in (("a", []), ("", rows), ("a\nb", rows), ("x" * 121, rows)):
        with pytest.raises(InvalidInput):
            rows_set(spec, name, some)


@pytest.mark.skipif(not HATECHECK.exists(), reason="HateCheck is not here: set DYNAHIT_DATA to the published data")
def test_hatecheck_is_read_as_it_is_published() -> None:
    rows = file_set(task("hate"), "HateCheck", HATECHECK, AS_HATECHECK, functions=True).load()

    assert len(rows) == 3728
    assert len({row.parts["functionality"] for row in rows}) == 29
    assert sum(row.right == ("hateful",) for row in rows) == 2563
    assert sum("target" in row.parts for row in rows) > 3000
