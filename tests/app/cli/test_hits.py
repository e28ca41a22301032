"""`dynahit hits`: plans change nothing, launches ask, errors are one message, listings are JSON if wanted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from flask.cli import ScriptInfo
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from app.cli import dynahit
from app.extensions import db
from app.factory import create_app
from hits.clock import FixedClock
from hits.models import Hit, HitBatch
from hits.predictions import Attribution, Prediction
from tests import market as markets
from tests.market import Market, served

ROOT = Path(__file__).resolve().parents[3]
LAUNCH = ["hits", "launch", "sentiment", "--round", "1", "--hits", "3", "--reward", "0.30", "--bonus", "0.30"]


@pytest.fixture
def market(clock: FixedClock) -> Market:
    return Market(clock)


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    path = tmp_path / "contexts.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"Story {number}."}) + "\n" for number in range(3)))
    return path


class Shell:
    """Runs commands on one instance, all of them with the same market and clock."""

    def __init__(self, database_url: str, market: Market, clock: FixedClock) -> None:
        self.app = create_app(markets.settings(database_url=database_url), engine=_NoModel(), clock=clock)
        self.app.extensions["dynahit"].mturk = market.mturk

    def __call__(self, *arguments: str, answer: str = "") -> Result:
        return CliRunner().invoke(
            dynahit, list(arguments), obj=ScriptInfo(create_app=lambda: self.app), input=answer, env={"COLUMNS": "200"}
        )

    def close(self) -> None:
        """Give the database connections back."""
        with self.app.app_context():
            db.engine.dispose()


class _NoModel:
    def predict(self, task_code: str, answer: Mapping[str, str], *, key: str = "") -> Prediction:
        raise AssertionError("a command asked the model")

    def explain(self, task_code: str, answer: Mapping[str, str], target: str, **_: object) -> Attribution:
        raise AssertionError("a command asked the model")


@pytest.fixture
def shell(
    session_factory: sessionmaker[Session], database_url: str, market: Market, clock: FixedClock
) -> Iterator[Shell]:
    made = Shell(database_url, market, clock)
    yield made
    made.close()


def launch(shell: Shell, contexts: Path, *more: str, answer: str = "") -> Result:
    return shell(*LAUNCH, "--tries", "5", "--contexts", str(contexts), *more, answer=answer)


def batches(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(HitBatch)) or 0


def test_a_plan_shows_costs_wage_and_balance_and_changes_nothing(
    shell: Shell, contexts: Path, market: Market, session: Session
) -> None:
    result = launch(shell, contexts, "--plan")

    assert result.exit_code == 0, result.output
    # 3 HITs: 1.08 for rewards, 1.08 for bonuses, 2.70 for validation, fees included.
    for shown in ("$4.86", "$3.00", "$10,000.00", "$9,995.14", "http://127.0.0.1:8000", "1 negative", "Nothing was"):
        assert shown in result.output
    assert (market.hits(), batches(session)) == ([], 0)


def test_a_context_is_shown_as_it_is_written(shell: Shell, tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    odd.write_text(json.dumps({"prompt": "[/red] 5 < 6 [bold]\u05e9\u05dc\u05d5\u05dd <script> \U0001f600"}))

    result = launch(shell, odd, "--plan")

    assert result.exit_code == 0, result.output
    assert "[/red] 5 < 6 [bold]" in result.output


def test_a_plan_is_json_if_wanted(shell: Shell, contexts: Path) -> None:
    plan = json.loads(launch(shell, contexts, "--plan", "--json").stdout)

    assert plan["cost"]["worst_case"] == "4.86"
    assert plan["hits_to_create"] == 3


def test_a_launch_asks_first_and_no_means_no(shell: Shell, contexts: Path, market: Market, session: Session) -> None:
    result = launch(shell, contexts, answer="n\n")

    assert result.exit_code == 1
    assert (market.hits(), batches(session)) == ([], 0)


def test_a_launch_that_is_confirmed_creates_the_hits_once(
    shell: Shell, contexts: Path, market: Market, session: Session
) -> None:
    first = launch(shell, contexts, answer="y\n")
    second = launch(shell, contexts, "--yes")

    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert "Created 3 HITs in batch 1" in first.output
    assert "Nothing was created" in second.output
    assert len(market.hits()) == 3
    assert session.scalar(select(func.count()).select_from(Hit)) == 3


def test_an_interrupted_launch_says_how_to_go_on(
    shell: Shell, contexts: Path, market: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = market.mturk.create_hit

    def interrupted(*arguments: object, **named: object) -> object:
        if market.hits():
            raise KeyboardInterrupt
        return create(*arguments, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(market.mturk, "create_hit", interrupted)
        stopped = launch(shell, contexts, "--yes")
    again = launch(shell, contexts, "--yes")

    assert stopped.exit_code == 1
    assert "Run the same launch again to go on" in stopped.stderr
    assert "Created 2 HITs" in again.output
    assert len(market.hits()) == 3


def test_a_launch_in_json_prints_only_json(shell: Shell, contexts: Path) -> None:
    assert json.loads(launch(shell, contexts, "--yes", "--json").stdout) == {"batch": 1, "created": 3, "existing": 0}


def test_json_without_yes_is_a_usage_error(shell: Shell, contexts: Path, market: Market) -> None:
    result = launch(shell, contexts, "--json")

    assert result.exit_code == 2
    assert market.calls == []


def test_a_broken_contexts_file_names_every_line_and_launches_nothing(
    shell: Shell, tmp_path: Path, market: Market
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"prompt": "Fine."}\n{"prompt": \n{"wrong": "x"}\n')

    result = launch(shell, broken, "--yes")

    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert "line 3" in result.stderr
    assert "Traceback" not in result.stderr
    assert market.calls == []


@pytest.mark.parametrize("reward", ["0.001", "-1", "NaN", "0.00"])
def test_a_reward_that_cannot_be_paid_is_refused_with_a_message(
    shell: Shell, contexts: Path, market: Market, reward: str
) -> None:
    result = shell(*LAUNCH[:7], f"--reward={reward}", "--bonus=0.30", "--tries=5", "--contexts", str(contexts), "--yes")

    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("Error: ")
    assert market.hits() == []


def test_too_little_money_is_refused_with_the_numbers(
    session_factory: sessionmaker[Session], database_url: str, contexts: Path, clock: FixedClock
) -> None:
    poor = Market(clock, balance="1.00")

    shell = Shell(database_url, poor, clock)
    result = launch(shell, contexts, "--yes")
    shell.close()

    assert result.exit_code == 1
    assert "$4.86" in result.stderr
    assert "$1.00" in result.stderr
    assert poor.hits() == []


def test_an_unknown_task_names_those_there_are(shell: Shell, contexts: Path) -> None:
    arguments = [part if part != "sentiment" else "nli2" for part in LAUNCH]

    result = shell(*arguments, "--tries", "5", "--contexts", str(contexts), "--yes")

    assert result.exit_code == 1
    assert "The tasks are" in result.stderr


def test_the_status_lists_batches_and_work_to_look_at(shell: Shell, contexts: Path, market: Market) -> None:
    launch(shell, contexts, "--yes")
    stranger = market.person("stranger")
    assignment = market.accept(stranger, market.hits()[0]["HITId"])
    market.submit(assignment)
    shell("jobs", "run", "--once")

    table, (found,) = shell("hits", "status"), json.loads(shell("hits", "status", "--json").stdout)

    assert found["hits"]["created"] == 3
    assert found["assignments"]["submitted"] == 1
    assert [one["assignment"] for one in found["to_review"]] == [assignment]
    assert found["next_auto_approval"] == "2026-11-18T12:00:00+00:00"
    assert f"Look at assignment {assignment}" in table.stdout
    assert stranger not in table.output + json.dumps(found)

    plan = shell("hits", "review", assignment, "--plan")
    done = shell("hits", "review", assignment, "--approve", "--yes")

    assert "pays $0.30 and a fee of $0.06" in plan.stdout
    assert (plan.exit_code, done.exit_code) == (0, 0), plan.output + done.output
    assert "1 approved" in done.stdout
    assert shell("hits", "review", assignment).exit_code == 2


def test_a_batch_is_expired_after_asking(shell: Shell, contexts: Path, market: Market) -> None:
    launch(shell, contexts, "--yes")

    refused, done = shell("hits", "expire", "1", answer="n\n"), shell("hits", "expire", "1", answer="y\n")

    assert "Expire 3 HITs of batch 1?" in refused.output
    assert refused.exit_code == 1
    assert "3 HITs of batch 1 are off the site" in done.output
    assert {hit["HITStatus"] for hit in market.hits()} == {"Reviewable"}


@pytest.mark.parametrize("command", [("hits", "expire", "9" * 21), ("hits", "status", "--round", "9" * 21)])
def test_an_absurd_number_is_refused_in_words(shell: Shell, command: tuple[str, ...]) -> None:
    answer = shell(*command)

    assert answer.exit_code == 2
    assert "is not in the range" in answer.output


def instance_environment(database_url: str, endpoint: str) -> dict[str, str]:
    """Return the environment of a process of its own on this instance."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DYNAHIT_HOME": "/nonexistent",
        "DYNAHIT_DATABASE_URL": database_url,
        "DYNAHIT_MARKETPLACE_ENDPOINT": endpoint,
        "DYNAHIT_SECRET_KEY": "x" * 32,
        "DYNAHIT_PSEUDONYM_KEY": "x" * 32,
        "DYNAHIT_AWS_ACCESS_KEY_ID": "AKIDTESTS",
        "DYNAHIT_AWS_SECRET_ACCESS_KEY": "a secret of the tests",
    }


