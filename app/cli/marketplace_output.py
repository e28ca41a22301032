"""What the commands of `dynahit marketplace` share: the engine they work on, tables for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import getpass
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from app.marketplace.settings import Settings, SettingsMissing, settings_from_environment
from hits.marketplace.console_views import Actor
from hits.marketplace.engine import Marketplace
from hits.marketplace.errors import OperatorError, SiteError
from hits.marketplace.views import Requester

WIDEST = 10_000
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def read_settings() -> Settings:
    """Return the marketplace's settings.

    Raises click.ClickException that names what is missing.
    """
    try:
        return settings_from_environment()
    except SettingsMissing as error:
        fail(error)


@contextmanager
def opened(settings: Settings) -> Iterator[Marketplace]:
    """Open the engine for one command; its refusals become the command's."""
    engine = Marketplace(settings.database_url, settings=settings.engine_settings())
    try:
        yield engine
    except (OperatorError, SiteError) as error:
        fail(error)
    finally:
        engine.close()


def fail(error: Exception) -> NoReturn:
    """End the command with an error's message.

    Raises click.ClickException.
    """
    raise click.ClickException(visible(str(error))) from error


def shell_user() -> Actor:
    """Return who runs this command, for the audit log."""
    try:
        login = getpass.getuser()
    except (OSError, KeyError):
        login = "unknown"
    return Actor.command_line(login)


def find_requester(engine: Marketplace, wanted: str) -> Requester:
    """Return the one requester with this id, name or e-mail address.

    Raises click.UsageError if there is none, or more than one.
    """
    found = [one for one in engine.requesters() if wanted in {one.requester_id, one.name, one.email}]
    if len(found) != 1:
        what = "No requester is" if not found else f"{len(found)} requesters are"
        raise click.UsageError(f"{what} called {wanted!r}. `dynahit marketplace requester list` shows their ids.")
    return found[0]


def record(entry: Any) -> dict[str, Any]:
    """Return a record of the engine as JSON has it: amounts as text, times in ISO 8601."""
    return {field.name: _plain(getattr(entry, field.name)) for field in dataclasses.fields(entry)}


def moment(at: datetime | None) -> str:
    """Return a time as tables show it."""
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else ""


def visible(text: str) -> str:
    """Return text that people typed without what a terminal would obey: control characters are spelled out."""
    return "".join(one if one in "\n\t" or unicodedata.category(one) != "Cc" else f"\\x{ord(one):02x}" for one in text)


def say(text: str) -> None:
    """Print a sentence that has something in it that people typed."""
    click.echo(visible(text))


def print_json(content: object) -> None:
    """Print JSON."""
    click.echo(json.dumps(content, indent=2))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> None:
    """Print a table, or a sentence if it has no rows."""
    if not rows:
        click.echo(empty)
        return
    table = Table(*heads)
    for row in rows:
        # What people typed is no markup.
        table.add_row(*(escape(visible(cell)) for cell in row))
    # Addresses and ids are there to be copied, so they are never cut to the window; a console measures to its width.
    width = max(Console().width, Console(width=WIDEST).measure(table).maximum)
    Console(width=width, soft_wrap=True).print(table)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return record(value)
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
