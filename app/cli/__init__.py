"""The `dynahit` command. Each group is imported when it is asked for, so that `dynahit --help` is quick."""

from __future__ import annotations

import difflib
import importlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from flask.cli import ScriptInfo
from pydantic import ValidationError
from sqlalchemy.exc import SQLAlchemyError

from app.cli.environment import load_environment
from hits.errors import HitsError
from payments.errors import PaymentsError

if TYPE_CHECKING:
    from flask import Flask

#: name -> (where the command is, what `dynahit --help` says about it)
COMMANDS: Mapping[str, tuple[str, str]] = {
    "up": ("app.cli.up:up", "Start marketplace, service and jobs on this machine."),
    "demo": ("app.cli.demo:demo", "Let a simulated crowd play the loop on a running instance."),
    "hits": ("app.cli.hits:group", "Launch batches of HITs and see how they stand."),
    "contexts": ("app.cli.contexts:group", "What writers start from: upload, list, retire."),
    "round": ("app.cli.round:group", "How a round's votes decide, and how they stand."),
    "jobs": ("app.cli.jobs:group", "Collect, approve, decide, open validation HITs."),
    "qualification": ("app.cli.qualification:group", "Say who may validate."),
    "payments": ("app.cli.payments:group", "Pay bonuses and report."),
    "workers": ("app.cli.workers:group", "Who has worked here, by pseudonym; erase somebody."),
    "staff": ("app.cli.staff:group", "Accounts for requesters and finance."),
    "export": ("app.cli.export:export", "Write frozen rounds as a data set, or a running one as JSON lines."),
    "import": ("app.cli.imports:import_", "Take a published data set in as a past round."),
    "model": ("app.cli.model:group", "Target models: list, evaluate, train, archive, serve."),
    "measure": ("app.cli.measure:group", "Models by rounds and base sets; bias of the data."),
    "serve": ("app.cli.serve:serve", "Run the dynahit service."),
    "marketplace": ("app.cli.marketplace:marketplace", "Run and operate the marketplace."),
    "db": ("flask_migrate.cli:db", "Bring the database to another version of its tables."),
}


class Commands(click.Group):
    """Finds commands by name in COMMANDS and shows our own errors as one message without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{name} is not a command.")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (HitsError, PaymentsError) as error:
            raise click.ClickException(str(error)) from error
        except ValidationError as error:
            raise click.ClickException(_settings_message(error)) from error
        except SQLAlchemyError as error:
            raise click.ClickException(
                f"The database can't be used: {str(error).splitlines()[0]}"
                " Is it there, and has it been brought up to date (`dynahit up` does)?"
            ) from error


def _settings_message(error: ValidationError) -> str:
    if error.title != "Settings":
        return str(error)
    lines = [
        # What is about several settings at once names them itself.
        f"  DYNAHIT_{'_'.join(map(str, one['loc'])).upper()}: {one['msg']}" if one["loc"] else f"  {one['msg']}"
        for one in error.errors()
    ]
    return "\n".join(
        [
            "The settings of this instance are not complete, or can't be used:",
            *lines,
            "Set them in the environment or in settings.env of the instance folder (DYNAHIT_HOME);"
            " `dynahit up` makes a whole instance.",
        ]
    )


def _create_app() -> Flask:
    from app.factory import create_app

    return create_app()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dynahit", prog_name="dynahit")
@click.pass_context
def dynahit(ctx: click.Context) -> None:
    """Dynamic adversarial data collection as paid crowd work, with its own marketplace."""
    ctx.ensure_object(ScriptInfo)


def main() -> None:
    """Run the command line, with the instance's settings.env as environment where the shell sets nothing else."""
    try:
        load_environment()
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from None
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    dynahit(obj=ScriptInfo(create_app=_create_app, load_dotenv_defaults=False))
