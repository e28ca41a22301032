"""The web server and the deliverer beside it: stopped together, and the deliverer started again when it dies."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.cli import serving_marketplace
from app.cli.serving_marketplace import Courier, run_server, server_arguments

SLEEP = "import time; time.sleep(60)"


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")


def wait_for(condition: object, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


def test_without_authentication_is_said_to_the_factory_and_nowhere_else() -> None:
    assert server_arguments("127.0.0.1:1")[-1] == "app.marketplace.factory:create_app()"
    assert server_arguments("127.0.0.1:1", insecure_no_auth=True)[-1].endswith("create_app(insecure_no_auth=True)")


def test_the_exit_code_is_the_servers_and_the_deliverer_ends_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    monkeypatch.setattr(
        serving_marketplace,
        "server_arguments",
        lambda *_a, **_k: [
            sys.executable,
            "-c",
            f"import pathlib, sys, time\nwhile not pathlib.Path({str(note)!r}).exists(): time.sleep(0.05)\nsys.exit(3)",
        ],
    )
    monkeypatch.setattr(
        serving_marketplace,
        "deliver_arguments",
        lambda: [
            sys.executable,
            "-c",
            f"import os, pathlib; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); {SLEEP}",
        ],
    )

    assert run_server("127.0.0.1:1") == 3

    assert not alive(int(note.read_text()))


def test_a_deliverer_that_dies_is_started_again_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving_marketplace, "FIRST_PAUSE", 0.05)
    caplog.set_level(logging.WARNING)
    courier = Courier([sys.executable, "-c", "raise SystemExit(4)"])
    first = courier.process.pid
    pids = {first}

    def looked_after() -> bool:
        courier.look_after()
        pids.add(courier.process.pid)
        return len(pids) >= 3

    wait_for(looked_after)
    courier.stop()

    said = [record.getMessage() for record in caplog.records]
    assert len(said) >= 2
    assert "ended (code 4)" in said[0]


RUN = f"""
import sys
from app.cli import serving_marketplace
serving_marketplace.server_arguments = lambda *a, **k: [sys.executable, "-c", {SLEEP!r}]
serving_marketplace.deliver_arguments = lambda: [sys.executable, "-c", {SLEEP!r}]
sys.exit(serving_marketplace.run_server("127.0.0.1:1"))
"""


def children(pid: int) -> list[int]:
    shown = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in shown.stdout.split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_whatever_ends_the_run_leaves_no_process_behind(number: signal.Signals) -> None:
    if number == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("only Linux ends children with their parent")
    run = subprocess.Popen([sys.executable, "-c", RUN])
    wait_for(lambda: len(children(run.pid)) == 2)
    both = children(run.pid)

    run.send_signal(number)

    assert run.wait(30) == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    wait_for(lambda: not any(map(alive, both)))
