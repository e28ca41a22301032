"""Gives every command the settings of this instance, whatever the shell already has."""

from __future__ import annotations

import os
from pathlib import Path

from dotenv import dotenv_values

from app.settings import instance_folder


def read_settings(folder: Path) -> dict[str, str]:
    """Return what ``settings.env`` holds, empty when there is none."""
    found = dotenv_values(folder / "settings.env", interpolate=False) if (folder / "settings.env").exists() else {}
    return {name: value for name, value in found.items() if value is not None}


def load_environment() -> None:
    """Make this instance's settings the process's environment; what is set there already wins."""
    for name, value in read_settings(instance_folder()).items():
        os.environ.setdefault(name, value)
