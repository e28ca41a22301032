"""`dynahit measure bias`: a plan reads nothing, the figures fit a terminal, and JSON holds all of them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.cli.measure_bias import show
from hits.models import BiasReport
from tests.app.cli.test_hits import Shell, market, shell
from tests.factories import make_round
from tests.measured import frozen_round

__all__ = ["market", "shell"]

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
COMMAND = ("measure", "bias", "sentiment", "2")


def test_a_frozen_round_is_looked_at_once(shell: Shell, session: Session, tmp_path: Path) -> None:
    frozen_round(session, tmp_path)
    assert "120 examples would be read" in shell(*COMMAND, "--plan").output
    assert session.scalar(select(func.count()).select_from(BiasReport)) == 0
    session.rollback()

    said = shell(*COMMAND).output

    assert "120 examples with a settled label" in said
    assert "statement alone" in said
    assert "no word is clearly skewed" in said
    report = json.loads(shell(*COMMAND, "--json").stdout)
    assert report["baselines"]["figure"] == "accuracy"
    assert json.loads(shell(*COMMAND, "--plan", "--json").stdout)["done"]
    out = io.StringIO()
    show(report, Console(file=out, width=80))
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_a_round_that_is_not_frozen_is_refused(shell: Shell, session: Session) -> None:
    make_round(session)
    session.commit()

    for more in ((), ("--plan",)):
        result = shell("measure", "bias", "sentiment", "1", *more)
        assert result.exit_code == 1
        assert "is not frozen" in result.output
