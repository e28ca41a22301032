"""The launcher's processes start, are watched, and never outlive it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.cli.processes import (
    ROOT,
    ProcessError,
    Program,
    Supervisor,
    answers,
    check_port,
    is_running,
    last_lines,
    only_one,
    stop_leftovers,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


@pytest.fixture
def supervisor(folder: Path) -> Iterator[Supervisor]:
    with Supervisor(folder, {**os.environ, "DYNAHIT_HOME": str(folder)}) as opened:
        yield opened


def python(name: str, code: str, health_url: str | None = None) -> Program:
    return Program(name, [sys.executable, "-u", "-c", code], health_url)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def pid_in(log: Path) -> int:
    wait_for(lambda: log.exists() and log.read_text().strip() != "", "a process id in the log")
    return int(log.read_text().split()[0])


SLEEPS = "import os, time; print(os.getpid()); time.sleep(60)"
STUBBORN = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid()); time.sleep(60)"
HAS_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-u', '-c', {SLEEPS!r}])"


def test_a_program_that_ends_is_named_with_the_end_of_its_log(supervisor: Supervisor) -> None:
    supervisor.start(python("service", "print('the disk is full'); raise SystemExit(3)"))

    with pytest.raises(ProcessError, match=r"The service has ended \(exit code 3\)(?s:.*)the disk is full"):
        supervisor.watch()


def test_a_killed_program_is_named_with_its_signal(supervisor: Supervisor) -> None:
    supervisor.start(python("jobs", SLEEPS))
    os.kill(pid_in(supervisor.log_of("jobs")), signal.SIGKILL)

    with pytest.raises(ProcessError, match=r"The jobs has ended \(signal 9\)"):
        supervisor.watch()


def test_stopping_ends_whole_groups(supervisor: Supervisor) -> None:
    supervisor.start(python("parent", HAS_A_CHILD))
    grandchild = pid_in(supervisor.log_of("parent"))

    supervisor.stop()

    wait_for(lambda: not alive(grandchild), "the grandchild's end")


def test_who_does_not_go_is_killed(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.processes.TERM_SECONDS", 0.3)
    supervisor.start(python("stubborn", STUBBORN))
    pid = pid_in(supervisor.log_of("stubborn"))

    supervisor.stop()

    assert not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_asks_to_stop(supervisor: Supervisor, number: signal.Signals) -> None:
    supervisor.start(python("jobs", SLEEPS))

    os.kill(os.getpid(), number)

    supervisor.watch()  # returns
    assert supervisor.stop_asked


def test_a_program_is_ready_when_its_address_answers(supervisor: Supervisor) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    assert not answers(url)
    program = Program("site", [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"], url)

    supervisor.start(program)

    assert supervisor.wait_until_ready(program)
    assert answers(url)


def test_a_program_that_never_answers_is_reported(supervisor: Supervisor) -> None:
    program = python("site", SLEEPS, "http://127.0.0.1:9/")
    supervisor.start(program)

    with pytest.raises(ProcessError, match=r"The site did not answer at http://127.0.0.1:9/ within 0 seconds"):
        supervisor.wait_until_ready(program, seconds=0.2)


def test_a_large_log_makes_room_for_a_new_one(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.processes.LARGEST_LOG", 10)
    log = supervisor.log_of("jobs")
    log.write_text("of many earlier runs\n")

    supervisor.start(python("jobs", SLEEPS))

    assert log.with_suffix(".log.1").read_text() == "of many earlier runs\n"
    assert last_lines(log.with_name("none.log")) == ""


def test_one_instance_runs_once(folder: Path) -> None:
    assert not is_running(folder)
    with only_one(folder):
        assert is_running(folder)
        with pytest.raises(ProcessError, match="already running"), only_one(folder):
            pass
    assert not is_running(folder)
    assert not is_running(folder / "nothing here")


def test_a_taken_port_is_named_with_the_way_out() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(ProcessError, match=rf"Port {port} for the dynahit service(?s:.*)DYNAHIT_PORT={port + 100}"):
            check_port("dynahit service", "DYNAHIT_PORT", port)

    check_port("dynahit service", "DYNAHIT_PORT", port)


LAUNCHER = """
import os, sys, time
from pathlib import Path
from app.cli.processes import Program, Supervisor
folder = Path(sys.argv[1])
with Supervisor(folder, {**os.environ, "DYNAHIT_HOME": str(folder)}) as supervisor:
    supervisor.start(Program("jobs", [sys.executable, "-u", "-c", sys.argv[2]]))
    supervisor.watch()
"""


def launcher(folder: Path, code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", LAUNCHER, str(folder), code], cwd=ROOT, start_new_session=True)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_a_killed_launcher_takes_its_processes_with_it(folder: Path) -> None:
    with launcher(folder, SLEEPS) as killed:
        pid = pid_in(folder / "logs" / "jobs.log")
        killed.kill()

    wait_for(lambda: not alive(pid), "the process's end")


@pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
def test_what_a_killed_launcher_left_behind_is_stopped_by_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.processes.TERM_SECONDS", 0.3)
    with launcher(folder, STUBBORN) as killed:
        pid = pid_in(folder / "logs" / "jobs.log")
        killed.kill()
    assert alive(pid)

    ended = stop_leftovers(folder)

    assert ended == ["jobs"]
    wait_for(lambda: not alive(pid), "the process's end")
    assert stop_leftovers(folder) == []


def test_a_stranger_with_an_old_number_is_left_alone(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) as stranger:
        (folder / "run.json").write_text(json.dumps({"jobs": stranger.pid}))

        assert stop_leftovers(folder) == []

        assert stranger.poll() is None
        stranger.kill()


def test_a_half_written_record_of_processes_is_no_obstacle(folder: Path) -> None:
    (folder / "run.json").write_text('{"jobs": 12')

    assert stop_leftovers(folder) == []
