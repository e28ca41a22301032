"""`dynahit model list`: which model serves which task, and every version that has answered so far."""

from __future__ import annotations

import json
from typing import Any

import click
from flask.cli import with_appcontext
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from sqlalchemy import select

from app.extensions import db
from app.factory import model_references
from app.services import services
from hits.models import ModelVersion


@click.command("list", short_help="List the models that are set and that answered.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@with_appcontext
def list_models(as_json: bool) -> None:
    """List the models that are set, and the versions that have answered."""
    references = model_references(services().settings)
    versions = db.session.scalars(select(ModelVersion).order_by(ModelVersion.task_code, ModelVersion.id)).all()
    if as_json:
        click.echo(json.dumps({"models": references, "versions": [_row(one) for one in versions]}, indent=2))
        return
    console = Console()
    chosen = Table("task", "model", title="Set (DYNAHIT_MODELS)")
    for code, reference in sorted(references.items()):
        chosen.add_row(code, escape(reference))
    console.print(chosen)
    columns = ("task", "model", "revision", "parameters", "licence", "weights", "its labels")
    seen = Table(
        *(Column(name, overflow="fold") for name in columns),
        title="Have answered",
        caption=None if versions else "None yet; a version is added with its first answer.",
    )
    for one in versions:
        seen.add_row(
            one.task_code,
            escape(one.model_id),
            one.revision[:8],
            "" if one.parameters is None else f"{one.parameters / 1e6:.1f} M",
            escape(one.licence or "not stated"),
            (one.weights_sha256 or "")[:8],
            escape(", ".join(f"{own}={label}" for own, label in (one.label_map or {}).items())),
        )
    console.print(seen)


def _row(one: ModelVersion) -> dict[str, Any]:
    return {
        "task": one.task_code,
        "model_id": one.model_id,
        "revision": one.revision,
        "labels": one.labels,
        "label_map": one.label_map,
        "weights_sha256": one.weights_sha256,
        "licence": one.licence,
        "parameters": one.parameters,
        "seed": one.seed,
        "first_seen_at": one.first_seen_at.isoformat(),
    }
