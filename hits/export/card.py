"""The dataset card (README.md, whose head tells `datasets` what to load) and the datasheet of an export."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hits.arms import Arm
from hits.export.rows import CHANGES, NUMBER, SCHEMA_VERSION, TEXT, WHOLE, YES_NO, Column, Shape
from hits.export.statistics import SplitFigures, Statistics
from hits.states import Split
from hits.tasks import AnswerKind, TaskSpec

USED: Final = (Split.TRAIN, Split.DEV, Split.TEST)
_DTYPES: Final = {TEXT: "string", WHOLE: "int64", NUMBER: "float64", YES_NO: "bool"}
_CATEGORIES: Final = {
    AnswerKind.SPAN: "question-answering",
    AnswerKind.PAIR: "text-classification",
    AnswerKind.TEXT: "text-classification",
    AnswerKind.FIELDS: "text-classification",
}
_SIZES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))

VERDICTS: Final = {
    "valid_and_model_wrong": "readers settled on a label, and the model had said another",
    "valid_and_model_right": "readers settled on the label that the model had said",
    "not_validated": "nobody was asked here: the model was right, or the example was published with its label",
    "invalid": "readers were against it: no label counts",
    "unresolved": "readers did not agree: no label counts",
}


@dataclass(frozen=True)
class Edition:
    """What an export is: of which rounds (their manifests, with the hash of each), under which licences."""

    name: str
    spec: TaskSpec
    manifests: Sequence[tuple[Mapping[str, Any], str]]
    licences: Sequence[str]
    with_attributions: bool
    version: str
    #: Differs for every other content.
    identity: str


def card(edition: Edition, figures: Statistics, columns: Mapping[str, Column]) -> str:
    """Return README.md."""
    spec = edition.spec
    splits = [split for split in USED if split.value in figures.by_split]
    rounds = ", ".join(str(manifest["round"]) for manifest, _ in edition.manifests)
    lines = [
        "---",
        *_yaml(edition, figures, columns),
        "---",
        "",
        f"# {edition.name}",
        "",
        f"{spec.summary} Collected round by round: people write against a language model that answers at once,"
        " and other"
        " people, who know neither the goal nor the model's answer, say what is right.",
        "",
        *([f"**{spec.content_warning}**", ""] if spec.content_warning else []),
        f"- Task: `{spec.code}`, language `{spec.language}`, rounds {rounds}",
        f"- Licence: {', '.join(edition.licences)}",
        f"- Version {edition.version} (`{edition.identity}`), schema {SCHEMA_VERSION}; [datasheet](DATASHEET.md),"
        " [manifests](manifest.json),"
        " [Croissant](croissant.json)",
        "",
        "```python",
        "from datasets import load_dataset",
        'data = load_dataset("DIR")             # the splits below',
        'withheld = load_dataset("DIR", "withheld")',
        "```",
        "",
        "The same rows stand in `jsonl/` as JSON lines.",
        "",
        "## Splits",
        "",
        *_table(
            ["split", "examples", "verified", "fooled the model", "writers", *_labels(figures)],
            [
                [name, *_split_row(figures.by_split[name], _labels(figures))]
                for name in (*(split.value for split in splits), Split.WITHHELD.value)
                if name in figures.by_split
            ],
        ),
        "",
        "No writer, no text, no context and no family of examples stands in two of train, dev and test; dev and"
        " test hold"
        " verified examples only. Withheld are examples without a label that counts, and those that would tie"
        " two splits"
        " together: do not train on them if you test on the others.",
        "",
        "## Rounds",
        "",
        *_table(
            ["round", "frozen on", "examples", "fooled the model", "target model", "manifest"],
            [
                _round_row(manifest, digest, figures.by_round[manifest["round"]])
                for manifest, digest in edition.manifests
            ],
        ),
        "",
        "## Verdicts and votes",
        "",
        *_table(
            ["verdict", "examples", "meaning"],
            [[f"`{name}`", f"{count:,}", VERDICTS.get(name, "")] for name, count in _ranked(figures.whole.verdicts)],
        ),
        "",
        *_table(
            ["readers of an example", "examples"],
            [[str(votes), f"{count:,}"] for votes, count in sorted(figures.whole.votes.items())],
        ),
        "",
        f"Of {figures.whole.judged:,} examples that readers judged, {figures.whole.unanimous:,} got the same label from"
        f" all. Flags: {figures.whole.flags:,}.",
        "",
        "## Columns",
        "",
        *_table(["column", "type", "meaning"], [[f"`{n}`", _type(c.shape), c.meaning] for n, c in columns.items()]),
        "",
        "## Changes",
        "",
        *[f"- Schema {number}: {what}" for number, what in sorted(CHANGES.items(), reverse=True)],
        *[
            f"- Round {manifest['round']}: frozen {manifest['frozen_at'][:10]},"
            f" {manifest['examples']['count']:,} examples"
            for manifest, _ in reversed(edition.manifests)
        ],
        "",
    ]
    return "\n".join(lines)


def datasheet(edition: Edition, figures: Statistics) -> str:
    """Return DATASHEET.md, by the questions of Gebru et al. (2021)."""
    spec, whole = edition.spec, figures.whole
    here = [manifest for manifest, _ in edition.manifests if not manifest["origin"]]
    imported = [manifest for manifest, _ in edition.manifests if manifest["origin"]]
    lines = [
        f"# Datasheet of {edition.name}",
        "",
        "## Motivation",
        "",
        "Data on which today's models err, found by people on purpose, and verified by others: to test models, and to"
        " train better ones.",
        "",
        "## Composition",
        "",
        f"- {whole.examples:,} examples, {whole.verified:,} of them with a label that somebody besides the writer"
        f" settled; {_share(whole.fooled, whole.model_known)} of those whose model's answer is known fooled it.",
        f"- Labels: {', '.join(f'{name} {count:,}' for name, count in _ranked(whole.labels))}.",
        f"- Settled by: {', '.join(f'{name} {count:,}' for name, count in _ranked(whole.settled_by))}.",
        f"- {_mean(whole.words, whole.examples)} words in an example on average.",
        f"- {len(whole.writers):,} writers and {len(whole.validators):,} readers are told apart, under names"
        " made for this"
        " export alone. They can't be matched with those of another export, except where the same examples"
        " stand in both.",
        *(["- Content: " + spec.content_warning] if spec.content_warning else []),
        "",
        "## Collection",
        "",
        *[line for manifest in here for line in _collected(manifest)],
        *[line for manifest in imported for line in _imported(manifest)],
        "",
        "The rules that people wrote by:",
        "",
        *[f"- {rule}" for rule in spec.rules],
        "",
        "## Preprocessing",
        "",
        "Texts stand as they were written, without the white space around them. Retracted examples are left"
        " out. Before a"
        " round is frozen, texts that hold something like a worker's id must be looked at.",
        "",
        "## Uses",
        "",
        "The examples are not a sample of what people write: they were written to mislead one model. Error"
        " rates on them"
        " say how a model does on such texts, not how it does in use. Models that were themselves the target do"
        " worse here"
        " than others by construction.",
        "",
        "## Distribution",
        "",
        f"Licence: {', '.join(edition.licences)}. The bytes of this export follow from the manifests in"
        " manifest.json and"
        " the options of the command; checksums.txt holds the hash of every file.",
        "",
        "## Maintenance",
        "",
        "A frozen round does not change. What a person wrote about an example (`why`) is removed on that"
        " person's request,"
        " from exports made afterwards.",
        "",
    ]
    return "\n".join(lines)


def _yaml(edition: Edition, figures: Statistics, columns: Mapping[str, Column]) -> list[str]:
    # A JSON string is a YAML string.
    size = next((name for most, name in _SIZES if figures.whole.examples < most), "1M<n<10M")
    lines = [
        f"pretty_name: {json.dumps(edition.name)}",
        "language:",
        f"- {json.dumps(edition.spec.language)}",
        "license:",
    ]
    lines += [f"- {json.dumps(licence)}" for licence in edition.licences]
    lines += ["task_categories:", f"- {_CATEGORIES[edition.spec.kind]}", "size_categories:", f'- "{size}"', "configs:"]
    used = [split.value for split in USED if split.value in figures.by_split]
    withheld = [name for name in (Split.WITHHELD.value,) if name in figures.by_split]
    listed = {name: splits for name, splits in (("default", used), ("withheld", withheld)) if splits}
    for name, splits in listed.items():
        lines += [f"- config_name: {name}", *(["  default: true"] if name == "default" else []), "  data_files:"]
        for split in splits:
            lines += [f"  - split: {split}", f"    path: data/{split}.parquet"]
    lines.append("dataset_info:")
    for name in listed:
        lines += [f"- config_name: {name}", "  features:"]
        for column, described in columns.items():
            lines += _feature(column, described.shape, "  ")
    return lines


def _feature(name: str, shape: Shape, indent: str) -> list[str]:
    """Return a column as `datasets` describes it."""
    head = f"{indent}- name: {name}"
    if isinstance(shape, str):
        return [head, f"{indent}  dtype: {_DTYPES[shape]}"]
    if isinstance(shape, list) and isinstance(shape[0], str):
        return [head, f"{indent}  list: {_DTYPES[shape[0]]}"]
    parts = shape[0] if isinstance(shape, list) else shape
    kind = "list" if isinstance(shape, list) else "struct"
    return [head, f"{indent}  {kind}:", *(line for n, p in parts.items() for line in _feature(n, p, indent + "  "))]


def _type(shape: Shape) -> str:
    if isinstance(shape, str):
        return _DTYPES[shape]
    if isinstance(shape, list):
        return f"list of {_type(shape[0])}"
    return f"{{{', '.join(shape)}}}"


def _labels(figures: Statistics) -> list[str]:
    return [name for name, _ in _ranked(figures.whole.labels)]


def _split_row(figures: SplitFigures, labels: Sequence[str]) -> list[str]:
    counts = (figures.examples, figures.verified, figures.fooled, len(figures.writers))
    return [*(f"{count:,}" for count in counts), *(f"{figures.labels[label]:,}" for label in labels)]


def _round_row(manifest: Mapping[str, Any], digest: str, figures: SplitFigures) -> list[str]:
    models = ", ".join(f"{model['id']} ({model['revision'][:12]})" for model in manifest["models"]) or "not known"
    return [
        str(manifest["round"]),
        manifest["frozen_at"][:10],
        f"{figures.examples:,}",
        _share(figures.fooled, figures.model_known),
        models.replace("|", "\\|"),
        f"`{digest[:12]}`",
    ]


def _collected(manifest: Mapping[str, Any]) -> list[str]:
    lines = []
    for batch in manifest["batches"]:
        if batch["kind"] == "creation":
            lines.append(
                f"- Round {manifest['round']}, writers: ${batch['reward']} for {batch['tries']} tries, said to take"
                f" {batch['minutes']} minutes, and ${batch['bonus']} for an example that fooled the model and"
                " was verified."
            )
        elif batch["kind"] == "validation":
            lines.append(
                f"- Round {manifest['round']}, readers: ${batch['reward']} for up to {batch['items']} examples."
            )
    # Rounds that were frozen earlier don't say it.
    lines += [
        f"- Round {manifest['round']}, contexts: {one['contexts']:,} from {one['source']}, licence {one['licence']}."
        for one in manifest.get("context_uploads", ())
    ]
    said = manifest["configuration"]
    lines.append(
        f"- Round {manifest['round']}: {said['agreeing_votes']} votes must agree, {said['max_votes']} are asked"
        " at most;"
        f" {said['non_fooling_percent']} of a hundred examples that did not fool the model were judged as well."
    )
    for plan in said.get("arms", ()):
        shares = sum(arm["share"] for arm in plan["arms"])
        drawn = [f"`{arm['name']}` ({arm['share']} of {shares}: {Arm.of(arm).words})" for arm in plan["arms"]]
        lines.append(
            f"- Round {manifest['round']}: writers were drawn by lot for one of these arms, with seed {plan['seed']}"
            f" (version {plan['version']}): {'; '.join(drawn)}."
        )
    return lines


def _imported(manifest: Mapping[str, Any]) -> list[str]:
    return [
        f"- Round {manifest['round']}: imported from {one['title']} ({one['licence']}), files"
        f" {', '.join(file['name'] for file in one['files'])}. {one['note']}"
        for one in manifest["origin"]
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / whole:.1%})" if whole else "not known"


def _mean(total: int, count: int) -> str:
    return f"{total / count:.1f}" if count else "0"