def test_the_documented_example_launches_a_batch_once(
    session_factory: sessionmaker[Session], database_url: str, market: Market
) -> None:
    script = [sys.executable, "docs/examples/launch_batch.py", "docs/examples/prompts.jsonl", "--hits", "2"]
    with served(market) as url:
        environment = instance_environment(database_url, url)
        runs = [
            subprocess.run([*script, *more], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
            for more in ([], ["--launch"], ["--launch"])
        ]

    plan, first, second = (run.stdout for run in runs)
    assert "2 HITs to create, at most $3.24" in plan
    assert "HIT" not in plan.replace("HITs to create", "")
    assert "created 2, existed before 0" in first
    assert "created 0, existed before 2" in second
    assert len(market.hits()) == 2


def test_a_launch_that_is_killed_goes_on_where_it_stopped(
    session_factory: sessionmaker[Session], database_url: str, market: Market, contexts: Path
) -> None:
    command = [sys.executable, "-m", "app.cli", *LAUNCH, "--hits", "40", "--tries", "5"]
    command += ["--contexts", str(contexts), "--yes", "--json"]
    with served(market) as url:
        environment = instance_environment(database_url, url)
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as process:
            while len(market.hits()) < 5 and process.poll() is None:
                pass
            process.kill()
        there = len(market.hits())
        again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)

    answer = json.loads(again.stdout)
    assert process.returncode == -signal.SIGKILL
    assert 5 <= there < 40
    assert len(market.hits()) == 40
    # The one whose answer was on its way when the process died is taken over, and counts as created now.
    assert answer["created"] + answer["existing"] == 40
    with session_factory() as session:
        stored = session.scalars(select(Hit.mturk_hit_id)).all()
    assert sorted(filter(None, stored)) == sorted(hit["HITId"] for hit in market.hits())


