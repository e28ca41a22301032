"""Commands find the instance's settings by themselves, and the shell may override each."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from app.cli.environment import load_environment, read_settings


def test_a_missing_file_holds_nothing(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == {}


def test_the_shell_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.env").write_text(
        "DYNAHIT_SECRET_KEY='of the file'\nMARKETPLACE_SITE_URL='http://127.0.0.1:1'\n"
    )
    monkeypatch.setattr(os, "environ", {"DYNAHIT_HOME": str(tmp_path), "DYNAHIT_SECRET_KEY": "of the shell"})

    load_environment()

    assert os.environ["DYNAHIT_SECRET_KEY"] == "of the shell"
    assert os.environ["MARKETPLACE_SITE_URL"] == "http://127.0.0.1:1"


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "settings.env").write_bytes(b"DYNAHIT_SECRET_KEY=\xff\xfe\n")

    with pytest.raises(click.ClickException, match=r"settings\.env can't be read: it is not UTF-8"):
        read_settings(tmp_path)
