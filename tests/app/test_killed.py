"""``kill -9`` at every commit of submit, collect, approve, validate and settle leaves the same end result."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.app import killed_loop

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.app.killed_loop"])


def run(target: Any, *args: Any) -> int | None:
    """Run in a process of its own and return its exit code; a signal is negative."""
    process = _processes.Process(target=target, args=args)
    process.start()
    process.join(60)
    return process.exitcode


@dataclass(frozen=True)
class Undisturbed:
    """How it ends when nobody is killed, and a copy of the world before it began."""

    world: Path
    state: dict[str, Any]
    commits: int


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    world = tmp_path_factory.mktemp("world")
    assert run(killed_loop.prepare, str(world)) == 0
    lived = tmp_path_factory.mktemp("lived") / "copy"
    shutil.copytree(world, lived)
    assert run(killed_loop.live, str(lived), "before_commit", 0) == 0
    end = json.loads((lived / "end.json").read_text())
    return Undisturbed(world, end["state"], end["commits"])


def test_the_undisturbed_loop_does_what_it_should(undisturbed: Undisturbed) -> None:
    state = undisturbed.state

    assert [row["verdict"] for row in state["rows"]].count("valid_and_model_wrong") == 2
    assert state["payouts"] == ["confirmed 0.30", "confirmed 0.30"]
    assert state["marketplace"]["bonuses"] == ["0.30", "0.30"]
    assert state["assignments"] == ["approved ", "approved ", "approved irony", "approved irony"]
    assert sum(state["booked"].values()) == 0
    assert undisturbed.commits > 20


def kill_and_live_again(undisturbed: Undisturbed, folder: Path, moment: str, numbers: range) -> None:
    """Kill one life at each of the commits, let a second one finish, and compare the ends."""
    different = {}
    for number in numbers:
        world = folder / str(number)
        shutil.copytree(undisturbed.world, world)
        assert run(killed_loop.live, str(world), moment, number) == -signal.SIGKILL
        assert run(killed_loop.live, str(world), moment, 0) == 0, f"not to be mended after {moment} {number}"
        state = json.loads((world / "end.json").read_text())["state"]
        if state != undisturbed.state:
            different[number] = {name: state[name] for name in state if state[name] != undisturbed.state[name]}
        shutil.rmtree(world)

    assert different == {}


@pytest.mark.parametrize(("moment", "first"), [("before_commit", 2), ("after_commit", 7)])
def test_a_kill_at_every_tenth_commit_changes_nothing_in_the_end(
    undisturbed: Undisturbed, tmp_path: Path, moment: str, first: int
) -> None:
    kill_and_live_again(undisturbed, tmp_path, moment, range(first, undisturbed.commits + 1, 10))


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
def test_a_kill_at_any_commit_changes_nothing_in_the_end(undisturbed: Undisturbed, tmp_path: Path, moment: str) -> None:
    kill_and_live_again(undisturbed, tmp_path, moment, range(1, undisturbed.commits + 1))
