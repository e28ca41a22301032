"""`dynahit`: every command is there, and what goes wrong is one message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from flask import Flask
from flask.cli import ScriptInfo

from app.cli import COMMANDS, dynahit
from app.settings import Settings

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_that_help_names_is_there(name: str) -> None:
    command = dynahit.get_command(click.Context(dynahit), name)

    assert command is not None
    assert command.name == name
    assert COMMANDS[name][1].endswith(".")


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(dynahit, ["lauch"])

    assert result.exit_code == 2
    assert "No such command 'lauch'." in result.stderr


def test_an_unknown_command_that_is_nearly_one_is_corrected() -> None:
    result = CliRunner().invoke(dynahit, ["hit", "status"])

    assert result.exit_code == 2
    assert "Did you mean 'hits'?" in result.stderr


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"db"}))
def test_no_line_of_help_is_cut_off_in_a_terminal_of_80_columns(name: str) -> None:
    def groups(command: click.Command, path: list[str]) -> list[list[str]]:
        if not isinstance(command, click.Group):
            return []
        return [path, *(one for sub, below in command.commands.items() for one in groups(below, [*path, sub]))]

    command = dynahit.get_command(click.Context(dynahit), name)
    assert command is not None

    for path in groups(command, [name]):
        shown = CliRunner().invoke(dynahit, [*path, "--help"], terminal_width=80).stdout
        assert [line for line in shown.splitlines() if line.startswith("  ") and line.endswith("...")] == []


def test_missing_settings_are_named_with_the_way_out(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "app.cli", "hits", "status"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "DYNAHIT_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 1
    assert "DYNAHIT_DATABASE_URL" in run.stderr
    assert "dynahit up" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_database_without_tables_is_said(tmp_path: Path) -> None:
    from app.factory import create_app
    from tests import market

    def application() -> Flask:
        return create_app(_settings(tmp_path), engine=market)  # type: ignore[arg-type]  # no command asks the model

    def _settings(folder: Path) -> Settings:
        return market.settings(database_url=f"sqlite:///{folder / 'empty.db'}")

    result = CliRunner().invoke(dynahit, ["hits", "status"], obj=ScriptInfo(create_app=application))

    assert result.exit_code == 1
    assert "The database can't be used" in result.stderr
    assert "Traceback" not in result.output


def test_a_broken_settings_file_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "settings.env").write_bytes(b"\xff\xfe")
    run = subprocess.run(
        [sys.executable, "-m", "app.cli", "hits", "status"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "DYNAHIT_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 1
    assert "settings.env can't be read" in run.stderr
    assert "Traceback" not in run.stderr
