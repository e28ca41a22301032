"""`dynahit model archive` and `dynahit model serve`: brings target models onto model servers."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from hits.errors import HitsError
from hits.tasks import TASKS, task
from inference.remote import archived, ray_serve

task_argument = click.argument("task_code", metavar="TASK", type=click.Choice(sorted(TASKS)))


@click.command("archive", short_help="Write a model archive for TorchServe.")
@task_argument
@click.option("--model", "reference", metavar="REFERENCE", help="Which model. [default: the one that comes with it]")
@click.option(
    "--to", "out", type=click.Path(file_okay=False, path_type=Path), default=Path("model-store"), show_default=True
)
@click.option("--name", help="The name that TorchServe gives it. [default: TASK]")
@click.option("--version", default="1.0", show_default=True, help="The version that TorchServe gives it.")
def archive(task_code: str, reference: str | None, out: Path, name: str | None, version: str) -> None:
    """Write a model archive (.mar) for TorchServe, with the model and the code that serves it.

    Register it under two names, NAME and NAME-explain, so that predictions and explanations never share a batch.
    """
    spec = task(task_code)
    chosen, called = reference or spec.default_model, name or task_code
    path = archived.write_archive(spec, archived.files_of(spec, chosen), out, name=called, version=version)
    click.echo(f"{path}: {path.stat().st_size / 1e6:.0f} MB, {chosen}")
    click.echo(f"Start TorchServe with --models {called}={path.name} {called}-explain={path.name}")


@click.command("serve", short_help="Serve target models on Ray until stopped.")
@click.option("--ray", "on_ray", is_flag=True, required=True, help="On Ray Serve, the engine for several machines.")
@click.option("--model", "models", multiple=True, metavar="TASK=REFERENCE", help="[default: every task's own model]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; a private network at most.")
@click.option("--port", default=8010, show_default=True, type=click.IntRange(1, 65535))
@click.option(
    "--address", metavar="ADDRESS", help="A running Ray cluster ('auto': this machine's). [default: a new one]"
)
@click.option(
    "--replicas", default="1", show_default=True, metavar="N|N-M", help="Copies per task; N-M grows with load."
)
@click.option("--explain-replicas", default=1, show_default=True, type=click.IntRange(1, 100))
@click.option("--cpus", type=float, help="Processors that a copy reserves, such as 0.5. [default: shared out]")
@click.option("--gpus", default=0.0, show_default=True, help="GPUs that a copy reserves; fractions are allowed.")
@click.option("--local-files-only", is_flag=True, help="Never download a model.")
def serve(  # one parameter per option
    on_ray: bool,  # the only place so far; named so that another can be added
    models: tuple[str, ...],
    host: str,
    port: int,
    address: str | None,
    replicas: str,
    explain_replicas: int,
    cpus: float | None,
    gpus: float,
    local_files_only: bool,
) -> None:
    """Serve target models until stopped; the service reaches them with DYNAHIT_ENGINE=ray."""
    least, most = replica_range(replicas)
    settings = ray_serve.RaySettings(
        host=host,
        port=port,
        head=address,
        min_replicas=least,
        max_replicas=most,
        explain_replicas=explain_replicas,
        cpus=cpus,
        gpus=gpus,
        local_files_only=local_files_only,
    )
    chosen = dict(assigned(text) for text in models) or {code: spec.default_model for code, spec in TASKS.items()}
    click.echo(f"Starting {', '.join(sorted(chosen))} on Ray Serve; this takes some seconds.")
    ray_serve.deploy(chosen, settings)
    click.echo(f"The models answer. DYNAHIT_ENGINE=ray DYNAHIT_ENGINE_URL=http://{host}:{port}")
    stop = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stop.set())
    # A wait without end is not woken by a signal that another thread of Ray's happens to get.
    while not stop.wait(1):
        pass
    ray_serve.shut_down()
    click.echo("The models were stopped.")


def replica_range(text: str) -> tuple[int, int]:
    """Return (least, most) of N or N-M. Raises click.BadParameter."""
    least, _, most = text.partition("-")
    if not least.isdecimal() or (most and not most.isdecimal()) or not 1 <= int(least) <= int(most or least) <= 1000:
        raise click.BadParameter(f"{text!r} is no number of copies such as 2 or 1-4", param_hint="--replicas")
    return int(least), int(most or least)


def assigned(text: str) -> tuple[str, str]:
    """Return (task code, reference) of TASK=REFERENCE. Raises click.BadParameter."""
    code, equals, reference = text.partition("=")
    if not equals or not reference:
        raise click.BadParameter(f"{text!r} is not of the form TASK=REFERENCE", param_hint="--model")
    try:
        return task(code).code, reference
    except HitsError as error:
        raise click.BadParameter(str(error), param_hint="--model") from error
