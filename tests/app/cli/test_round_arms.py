"""``dynahit round arms``: a plan changes nothing, what is set is shown, lines fit a terminal."""

from __future__ import annotations

import json

import pytest
from flask import Flask
from sqlalchemy.orm import Session, sessionmaker

from app.cli.round_arms import arms
from hits.models import ArmPlan, Round

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

ARMS = ["--arm", "explained=2", "--arm", "plain=1 no-explanations", "--arm", "control=1 no-model"]


def test_arms_are_planned_set_and_shown(app: Flask, session_factory: sessionmaker[Session]) -> None:
    run = app.test_cli_runner().invoke
    planned = run(arms, ["sentiment", "1", *ARMS, "--plan"])
    with session_factory() as session:
        assert session.query(Round).count() == 0
    done = run(arms, ["sentiment", "1", *ARMS])
    again = run(arms, ["sentiment", "1", *ARMS])
    shown = run(arms, ["sentiment", "1"])
    told = json.loads(run(arms, ["sentiment", "1", "--json"]).output)

    assert "explained: 50.0% of new writers; all that is configured answers, with explanations." in planned.output
    assert "This is a plan." in planned.output
    assert done.output.endswith("Set.\n")
    assert again.output.endswith("Nothing was changed.\n")
    assert "Do explanations help? Not enough data: at least 10 more writers." in " ".join(shown.output.split())
    assert max(map(len, shown.output.splitlines())) <= 80
    assert [one["name"] for one in told["arms"]] == ["explained", "plain", "control"]
    with session_factory() as session:
        assert [plan.version for plan in session.query(ArmPlan)] == [1]
