"""`dynahit up` makes an instance, runs it, stops it whole, and finds it again."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from app.cli import up as module
from app.cli.environment import read_settings
from app.cli.processes import is_running
from tests.launched import ROOT, free_ports, launched, stop


def children(folder: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((folder / "run.json").read_text())
    return found


def is_alive(pid: int) -> bool:
    """Tell whether the process lives; one that nobody has waited for yet does not."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return False
    return stat.read_text().rpartition(")")[2].split()[0] != "Z"


def up_again(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "up"],
        cwd=ROOT,
        env={**os.environ, "DYNAHIT_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
def test_an_instance_is_made_run_killed_found_again_and_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    marketplace, service = free_ports(2)
    options = ("--port", str(service), "--marketplace-port", str(marketplace))
    with launched(folder, *options) as (launcher, said):
        settings = read_settings(folder)
        pids = children(folder)

        # It runs, with the sample batch, and says where.
        assert set(pids) == {"marketplace", "service", "jobs"}
        assert requests.get(f"http://127.0.0.1:{marketplace}/healthz", timeout=5).status_code == 200
        assert requests.get(f"http://localhost:{service}/healthz", timeout=5).status_code == 200
        assert len(re.findall(rf"http://127.0.0.1:{marketplace}/join\?code=", said)) == 5
        assert f"export AWS_ENDPOINT_URL_MTURK=http://127.0.0.1:{marketplace}" in said
        assert f"DYNAHIT_HOME={folder} .venv/bin/dynahit marketplace invite" in said
        assert [line for line in said.splitlines() if len(line) > 80 and str(folder) not in line] == []
        [batch] = json.loads(command(folder, "hits", "status", "--json"))
        assert batch["hits"]["created"] == 12

        # A second one of the same instance is refused, and so are other ports.
        assert is_running(folder)
        assert "is already running" in up_again(folder).stderr
        assert "its open HITs carry that address" in up_again(folder, DYNAHIT_PORT="9").stderr

        # A process that is killed ends the run, which says which one and stops the others.
        os.kill(pids["marketplace"], signal.SIGKILL)
        rest, _ = launcher.communicate(timeout=60)
        assert launcher.returncode == 1
        assert "The marketplace has ended (signal 9)" in rest
        assert not [name for name, pid in pids.items() if is_alive(pid)]

    # The next one finds everything as it was, and Ctrl-C ends it cleanly.
    with launched(folder) as (launcher, said):
        assert "Starting the instance" in said
        assert read_settings(folder) == settings
        [batch] = json.loads(command(folder, "hits", "status", "--json"))
        assert batch["hits"]["created"] == 12
        pids = children(folder)
        assert "Everything is kept" in stop(launcher)
        assert not [name for name, pid in pids.items() if is_alive(pid)]
        assert not (folder / "run.json").exists()


def command(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "DYNAHIT_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def test_a_taken_port_is_told_before_anything_is_made(tmp_path: Path) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])

        done = up_again(tmp_path / "home", DYNAHIT_PORT=port, MARKETPLACE_PORT=str(free_ports(1)[0]))

    assert done.returncode == 1
    assert f"Port {port} for the dynahit service can't be used" in done.stderr
    assert not (tmp_path / "home" / "settings.env").exists()


def test_a_folder_that_can_not_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    done = up_again(tmp_path / "file" / "home")

    assert done.returncode == 1
    assert "can't be used" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_of_a_newer_version_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    marketplace, service = free_ports(2)
    instance = module.instances.open_instance(folder, port=service, marketplace_port=marketplace)
    module.instances.store_instance(instance)
    module.instances.upgrade_databases(instance)
    with sqlite3.connect(folder / "dynahit.db") as database:
        database.execute("UPDATE alembic_version SET version_num = 'of the future'")
    database.close()

    done = up_again(folder)

    assert done.returncode == 1
    assert "of the future" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_three_processes_need_each_other_in_this_order(tmp_path: Path) -> None:
    instance = module.instances.open_instance(tmp_path, port=9001, marketplace_port=9000)

    found = module.programs(instance)

    assert [program.name for program in found] == ["marketplace", "service", "jobs"]
    assert found[0].health_url == "http://127.0.0.1:9000/healthz"
    assert found[1].health_url == "http://localhost:9001/healthz"
    assert "127.0.0.1:9000" in found[0].arguments
    assert "--bind=127.0.0.1:9001" in found[1].arguments
