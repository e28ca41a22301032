"""`dynahit marketplace up`: a marketplace of one's own by one command, made once and found again."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from tests.launched import ROOT, free_ports


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[str]:
    """Run the command until it serves, yield what it said, and press Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "app.cli", "marketplace", "up", *arguments],
        cwd=ROOT,
        env={**os.environ, "DYNAHIT_HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if "Listening at" in line:
                break
        yield said
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_one_command_gives_a_marketplace_with_a_key_that_works_and_keeps_it(tmp_path: Path) -> None:
    folder = tmp_path / "market"
    (port,) = free_ports(1)

    with running(folder, "--port", str(port)) as said:
        found = dict(re.findall(r"(AWS_\w+)=(\S+)", said))
        assert found["AWS_ENDPOINT_URL_MTURK"] == f"http://127.0.0.1:{port}"
        mturk = boto3.client(
            "mturk",
            region_name=found["AWS_DEFAULT_REGION"],
            endpoint_url=found["AWS_ENDPOINT_URL_MTURK"],
            aws_access_key_id=found["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=found["AWS_SECRET_ACCESS_KEY"],
            config=Config(retries={"total_max_attempts": 1}),
        )
        assert mturk.get_account_balance()["AvailableBalance"] == "1000.00"
        invitation = re.findall(r"http\S+/join\?code=\S+", said)[0]
        with urllib.request.urlopen(invitation, timeout=30) as page:
            assert "Choose a user name" in page.read().decode()
    assert stat.S_IMODE((folder / "settings.env").stat().st_mode) == 0o600

    with running(folder) as said_again:
        assert "AWS_SECRET_ACCESS_KEY" not in said_again
        assert "join?code" not in said_again
        assert mturk.get_account_balance()["AvailableBalance"] == "1000.00"


def test_without_authentication_every_key_and_none_will_do(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with running(tmp_path / "market", "--port", str(port), "--insecure-no-auth") as said:
        assert "WARNING: no authentication" in said
        mturk = boto3.client(
            "mturk",
            region_name="us-east-1",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id="anything",
            aws_secret_access_key="goes",
            config=Config(retries={"total_max_attempts": 1}),
        )
        assert mturk.get_account_balance()["AvailableBalance"] == "10000.00"
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/",
            b"{}",
            {"X-Amz-Target": "MTurkRequesterServiceV20170117.ListHITs", "Content-Type": "application/x-amz-json-1.1"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert b'"NumResults":0' in answer.read()


def test_another_port_than_it_was_made_with_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from app.cli import marketplace_up

    served: list[str] = []
    monkeypatch.setattr(marketplace_up, "run_server", lambda bind, **_options: served.append(bind))
    monkeypatch.setenv("DYNAHIT_HOME", str(tmp_path / "market"))
    # What the command puts into the environment goes away with the test.
    for name in ("DATABASE_URL", "SECRET_KEY", "SITE_URL"):
        monkeypatch.setenv(f"MARKETPLACE_{name}", "")
        monkeypatch.delenv(f"MARKETPLACE_{name}")

    first = CliRunner().invoke(marketplace_up.up, ["--port", "8123"])
    second = CliRunner().invoke(marketplace_up.up, ["--port", "8124"])

    assert first.exit_code == 0, first.output
    assert served == ["127.0.0.1:8123"]
    assert second.exit_code == 2
    assert "was made for http://127.0.0.1:8123" in second.output
