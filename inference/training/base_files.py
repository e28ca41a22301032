"""Reads labelled rows out of files that a requester names: tables, JSON lines, and questions in SQuAD's form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hits.errors import InvalidInput
from hits.predictions import AnswerSpan
from hits.tasks import AnswerKind, TaskSpec
from inference.base_weights import file_sha256
from inference.labels import task_label
from inference.training.corpora import Asked, Row, one_vote, squad, table, text_of

LABEL: Final = "label"
#: Other names of the tasks' fields in published files, in lower case.
ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "statement": ("sentence", "text", "review"),
    "message": ("text", "tweet", "test_case"),
    "premise": ("sentence1", "context"),
    "hypothesis": ("sentence2", "statement"),
    "passage": ("context",),
    LABEL: ("gold_label", "label_gold", "sentiment"),
}
#: What stands in the place of a label where nobody could agree on one.
NO_LABEL: Final = ("", "-", "mixed", "none", "null")
_SHOWN: Final = 12


@dataclass(frozen=True)
class BaseFile:
    """A file of labelled rows: where it lies, under which licence, and which of its columns is which field.

    ``columns`` are task field (or label) -> column, ``labels`` the file's name of a label -> the task's; what is not
    said is found by name.
    """

    path: Path
    licence: str = "not stated"
    columns: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class BaseRows:
    """The rows of a file by its own split (train unless it says otherwise), and how many had no label."""

    train: list[Row | Asked]
    dev: list[Row | Asked]
    test: list[Row | Asked]
    without_label: int
    sha256: str


def read_base(spec: TaskSpec, file: BaseFile) -> BaseRows:
    """Return the rows of a file. Raises InvalidInput that names file, line and value of what can't be used."""
    path = file.path
    rows: dict[str, list[Row | Asked]] = {"train": [], "dev": [], "test": []}
    without = 0
    try:
        sha256 = file_sha256(path)
        if spec.kind is AnswerKind.SPAN and path.name.removesuffix(".gz").endswith(".json"):
            rows["train"].extend(squad(path))
        else:
            for where, row in _records(path):
                one = _asked(spec, file, where, row) if spec.kind is AnswerKind.SPAN else _row(spec, file, where, row)
                if one is None:
                    without += 1
                elif split := _split(row):
                    rows[split].append(one)
    except OSError as error:
        raise InvalidInput(
            f"{path} can't be read: {error.strerror or error}. Name another file with --base."
        ) from error
    except (UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path} can't be used: {error}.") from error
    if not any(rows.values()):
        raise InvalidInput(f"{path} holds no labelled row of the {spec.code} task. Name another file with --base.")
    return BaseRows(rows["train"], rows["dev"], rows["test"], without, sha256)


def _records(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    name = path.name.removesuffix(".gz")
    if name.endswith((".csv", ".tsv")):
        for number, cells in table(path):
            yield f"{path}:{number}", cells
    elif name.endswith(".jsonl"):
        for number, line in enumerate(text_of(path).split("\n"), start=1):
            if line.strip():
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise InvalidInput(f"{path}:{number} is no object: {line[:60]!r}.")
                yield f"{path}:{number}", row
    else:
        raise InvalidInput(
            f"{path} is of no known form. Name files that end in .csv, .tsv or .jsonl, or in .gz after it."
        )


def _row(spec: TaskSpec, file: BaseFile, where: str, row: Mapping[str, Any]) -> Row | None:
    label = _label(spec, file, where, row)
    texts = tuple(str(_cell(file, where, row, name) or "").strip() for name in spec.model_fields)
    if label is None or not all(texts):
        return None
    votes = _votes(spec, row, label)
    # Rows about one premise belong together.
    return Row(texts, label, votes, group=texts[0])


def _label(spec: TaskSpec, file: BaseFile, where: str, row: Mapping[str, Any]) -> str | None:
    value = _cell(file, where, row, LABEL)
    said = "" if value is None else str(value).strip()
    if said.casefold() in NO_LABEL:
        return None
    found = dict(file.labels).get(said) or task_label(said, spec.label_codes)
    if found not in spec.label_codes:
        raise InvalidInput(
            f"{where}: the label {said[:60]!r} is none of the {spec.code} task's: {', '.join(spec.label_codes)}."
            f" Say what it means with --base-label {said[:20] or 'NAME'}=LABEL."
        )
    return found


def _votes(spec: TaskSpec, row: Mapping[str, Any], label: str) -> tuple[float, ...]:
    """Return the parts of the votes where they are published and support the label, else all for the label."""
    given = row.get("label_distribution")
    if isinstance(given, Mapping):
        counts = [_count(given.get(code)) for code in spec.label_codes]
        if sum(counts) and counts[spec.label_codes.index(label)] == max(counts):
            return tuple(count / sum(counts) for count in counts)
    return one_vote(label, spec.label_codes)


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else int(value or 0)


def _asked(spec: TaskSpec, file: BaseFile, where: str, row: Mapping[str, Any]) -> Asked | None:
    passage, question = (str(_cell(file, where, row, name)) for name in spec.model_fields)
    answers = row.get("answers")
    if isinstance(answers, Mapping):
        pairs = list(zip(answers.get("text", ()), answers.get("answer_start", ()), strict=False))
    elif answers:
        pairs = [(one["text"], one["answer_start"]) for one in answers]
    else:
        if row.get(LABEL) is not None and str(row[LABEL]) != spec.goals[0]:
            return None
        pairs = [(_cell(file, where, row, "answer"), _cell(file, where, row, "answer_start"))]
    spans = []
    for text, start in pairs:
        at = int(start)
        if not text or passage[at : at + len(text)] != text:
            raise InvalidInput(f"{where}: the answer {str(text)[:60]!r} does not stand at {at} of the passage.")
        spans.append(AnswerSpan(at, at + len(text), text))
    return Asked(passage, question, tuple(spans), group=passage) if spans else None


def _cell(file: BaseFile, where: str, row: Mapping[str, Any], name: str) -> Any:
    stated = dict(file.columns).get(name)
    by_name = {column.casefold(): column for column in row}
    for column in (stated,) if stated else (name, *ALIASES.get(name, ())):
        if column.casefold() in by_name:
            return row[by_name[column.casefold()]]
    shown = ", ".join(list(row)[:_SHOWN])
    raise InvalidInput(
        f"{where} has no column {stated or name!r}; its columns are {shown}. Say which it is with"
        f" --base-column {name}=COLUMN."
    )


def _split(row: Mapping[str, Any]) -> str | None:
    """Return the row's split; None for one that its publisher has withheld."""
    said = str(row.get("split") or "train").casefold()
    return {"train": "train", "dev": "dev", "validation": "dev", "valid": "dev", "test": "test"}.get(said)
