"""Exports frozen rounds as a data set that others can use. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import InvalidInput, NotFound, Refused
from hits.export import find_round
from hits.export.rows import Pseudonyms, exported
from hits.export.stored import id_pages, order_of, stored_examples
from hits.frozen import is_frozen
from hits.manifest import Digest, require_unchanged
from hits.models import Round
from hits.tasks import task

DEFAULT_LICENCE: Final = "cc-by-4.0"

Advance = Callable[[int], None]


@dataclass(frozen=True)
class ExportPlan:
    """What an export would hold, by the manifests of its rounds; ``identity`` is the one that its card will name."""

    task_code: str
    rounds: tuple[int, ...]
    examples: int
    splits: dict[str, int]
    licences: tuple[str, ...]
    #: What the export is called in its card; it follows from the manifests and the options.
    identity: str
    #: Packages that are not of the version with which the rounds were frozen; the bytes may differ from earlier ones.
    other_packages: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.task_code,
            "rounds": list(self.rounds),
            "examples": self.examples,
            "splits": self.splits,
            "licences": list(self.licences),
            "identity": self.identity,
            "other_packages": list(self.other_packages),
        }


def plan_export(
    session: Session, task_code: str, numbers: Sequence[int], *, licence: str, with_attributions: bool
) -> ExportPlan:
    """Return what an export would hold; without ``numbers``, of all frozen rounds of the task. Changes nothing.

    Raises NotFound, InvalidInput, and Refused for a round that is not frozen.
    """
    rounds = _rounds(session, task_code, numbers)
    plan = _planned(rounds, licence, with_attributions)
    session.rollback()
    return plan


def export_dataset(
    session: Session,
    task_code: str,
    numbers: Sequence[int],
    folder: Path,
    *,
    licence: str,
    with_attributions: bool,
    secret: str,
    advance: Advance = lambda count: None,
) -> ExportPlan:
    """Write the data set to ``folder``, which must not hold anything, and return what it holds.

    The same manifests and options give the same bytes on the same instance (``secret`` keys the names of people). The
    folder appears whole or not at all. Raises as plan_export does, InvalidInput for a folder that can't be used, and
    Refused when the data are not those that were frozen.
    """
    from hits.export.folder import DatasetFolder, edition_of

    rounds = _rounds(session, task_code, numbers)
    plan = _planned(rounds, licence, with_attributions)
    spec = task(task_code)
    manifests = [(dict(one.manifest or {}), one.manifest_sha256 or "") for one in rounds]
    edition = edition_of(spec, manifests, licences=plan.licences, with_attributions=with_attributions)
    pseudonyms = Pseudonyms(secret, edition.identity)
    session.rollback()
    with DatasetFolder(folder, edition) as dataset:
        for round_ in rounds:
            digest = Digest()
            for page in order_of(id_pages(session, round_.id)).pages():
                for stored in stored_examples(session, page):
                    digest.add(stored)
                    dataset.add(exported(spec, round_.task_version, stored, pseudonyms))
                # On SQLite an open transaction keeps everybody else from writing.
                session.rollback()
                advance(len(page))
            require_unchanged(round_, digest)
        dataset.finish()
    return plan


def _rounds(session: Session, task_code: str, numbers: Sequence[int]) -> list[Round]:
    spec = task(task_code)
    if numbers:
        found = [find_round(session, spec.code, number) for number in sorted(set(numbers))]
    else:
        of_task = select(Round).where(Round.task_code == spec.code).order_by(Round.number)
        found = [one for one in session.scalars(of_task) if is_frozen(one)]
        if not found:
            raise NotFound(
                f"No round of the {spec.code} task is frozen. `dynahit round freeze {spec.code} N` freezes one."
            )
    for one in found:
        if not is_frozen(one):
            raise Refused(
                f"Round {one.number} of the {spec.code} task is not frozen, so that its data may still change."
                f" Freeze it (`dynahit round freeze {spec.code} {one.number}`), or look into it with --out FILE instead"
                " of --to."
            )
        session.expunge(one)
    return found


def _planned(rounds: Sequence[Round], licence: str, with_attributions: bool) -> ExportPlan:
    from app.operations.freeze import code_in_use
    from hits.export.folder import edition_of

    if not licence.strip() or len(licence) > 80 or not licence.isprintable():
        raise InvalidInput(f"{licence!r} is not the name of a licence. Use its short name, such as cc-by-4.0.")
    licences = list[str]()
    splits: dict[str, int] = {}
    other = set()
    versions = code_in_use()["packages"]
    for one in rounds:
        manifest = one.manifest or {}
        for name in [origin["licence"] for origin in one.origin or ()] or [licence.strip()]:
            if name not in licences:
                licences.append(name)
        for split, count in manifest["splits"]["counts"].items():
            splits[split] = splits.get(split, 0) + count
        was = manifest["code"]["packages"]
        other |= {
            f"{name} {versions[name]}, not {was[name]}" for name in was if was[name] != versions.get(name, was[name])
        }
    spec = task(rounds[0].task_code)
    manifests = [(one.manifest or {}, one.manifest_sha256 or "") for one in rounds]
    edition = edition_of(spec, manifests, licences=licences, with_attributions=with_attributions)
    return ExportPlan(
        spec.code,
        tuple(one.number for one in rounds),
        sum(splits.values()),
        splits,
        tuple(licences),
        edition.identity,
        tuple(sorted(other)),
    )
