"""The service's web server is started as the model in it needs it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli import instance as instances
from app.cli import serve as module
from app.cli.serve import serve, server_arguments


def test_one_process_without_preload_and_without_a_log_of_addresses() -> None:
    arguments = server_arguments("127.0.0.1:8001", threads=4)

    assert arguments[:3] == [sys.executable, "-m", "gunicorn"]
    assert "--workers=1" in arguments
    assert "--threads=4" in arguments
    assert "--bind=127.0.0.1:8001" in arguments
    assert not [one for one in arguments if "preload" in one or "access-log" in one]


@pytest.mark.parametrize(
    ("options", "bound"), [((), "127.0.0.1:9001"), (("--bind", "127.0.0.1:7000"), "127.0.0.1:7000")]
)
def test_it_listens_where_the_instance_says_or_the_option(
    options: tuple[str, ...], bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = instances.open_instance(tmp_path, port=9001)
    key = {"DYNAHIT_AWS_ACCESS_KEY_ID": "AKIA", "DYNAHIT_AWS_SECRET_ACCESS_KEY": "secret"}
    for name, value in {**instance.stored, **key, "DYNAHIT_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    started: list[list[str]] = []
    monkeypatch.setattr(module.os, "execv", lambda _path, arguments: started.append(arguments))

    result = CliRunner().invoke(serve, options)

    assert result.exit_code == 0, result.output
    assert f"--bind={bound}" in started[0]
