"""`dynahit up`: makes this machine's instance if it is new, and runs marketplace, service and jobs until Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from alembic.util.exc import CommandError

from app.cli import instance as instances
from app.cli.instance import Instance, InstanceError, port_of
from app.cli.processes import (
    ROOT,
    ProcessError,
    Program,
    Supervisor,
    check_port,
    only_one,
    stop_leftovers,
)
from app.cli.serve import server_arguments
from app.settings import instance_folder
from hits.clock import SystemClock

SAMPLE = ROOT / "docs" / "examples" / "prompts.jsonl"
SAMPLE_LAUNCH = ("sentiment", "--round", "1", "--hits", "12", "--reward", "0.30", "--bonus", "0.30", "--tries", "5")

PORT = click.IntRange(1, 65535)


def programs(instance: Instance) -> list[Program]:
    """Return the three processes of an instance, in the order in which they need each other."""
    own = [sys.executable, "-m", "app.cli"]
    marketplace, service = (f"127.0.0.1:{port_of(url)}" for url in (instance.marketplace_url, instance.service_url))
    return [
        Program(
            "marketplace", [*own, "marketplace", "serve", "--bind", marketplace], f"{instance.marketplace_url}/healthz"
        ),
        Program("service", server_arguments(service), f"{instance.service_url}/healthz"),
        Program("jobs", [*own, "jobs", "run"]),
    ]


def ports(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the two ports; they are an instance's own, so they matter when it is made."""
    port = click.option("--port", type=PORT, envvar="DYNAHIT_PORT", help="Port of the dynahit service. [default: 8001]")
    marketplace_port = click.option(
        "--marketplace-port", type=PORT, envvar="MARKETPLACE_PORT", help="The marketplace's. [default: 8000]"
    )
    return port(marketplace_port(function))


@click.command("up")
@ports
@click.option("--sample/--no-sample", default=True, help="Open round 1 of sentiment with sample prompts, once.")
def up(port: int | None, marketplace_port: int | None, sample: bool) -> None:
    """Start everything on this machine: marketplace, dynahit service and jobs. Ctrl-C stops it."""
    try:
        run(instance_folder(), port, marketplace_port, sample=sample, when_ready=watch)
    except (InstanceError, ProcessError, CommandError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or instance_folder()} can't be used: {error.strerror or error}. Make room or give"
            " yourself the right to write there, and start again; what is there already stays as it is."
        ) from error


def run(
    folder: Path,
    port: int | None,
    marketplace_port: int | None,
    *,
    sample: bool,
    when_ready: Callable[[Instance, Supervisor], None],
) -> None:
    """Make or find the instance in ``folder``, start its processes, call ``when_ready``, and stop them.

    Raises InstanceError and ProcessError; no process is left behind either way.
    """
    began = time.monotonic()
    new = not (folder / "settings.env").exists()
    instance = instances.open_instance(folder, port=port, marketplace_port=marketplace_port)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with only_one(folder):
        for name in stop_leftovers(folder):
            say(f"Stopped the {name} that an earlier run had left behind.")
        check_port("marketplace", "MARKETPLACE_PORT", port_of(instance.marketplace_url))
        check_port("dynahit service", "DYNAHIT_PORT", port_of(instance.service_url))
        say(f"{'Making a new instance' if new else 'Starting the instance'} in {folder}")
        instances.store_instance(instance)
        step("databases", lambda: instances.upgrade_databases(instance))
        instance = instances.furnish_marketplace(instance)
        instances.furnish_service(instance, SystemClock())
        with Supervisor(folder, instance.environment()) as supervisor:
            for program in programs(instance):
                started = time.monotonic()
                supervisor.start(program)
                if not supervisor.wait_until_ready(program):
                    return
                say(f"  {program.name:<12} ready ({time.monotonic() - started:.1f} s)")
            if sample:
                step("round 1", lambda: launch_sample(instance))
            say(f"Ready after {time.monotonic() - began:.0f} seconds.\n")
            when_ready(instance, supervisor)
            say("\nStopping …")
        say("Stopped. Everything is kept; `make up` goes on from here.")


def watch(instance: Instance, supervisor: Supervisor) -> None:
    """Show what a person needs and stay until the run is asked to stop."""
    say(welcome(instance))
    supervisor.watch()


def launch_sample(instance: Instance) -> None:
    """Put the sample batch on the marketplace through the command that requesters use; once done it stays done.

    Raises InstanceError with what the command said when it fails.
    """
    done = instance.folder / "sample-launched"
    if done.exists():
        return
    answer = command(instance, "hits", "launch", *SAMPLE_LAUNCH, "--contexts", str(SAMPLE), "--yes")
    if answer.returncode != 0:
        raise InstanceError(f"The sample batch could not be launched:\n{answer.stdout}{answer.stderr}".rstrip())
    done.touch(mode=0o600)


def command(instance: Instance, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a `dynahit` command on the instance and return what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        cwd=ROOT,
        env=instance.environment(),
        capture_output=True,
        text=True,
        check=False,
        # Ctrl-C belongs to the launcher, which lets a launch end and then stops.
        start_new_session=True,
    )


def step(name: str, work: Callable[[], None]) -> None:
    """Do a piece of work and say how long it took."""
    started = time.monotonic()
    work()
    say(f"  {name:<12} ready ({time.monotonic() - started:.1f} s)")


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    click.echo(text)
    sys.stdout.flush()


def welcome(instance: Instance) -> str:
    """Return addresses, invitations, logins and the next commands."""
    site, service, credentials = instance.marketplace_url, instance.service_url, instance.credentials
    prefix = "" if instance.folder == ROOT / ".dynahit" else f"DYNAHIT_HOME={instance.folder} "
    lines = [
        f"Worker site        {site}",
        "  Each invitation makes one account; open each in a private window of its own.",
    ]
    for invitation in instances.invitations(instance):
        state = "used" if invitation.used_at else f"{site}/join?code={invitation.code}"
        lines.append(f"  {invitation.note:<12} {state}")
    lines.append(f"  For more people: {prefix}.venv/bin/dynahit marketplace invite")
    lines += [
        "",
        f"dynahit            {service}",
        "  For requesters and finance.",
        f"  name {credentials.staff_name}   password {credentials.staff_password}",
        f"Requester console  {site}/requester",
        f"  e-mail {credentials.requester_email}   password {credentials.requester_password}",
        f"  (both are in {instance.folder / 'credentials.txt'})",
        "",
        "Next, in another terminal:",
        *commands(
            prefix,
            ("make demo", "lets a simulated crowd play"),
            (".venv/bin/dynahit hits status", "shows the batch"),
            (".venv/bin/dynahit payments settle --plan", "lists who is owed which bonus"),
            (".venv/bin/dynahit export sentiment --round 1", "writes what was collected"),
        ),
        "Your own boto3 or aws CLI talks to this marketplace with:",
        f"  export AWS_ENDPOINT_URL_MTURK={site}",
        "  export AWS_DEFAULT_REGION=us-east-1",
        f"  and the access key in {instance.folder / 'settings.env'}",
        "",
        "The model loads beside the pages; the first answer may take some seconds.",
        "Ctrl-C stops everything.",
    ]
    return "\n".join(lines)


def commands(prefix: str, *rows: tuple[str, str]) -> Sequence[str]:
    """Return command lines with their explanations in one column."""
    width = max(len(row[0]) for row in rows)
    return [f"  {prefix}{line:<{width}}   {meaning}" for line, meaning in rows]
