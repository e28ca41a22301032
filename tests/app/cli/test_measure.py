"""`dynahit measure`: what was measured as table, CSV, JSON and picture, in words, and what to do when nothing was."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from hits.measures.sets import rows_set
from hits.tasks import task
from tests.app.cli.test_hits import Shell, market, shell
from tests.measured import RuledModel, always, measured, sentiment_rows, told

__all__ = ["market", "shell"]

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def test_the_matrix_is_shown_in_every_form(shell: Shell, session: Session, tmp_path: Path) -> None:
    assert "Nothing was measured for the sentiment task yet" in shell("measure", "matrix", "sentiment").output
    measured(session, always("positive"), RuledModel(told, "good one"))

    shown = shell("measure", "matrix", "sentiment").output
    assert "66.7%" in shown
    assert "0.0%" in shown
    rows = json.loads(shell("measure", "matrix", "sentiment", "--metric", "accuracy", "--json").stdout)
    assert [(row["model"], row["value"]) for row in rows] == [
        ("always positive", pytest.approx(1 / 3)),
        ("good one", 1),
    ]
    lines = list(csv.DictReader(shell("measure", "matrix", "sentiment", "--csv").stdout.splitlines()))
    assert [float(row["value"]) for row in lines] == pytest.approx([2 / 3, 0])
    picture = tmp_path / "matrix.svg"
    assert "is in" in shell("measure", "matrix", "sentiment", "--svg", str(picture)).output
    assert "<svg" in picture.read_text(encoding="utf-8")
    assert "no figure 'f1'" in shell("measure", "matrix", "sentiment", "--metric", "f1").output


def test_two_models_and_the_leaderboard_are_said_in_words(shell: Shell, session: Session) -> None:
    assert "measured on all of these sets yet" in shell("measure", "leaderboard", "sentiment").output
    measured(session, always("positive"), RuledModel(told, "good one"))

    said = shell("measure", "compare", "sentiment", "always positive", "good one").output
    assert "good one one errs less than always positive one on made up" in said
    found = shell("measure", "compare", "sentiment", "always positive", "good one", "--json").stdout
    assert json.loads(found)["sets"][0]["difference"]["high"] < 0
    board = shell("measure", "leaderboard", "sentiment").output
    assert "clearly behind" in board
    models = json.loads(shell("measure", "leaderboard", "sentiment", "--json").stdout)["models"]
    assert [one["model"] for one in models] == ["good one", "always positive"]


def test_errors_by_functionality_and_maps_are_listed(shell: Shell, session: Session) -> None:
    assert "No set with parts" in shell("measure", "functions", "sentiment").output
    rows = sentiment_rows(6, functionality=("negation",))
    measured(session, always("positive"), sets=[rows_set(task("sentiment"), "tests", rows, kind="functions")])

    assert "66.7%" in shell("measure", "functions", "sentiment").output
    found = json.loads(shell("measure", "functions", "sentiment", "--json").stdout)
    assert found[0]["errors"]["functionality"]["negation"] == {"rows": 6, "wrong": 4}
    assert "sentiment-as-hate" in shell("measure", "maps").output
    assert len(json.loads(shell("measure", "maps", "--json").stdout)) >= 4


@pytest.mark.parametrize("command", ["models", "matrix", "compare", "leaderboard", "functions", "maps", "bias"])
def test_help_fits_a_terminal(shell: Shell, command: str) -> None:
    from click.testing import CliRunner

    from app.cli import dynahit

    said = CliRunner().invoke(dynahit, ["measure", command, "--help"], env={"COLUMNS": "80"}).output

    assert "Usage:" in said
    assert max(map(len, said.splitlines())) <= 80
