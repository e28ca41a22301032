"""Two `make` at once on a fresh clone: one installs, the other waits and finds everything there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.install_lock import hold
from app.cli.processes import ROOT

SCRIPT = ROOT / "app" / "cli" / "install_lock.py"


def locked(path: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(path), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [None, signal.SIGKILL])
def test_the_second_says_that_it_waits_and_goes_on_however_the_first_ends(
    tmp_path: Path, number: signal.Signals | None
) -> None:
    path = tmp_path / "venv" / ".install.lock"
    with locked(path, "sh", "-c", "echo begun; read line; echo ended") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "begun\n"
        with locked(path, "sh", "-c", "echo mine; exit 5") as second:
            assert second.stderr is not None
            assert second.stderr.readline().startswith("Another make is installing into")
            assert second.poll() is None
            if number is not None:
                first.send_signal(number)
            else:
                first.communicate("\n")
            said, _ = second.communicate(timeout=30)
            assert (said, second.returncode) == ("mine\n", 5), "the command's own exit code is the answer"


def test_the_lock_is_held_by_what_the_process_becomes(tmp_path: Path) -> None:
    descriptor = hold(tmp_path / "lock")

    assert os.get_inheritable(descriptor)
    os.close(descriptor)
    os.close(hold(tmp_path / "lock"))


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_two_makes_at_once_install_once(tmp_path: Path) -> None:
    for name in ("Makefile", "setup.cfg", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "app" / "cli").mkdir(parents=True)
    for name in ("install_lock.py", "download_plan.py"):
        shutil.copy(ROOT / "app" / "cli" / name, tmp_path / "app" / "cli")
    # A Python that takes its time, in place of the one that would download hundreds of megabytes.
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").write_text('#!/bin/sh\necho "$*" >> calls.txt\ncase "$*" in *editable*) sleep 1;; esac\n')
    (bin_folder / "python").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "VENV"))}

    runs = [
        subprocess.Popen(
            ["make", "install"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    said = [run.communicate(timeout=60) for run in runs]

    assert [run.returncode for run in runs] == [0, 0, 0], said
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    assert sum("--editable" in call for call in calls) == 1, calls
    assert sum("Another make is installing" in errors for _out, errors in said) == 2
