"""`dynahit jobs run`: one line per change, an end when asked, an exit code for cron."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.cli import jobs
from app.operations.jobs_pass import PassReport
from hits.clock import FixedClock
from tests.app.cli.test_hits import Shell, contexts, launch, market, shell
from tests.market import Market, failing

__all__ = ["contexts", "market", "shell"]


def test_one_pass_prints_what_changed_and_no_worker_ids(shell: Shell, contexts: Path, market: Market) -> None:
    launch(shell, contexts, "--yes")
    person = market.person("stranger")
    market.submit(market.accept(person, market.hits()[0]["HITId"]))

    first, second = shell("jobs", "run", "--once"), shell("jobs", "run", "--once")

    assert first.exit_code == 0
    assert "1 submitted, 1 to review by you" in first.stdout
    assert second.stdout == ""
    assert person not in first.output


def test_a_pass_without_the_marketplace_has_an_exit_code_of_its_own(
    shell: Shell, contexts: Path, market: Market
) -> None:
    launch(shell, contexts, "--yes")
    market.before = failing("ListHITs")

    result = shell("jobs", "run", "--once")

    assert result.exit_code == 1
    assert "did not answer ListHITs" in result.stderr
    assert "Traceback" not in result.output


def test_a_signal_ends_it_between_two_passes(
    monkeypatch: pytest.MonkeyPatch, shell: Shell, session_factory: sessionmaker[Session]
) -> None:
    passes = []

    def working(*_: object, **__: object) -> PassReport:
        passes.append(time.monotonic())
        if len(passes) == 2:
            signal.raise_signal(signal.SIGTERM)
        return PassReport()

    monkeypatch.setattr(jobs, "jobs_pass", working)
    before = signal.getsignal(signal.SIGTERM)

    result = shell("jobs", "run", "--interval", "0.01")

    assert (result.exit_code, len(passes)) == (0, 2)
    assert "Stopped." in result.stdout
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_marketplace_that_is_away_is_asked_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch, shell: Shell, clock: FixedClock
) -> None:
    pauses: list[float] = []
    reports = [*[PassReport(unavailable=True, findings=["away"])] * 5, PassReport(approved=1)]

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0)
            if len(pauses) == len(reports):
                self.set()
            return self.is_set()

    monkeypatch.setattr(threading, "Event", Stop)
    monkeypatch.setattr(jobs, "jobs_pass", lambda *_, **__: reports[len(pauses)])

    result = shell("jobs", "run", "--interval", "5")

    assert pauses == [10, 20, 40, 60, 60, 5]
    assert result.stderr.count("away") == 1
    assert "1 approved" in result.stdout


def test_a_hit_open_to_everybody_stops_the_opening_of_more(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    asked: list[bool] = []

    def working(*_: object, open_validation: bool, **__: object) -> PassReport:
        asked.append(open_validation)
        if len(asked) == 3:
            signal.raise_signal(signal.SIGTERM)
        return PassReport(stop_opening=len(asked) == 1)

    monkeypatch.setattr(jobs, "jobs_pass", working)

    result = shell("jobs", "run", "--interval", "0.01")

    assert asked == [True, False, False]
    assert "No more validation HITs" in result.stderr


def test_an_interval_of_nothing_is_a_usage_error(shell: Shell) -> None:
    assert shell("jobs", "run", "--interval", "0").exit_code == 2


def test_the_plan_of_a_pass_changes_nothing(shell: Shell, contexts: Path, market: Market) -> None:
    launch(shell, contexts, "--yes")
    market.submit(market.accept(market.person("stranger"), market.hits()[0]["HITId"]))

    result = shell("jobs", "run", "--plan")

    assert result.exit_code == 0
    assert "To review by you         1" in result.stdout
    assert "Nothing was changed" in result.stdout
    assert "1 submitted" in shell("jobs", "run", "--once").stdout
