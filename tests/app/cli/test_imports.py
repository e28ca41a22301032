"""`dynahit import`: from the files of a published set to a data set of one's own, by commands alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.cli.test_hits import Shell, market, shell
from tests.rounds import dynasent_file

__all__ = ["market", "shell"]

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


def test_a_published_set_becomes_a_frozen_round_and_a_data_set(shell: Shell, tmp_path: Path) -> None:
    path = dynasent_file(tmp_path, 60)
    order = ["import", "dynasent", str(path), "--round", "1"]

    planned = shell(*order, "--plan")
    assert planned.exit_code == 0, planned.output
    assert "60 rows" in planned.output
    assert "Nothing was changed" in planned.output
    found = json.loads(shell(*order, "--json").stdout)
    assert (found["stored"], found["votes"], found["votes_differ"], found["fresh"]) == (60, 300, 0, True)
    assert "was there already" in shell(*order).output

    assert shell("hits", "status").exit_code == 0
    stats = json.loads(shell("round", "stats", "sentiment", "1", "--json").stdout)
    assert stats
    assert shell("jobs", "run", "--once").exit_code == 0
    refused = shell("export", "sentiment", "--round", "1", "--to", str(tmp_path / "data"))
    assert "is not frozen" in refused.output
    frozen = shell("round", "freeze", "sentiment", "1", "--shares", "60,20,20", "--yes")
    assert frozen.exit_code == 0, frozen.output
    done = shell("export", "sentiment", "--to", str(tmp_path / "data"), "--json")
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert plan["examples"] == 60
    assert (tmp_path / "data" / "data" / "train.parquet").exists()
    again = shell("export", "sentiment", "--to", str(tmp_path / "data"))
    assert again.exit_code == 1
    assert "holds something already" in again.output


def test_wrong_rows_are_one_message_without_a_traceback(shell: Shell, tmp_path: Path) -> None:
    path = dynasent_file(tmp_path, 3, gold_label="great")

    result = shell("import", "dynasent", str(path), "--round", "1")

    assert result.exit_code == 1
    assert "3 rows can't be used, nothing was imported" in result.output
    assert "made-up-dev.jsonl, line 1: gold_label 'great'" in result.output
    assert "Traceback" not in result.output


def test_a_form_that_is_not_known_is_said_with_those_that_are(shell: Shell, tmp_path: Path) -> None:
    result = shell("import", "squad", str(tmp_path / "a.json"), "--round", "1")

    assert result.exit_code == 2
    assert "dynasent" in result.output
