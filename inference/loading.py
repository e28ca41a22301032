"""Loads the model that a reference names, ready for a task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hits.tasks import AnswerKind, TaskSpec
from inference.bert import LoadedModel
from inference.classify import Classifier
from inference.embedded import load_embedded
from inference.ensembles import Ensemble, Majority, MeanProbability, Policy, RandomMember, WrongMembers
from inference.errors import ModelNotLoaded
from inference.hub import fetch
from inference.published import load_published
from inference.read_span import SpanReader
from inference.references import (
    EmbeddedReference,
    EnsembleReference,
    FolderReference,
    HubReference,
    Reference,
    ServedReference,
    parse_reference,
)
from inference.remote.served import RemoteEngine, served_model
from inference.runtime import single_threaded_torch
from inference.target import TargetModel

LocalReference = EmbeddedReference | HubReference | FolderReference


def load_model(
    spec: TaskSpec,
    reference: Reference | str,
    *,
    base: Path | None = None,
    local_files_only: bool = False,
    remote: RemoteEngine | None = None,
) -> TargetModel:
    """Return the model, checked against the task. ``base`` is the folder of the embedded models' base weights.

    A served model is one of ``remote``; torch isn't imported for it.

    Raises ModelNotLoaded in one of the forms of inference.errors, InvalidInput for a reference that is none.
    """
    if spec.kind is AnswerKind.FIELDS:
        raise ModelNotLoaded(f"The task {spec.code!r} reads {list(spec.model_fields)}, more than these models can.")
    parsed = parse_reference(reference) if isinstance(reference, str) else reference
    if isinstance(parsed, EnsembleReference):
        members = [
            load_model(spec, member, base=base, local_files_only=local_files_only, remote=remote)
            for member in parsed.members
        ]
        return Ensemble(members, policy_of(parsed))
    if isinstance(parsed, ServedReference):
        return served_model(spec, parsed, remote)
    return asked_as(spec, _load(spec, parsed, base=base, local_files_only=local_files_only))


def published_model(
    spec: TaskSpec, folder: Path, *, model_id: str, revision: str | None, stated_labels: Sequence[str] = ()
) -> TargetModel:
    """Return the model in the folder under a name it has elsewhere. Raises as load_model does."""
    single_threaded_torch()
    labels = () if spec.kind is AnswerKind.SPAN else spec.label_codes
    loaded = load_published(
        folder, labels, source=model_id, model_id=model_id, revision=revision, stated_labels=stated_labels
    )
    return asked_as(spec, loaded)


def asked_as(spec: TaskSpec, loaded: LoadedModel) -> TargetModel:
    """Return the loaded model, asked with the labels and fields of the task. Raises ModelNotLoaded."""
    if spec.kind is AnswerKind.SPAN:
        return SpanReader(loaded, spec.model_fields)
    return Classifier(loaded, spec.label_codes, spec.model_fields)


def policy_of(reference: EnsembleReference) -> Policy:
    """Return the policy that an ensemble's reference names."""
    if reference.policy == "random":
        return RandomMember(reference.seed)
    if reference.policy == "mean":
        return MeanProbability()
    if reference.needed is not None:
        return WrongMembers(reference.needed)
    return Majority()


def _load(spec: TaskSpec, reference: LocalReference, *, base: Path | None, local_files_only: bool) -> LoadedModel:
    single_threaded_torch()
    labels = () if spec.kind is AnswerKind.SPAN else spec.label_codes
    if isinstance(reference, EmbeddedReference):
        return load_embedded(reference.task_code, labels, base=base, local_files_only=local_files_only)
    if isinstance(reference, HubReference):
        snapshot = fetch(reference, local_files_only=local_files_only)
        return load_published(
            snapshot.folder,
            labels,
            source=str(reference),
            model_id=reference.repository,
            revision=snapshot.commit,
            stated_labels=reference.labels,
        )
    return load_published(
        reference.folder,
        labels,
        source=str(reference),
        model_id=f"dir:{reference.folder.name}",
        stated_labels=reference.labels,
    )
