"""Gives every command the settings of this instance, whatever the shell already has."""

from __future__ import annotations

import os
from pathlib import Path

import click
from dotenv import dotenv_values

from app.settings import instance_folder


def read_settings(folder: Path) -> dict[str, str]:
    """Return what ``settings.env`` holds, empty when there is none. Raises ClickException when it can't be read."""
    path = folder / "settings.env"
    try:
        found = dotenv_values(path, interpolate=False) if path.exists() else {}
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.ClickException(
            f"{path} can't be read: {cause}. Mend it, or put it back from your backup; nothing was changed."
        ) from error
    return {name: value for name, value in found.items() if value is not None}


def load_environment() -> None:
    """Make this instance's settings the process's environment; what is set there already wins."""
    for name, value in read_settings(instance_folder()).items():
        os.environ.setdefault(name, value)
