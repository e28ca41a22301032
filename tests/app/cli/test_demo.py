"""The simulated crowd plays the whole loop through the real doors, on an instance that it starts and stops itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.demo import stored_passwords
from app.cli.processes import is_running
from tests.launched import ROOT, free_ports


def dynahit(folder: Path, *arguments: str) -> str:
    marketplace, service = free_ports(2)
    ports = (
        {}
        if (folder / "settings.env").exists()
        else {"DYNAHIT_PORT": str(service), "MARKETPLACE_PORT": str(marketplace)}
    )
    hurry = {"DYNAHIT_VALIDATION_WAIT_SECONDS": "1", "DYNAHIT_JOBS_INTERVAL_SECONDS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "DYNAHIT_HOME": str(folder), **ports, **hurry},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.model
def test_the_crowd_plays_the_loop(tmp_path: Path) -> None:
    folder = tmp_path / "home"

    said = dynahit(folder, "demo")

    found = re.search(r"(\d+) attempts scored by the model, (\d+) of them fooled it", said)
    verdicts = re.search(r"(\d+) verified, (\d+) rejected by the readers, (\d+) flagged", said)
    assert found is not None, said
    assert verdicts is not None, said
    assert int(found[1]) >= 40
    assert int(verdicts[1]) >= 5
    assert int(verdicts[2]) >= 1
    assert int(verdicts[3]) == 1
    assert f"Paid: {verdicts[1]} bonuses" in said
    assert "The books agree" in said
    assert "None of what follows is the work of people" in said
    assert not is_running(folder)
    dynahit(folder, "export", "sentiment", "--round", "1", "--out", str(tmp_path / "round-1.jsonl"))
    rows = [json.loads(line) for line in (tmp_path / "round-1.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == int(found[1])
    assert all(row["attribution"] for row in rows)


def test_the_crowds_passwords_are_kept_privately_and_stay(tmp_path: Path) -> None:
    path = tmp_path / "demo-crowd.json"

    made = stored_passwords(path)

    assert stored_passwords(path) == made
    assert len(set(made.values())) == 9
    assert path.stat().st_mode & 0o077 == 0
