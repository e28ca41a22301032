"""`dynahit measure models`: plans change nothing, nothing is measured twice, and what does not fit is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from hits.models import ModelScore
from tests.app.cli.test_hits import Shell, market, shell
from tests.measured import LABELS, RuledModel, frozen_round, told

__all__ = ["market", "shell"]

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> RuledModel:
    """What every reference loads."""
    found = RuledModel(lambda texts: told(texts) if "It was" in texts[0] else "positive")
    monkeypatch.setattr("inference.loading.load_model", lambda *_, **__: found)
    return found


def rows_file(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    rows: list[dict[str, Any]] = [
        {"statement": f"It was {LABELS[number % 3]}.", "label": LABELS[number % 3]} for number in range(9)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_rounds_and_files_are_measured_once(shell: Shell, session: Session, tmp_path: Path, model: RuledModel) -> None:
    assert "nothing to measure on" in shell("measure", "models", "sentiment").output
    frozen_round(session, tmp_path)
    command = ("measure", "models", "sentiment", "--file", f"mine={rows_file(tmp_path)}")

    plan = shell(*command, "--plan")
    assert "round 2 test" in plan.output
    assert "to measure" in plan.output
    assert session.scalar(select(func.count()).select_from(ModelScore)) == 0
    session.rollback()
    done = json.loads(shell(*command, "--json").stdout)
    assert [(one["set"], one["measured"]) for one in done] == [("round 2 test", False), ("mine", False)]
    assert done[1]["scores"]["accuracy"]["value"] == 1
    asked = len(model.asked)
    again = shell(*command)
    assert "measured before" in again.output
    assert "error rate 0.0%" in again.output
    assert len(model.asked) == asked
    assert "measured before" in shell(*command, "--plan").output


def test_what_does_not_fit_is_said_before_anything_is_loaded(shell: Shell, session: Session, tmp_path: Path) -> None:
    path = rows_file(tmp_path)

    for arguments, words in (
        (("--no-rounds", "--file", str(path)), "is not of the form"),
        (("--no-rounds", "--file", f"mine={path}", "--map", "nli-as-hate"), "can't be measured on 'mine'"),
        (("--no-rounds", "--file", f"mine={path}", "--map", "other"), "There is no map 'other'"),
        (("--round", "4"), "There is no round 4"),
    ):
        result = shell("measure", "models", "sentiment", *arguments)
        assert result.exit_code == 1
        assert words in result.output
