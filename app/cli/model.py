"""`dynahit model ...`: target models, where they run and how good they are."""

from __future__ import annotations

import click

from app.cli.model_registry import list_models
from app.cli.model_serving import archive, serve
from app.cli.model_training import evaluate, train


@click.group("model")
def group() -> None:
    """Target models: list, evaluate, train, archive, serve."""


group.add_command(list_models)
group.add_command(archive)
group.add_command(serve)
group.add_command(evaluate)
group.add_command(train)
