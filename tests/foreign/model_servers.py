"""Real model servers in environments of their own: TorchServe, Ray Serve, MLServer. They borrow torch from here."""

from __future__ import annotations

import json
import os
import signal
import site
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.conftest import skip_unless_ci

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 240


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def environment_with(folder: Path, *packages: str) -> Path:
    """Make a virtual environment with these packages, and after them all that is installed here; return its bin."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        skip_unless_ci(f"{packages} can't be installed here: {installed.stderr.strip()[-300:]}")
    libraries = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # What the server brought comes first on the path.
    Path(libraries, "borrowed.pth").write_text("\n".join([*site.getsitepackages(), str(ROOT)]) + "\n")
    return folder / "bin"


@contextmanager
def running(
    command: Sequence[str | Path], *, folder: Path, environment: dict[str, str], ready: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in a process group of its own until the block ends; ``ready`` answers 200 when it is up."""
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not answers(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{command[0]} is not up:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.5)
        yield process
    finally:
        for name in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, name)
                process.wait(timeout=20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def answers(url: str) -> bool:
    """Tell whether the address answers 200."""
    try:
        return requests.get(url, timeout=5).status_code == 200
    except requests.RequestException:
        return False


@contextmanager
def torchserve(
    folder: Path, binaries: Path, store: Path, models: dict[str, str], *, batch: int = 1, workers: int = 1
) -> Iterator[str]:
    """Run TorchServe with token authorization over archives; yields its address. Its key file is in ``folder``."""
    inference, management, metrics, grpc, grpc_management = free_ports(5)
    described = {
        name: {
            "1.0": {
                "defaultVersion": True,
                "marName": archive,
                "minWorkers": workers,
                "maxWorkers": workers,
                "batchSize": batch,
                "maxBatchDelay": 5,
                "responseTimeout": 60,
            }
        }
        for name, archive in models.items()
    }
    (folder / "config.properties").write_text(
        f"inference_address=http://127.0.0.1:{inference}\n"
        f"management_address=http://127.0.0.1:{management}\n"
        f"metrics_address=http://127.0.0.1:{metrics}\n"
        f"grpc_inference_address=127.0.0.1\ngrpc_inference_port={grpc}\n"
        f"grpc_management_address=127.0.0.1\ngrpc_management_port={grpc_management}\n"
        "number_of_netty_threads=2\njob_queue_size=100\ndisable_system_metrics=true\nvmargs=-Xmx256m\n"
        f'model_snapshot={{"name": "startup.cfg", "modelCount": {len(models)}, "models": {json.dumps(described)}}}\n'
    )
    environment = {
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "TEMP": str(folder),
        "LOG_LOCATION": str(folder / "logs"),
        "METRICS_LOCATION": str(folder / "logs"),
        "HF_HUB_OFFLINE": "1",
    }
    command = [binaries / "torchserve", "--start", "--foreground", "--ts-config", "config.properties"]
    url = f"http://127.0.0.1:{inference}"
    with running(
        [*command, "--model-store", store],
        folder=folder,
        environment=environment,
        # The management port says when the server is up; the inference port wants a token first.
        ready=f"http://127.0.0.1:{management}/api-description",
    ):
        try:
            yield url
        finally:
            # A signal ends the wrapper only and leaves the Java process with the ports.
            subprocess.run(
                [binaries / "torchserve", "--stop"],
                env={**os.environ, **environment},
                capture_output=True,
                check=False,
                timeout=60,
            )