def test_help_is_quick_and_loads_neither_the_model_nor_the_marketplace_client() -> None:
    code = (
        "import sys; from app.cli import dynahit; dynahit(['--help'], standalone_mode=False);"
        "print('LOADED', [name for name in ('torch', 'boto3', 'transformers', 'captum') if name in sys.modules])"
    )
    began = time.monotonic()

    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "LOADED []" in run.stdout
    assert time.monotonic() - began < 30


def test_the_status_of_nothing_is_an_empty_list_for_scripts_and_a_sentence_for_people(shell: Shell) -> None:
    listed, told = shell("hits", "status", "--json"), shell("hits", "status")

    assert (listed.exit_code, listed.stdout.strip()) == (0, "[]")
    assert told.exit_code == 0
    assert "No such batch" in told.stdout


def test_requirements_practice_and_a_reason_are_launch_terms(
    shell: Shell, contexts: Path, market: Market, session: Session
) -> None:
    more = ("--require", "percent-approved >= 95", "--practice", "3", "--reason", "A pilot.")
    plan = launch(shell, contexts, *more, "--plan")
    done = launch(shell, contexts, *more, "--yes")

    assert "percent-approved >= 95" in plan.output
    assert "3 examples that pass a reviewer" in plan.output
    assert done.exit_code == 0, done.output
    [batch] = session.scalars(select(HitBatch))
    assert (batch.practice, batch.wage_reason) == (3, "A pilot.")
    session.rollback()
    asked = {one for hit in market.hits() for one in market.mturk.hit(hit["HITId"]).requirements}
    assert "000000000000000000L0 >= 95, DiscoverPreviewAndAccept" in asked
    assert "Below the wage floor because" in shell("hits", "status").output


def test_a_requirement_that_can_not_be_read_is_one_message(shell: Shell, contexts: Path, market: Market) -> None:
    result = launch(shell, contexts, "--require", "percent-approved at least 95", "--yes")

    assert result.exit_code == 1
    assert "can't be read" in result.output
    assert market.hits() == []


def test_what_is_paid_besides_is_in_the_plan_the_worst_case_and_the_batch(
    shell: Shell, contexts: Path, session_factory: sessionmaker[Session]
) -> None:
    more = ["--streak", "2", "1.00", "--sure", "90", "0.10"]

    plan = launch(shell, contexts, *more, "--plan")
    as_json = json.loads(launch(shell, contexts, *more, "--plan", "--json").stdout)
    done = launch(shell, contexts, *more, "--yes")
    refused = launch(shell, contexts, "--streak", "1", "1.00", "--plan")

    assert "You get $1.00 more for every 2 of these HITs in a row" in plan.output
    # Three bonuses of $0.30, three of $0.10 and one streak.
    assert as_json["cost"]["bonuses"] == "2.20"
    assert done.exit_code == 0, done.output
    assert "it must be from 2 to 100" in refused.output
    with session_factory() as session:
        batch = session.scalars(select(HitBatch)).one()
        assert batch.extras == {
            "streak_length": 2,
            "streak_bonus": "1.00",
            "sure_percent": 90,
            "sure_bonus": "0.10",
        }
        assert "at least 90 % sure" in batch.description
