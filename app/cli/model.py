"""`dynahit model ...`: target models, where they run and how good they are."""

from __future__ import annotations

import click

from app.cli.model_serving import archive, serve


@click.group("model")
def group() -> None:
    """Target models: list, evaluate, archive, serve."""


group.add_command(archive)
group.add_command(serve)
