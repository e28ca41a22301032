"""The labelled rows that models are measured on: splits of frozen rounds, base test sets, functional tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from hits.errors import Finding, InvalidInput, Refused
from hits.export import find_round
from hits.export.rows import settled_label
from hits.export.stored import StoredExample, order_of, stored_examples
from hits.frozen import is_frozen
from hits.imports.files import rows_of
from hits.models import Attempt, Example
from hits.states import Split
from hits.tasks import TaskSpec, task

#: The splits that may be measured on; what is withheld belongs to none.
MEASURED_SPLITS: Final = (Split.TRAIN, Split.DEV, Split.TEST)
_LISTED: Final = 20
_MOST_CHARACTERS: Final = 20_000


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """What the model reads, in the order of the task's model fields, and what is right.

    ``right`` holds the one label, or of readers of passages every accepted answer. ``parts`` names what the row belongs
    to, by kind: the functionality it tests, the group it is about.
    """

    texts: tuple[str, ...]
    right: tuple[str, ...]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class RowSet:
    """A set by name. ``load`` reads the rows, the first time, always in one order; ``sha256`` tells which they are."""

    task_code: str
    name: str
    kind: str
    sha256: str
    load: Callable[[], Sequence[LabelledRow]]
    round_number: int | None = None
    split: str | None = None


@dataclass(frozen=True)
class Columns:
    """How a file calls things: field of ours -> column there, and label there -> label of ours."""

    names: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


class InvalidSet(InvalidInput):
    """A file of labelled rows that can't be used; ``findings`` are the first things wrong with it, by line."""

    def __init__(self, path: Path, findings: Sequence[Finding], count: int) -> None:
        shown = "\n".join(f"  {one}" for one in findings[:_LISTED])
        more = f"\n  and {count - _LISTED:,} more" if count > _LISTED else ""
        super().__init__(f"{path} can't be measured on, {count:,} rows are wrong:\n{shown}{more}\nMend them first.")
        self.findings = tuple(findings)


def split_set(session: Session, task_code: str, number: int, split: Split) -> RowSet:
    """Return a split of a frozen round as a set; rows without a settled label are left out when they are read.

    Reads the round only; the rows are read in transactions of their own, which end. Raises NotFound, and Refused for a
    round that is not frozen, or whose split is empty.
    """
    round_ = find_round(session, task_code, number)
    if not is_frozen(round_):
        raise Refused(
            f"Round {number} of the {task_code} task is not frozen, so that its splits are not decided."
            f" `dynahit round freeze {task_code} {number}` freezes it."
        )
    manifest = round_.manifest or {}
    if not manifest.get("splits", {}).get("counts", {}).get(split.value):
        raise Refused(
            f"Round {number} of the {task_code} task has no {split.value} split. Measure on another one with --split."
        )
    round_id = round_.id
    identity = hashlib.sha256(f"{round_.manifest_sha256} {split.value}".encode()).hexdigest()
    session.rollback()

    @cache
    def load() -> Sequence[LabelledRow]:
        return [
            row for row in (row_of(task(task_code), one) for one in split_examples(session, round_id, split)) if row
        ]

    return RowSet(task_code, f"round {number} {split.value}", "round", identity, load, number, split.value)


def split_examples(session: Session, round_id: int, split: Split | None = None) -> Iterator[StoredExample]:
    """Yield a round's examples of a split, or all, a page at a time, in the one order; ends the transaction."""
    wanted = (
        select(Example.id, Attempt.public_id)
        .join(Attempt, Attempt.id == Example.attempt_id)
        .where(Example.round_id == round_id, Example.retracted_at.is_(None))
    )
    if split is not None:
        wanted = wanted.where(Example.split == split)
    order = order_of(iter([[(row[0], row[1]) for row in session.execute(wanted)]]))
    session.rollback()
    for page in order.pages():
        found = stored_examples(session, page)
        session.rollback()
        yield from found


def row_of(spec: TaskSpec, stored: StoredExample) -> LabelledRow | None:
    """Return an example as a labelled row, None where no label is settled or where readers have thrown it out."""
    label, _ = settled_label(stored)
    if label is None or label in spec.rejecting_labels:
        return None
    texts = tuple(spec.model_input(stored.context, stored.answer)[name] for name in spec.model_fields)
    span = spec.span_input
    right = (label,) if span is None else (stored.answer[span.name],)
    return LabelledRow(texts, right, parts_of_stored(spec, stored, label))


def parts_of_stored(spec: TaskSpec, stored: StoredExample, label: str) -> dict[str, tuple[str, ...]]:
    """Return what was said besides about an example, by the publisher or by readers who agree with its label."""
    found: dict[str, set[str]] = {}
    names = {choice.name for choice in spec.vote_choices}
    for name, values in ((stored.published or {}).get("details") or {}).items():
        if name in names:
            found.setdefault(name, set()).update(values)
    for vote in stored.votes:
        if vote.label == label:
            for name, value in (vote.details or {}).items():
                if name in names:
                    found.setdefault(name, set()).add(value)
    return {name: tuple(sorted(values)) for name, values in sorted(found.items())}


def file_set(
    spec: TaskSpec, name: str, path: Path, columns: Columns | None = None, *, functions: bool = False
) -> RowSet:
    """Return the rows of a CSV, TSV or JSON lines file as a set: a base test set, or functional tests.

    The columns are the task's model fields and ``label``, or for readers of passages ``answer`` or a list ``answers``;
    of functional tests ``functionality``, and if it is there ``target``. Raises InvalidSet with all that is wrong,
    InvalidInput.
    """
    rows = _file_rows(spec, path, columns or Columns(), functions=functions)
    return rows_set(spec, name, rows, kind="functions" if functions else "base")


def rows_set(spec: TaskSpec, name: str, rows: Sequence[LabelledRow], *, kind: str = "base") -> RowSet:
    """Return rows that are at hand as a set. Raises InvalidInput for none, or for a name that can't be shown."""
    if not rows:
        raise InvalidInput(f"The set {name!r} holds no rows, so that nothing can be measured on it.")
    if not name.strip() or len(name) > 120 or not name.isprintable():
        raise InvalidInput(f"{name!r} is no name for a set. Take up to 120 printable characters.")
    return RowSet(spec.code, name, kind, sha256_of(rows), lambda: rows)


def sha256_of(rows: Sequence[LabelledRow]) -> str:
    """Return the hash over rows in their order."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(
            json.dumps([row.texts, row.right, dict(row.parts)], ensure_ascii=False, sort_keys=True).encode() + b"\n"
        )
    return digest.hexdigest()


def _file_rows(spec: TaskSpec, path: Path, columns: Columns, *, functions: bool) -> list[LabelledRow]:
    found: list[LabelledRow] = []
    wrong: list[Finding] = []
    count = 0
    for line, row in rows_of(path):
        try:
            found.append(_file_row(spec, row, columns, functions=functions))
        except ValueError as error:
            count += 1
            if len(wrong) < _LISTED:
                wrong.append(Finding(line, str(error)))
    if count:
        raise InvalidSet(path, wrong, count)
    return found


def _file_row(spec: TaskSpec, row: Mapping[str, Any], columns: Columns, *, functions: bool) -> LabelledRow:
    def value(name: str) -> str:
        column = columns.names.get(name, name)
        if column not in row:
            raise ValueError(f"it has no {column!r}; it has {', '.join(map(repr, row))}")
        said = row[column]
        if not isinstance(said, str | int | bool) or not str(said).strip():
            raise ValueError(f"its {column!r} is {str(said)[:60]!r} instead of a text")
        if len(str(said)) > _MOST_CHARACTERS:
            raise ValueError(f"its {column!r} has {len(str(said)):,} characters; {_MOST_CHARACTERS:,} are the most")
        return str(said)

    texts = tuple(value(name) for name in spec.model_fields)
    if spec.span_input is not None:
        column = columns.names.get("answers", "answers")
        answers = row.get(column)
        right = tuple(map(str, answers)) if isinstance(answers, list) and answers else (value("answer"),)
    else:
        said = value("label").strip()
        label = columns.labels.get(said, said)
        if label not in spec.label_codes:
            raise ValueError(
                f"its label {said!r} is none of the {spec.code} task: {', '.join(spec.label_codes)}"
                f" (--label {said}=OURS says which one is meant)"
            )
        right = (label,)
    if not functions:
        return LabelledRow(texts, right)
    parts = {"functionality": (value("functionality"),)}
    if str(row.get(columns.names.get("target", "target")) or "").strip():
        parts["target"] = (value("target"),)
    return LabelledRow(texts, right, parts)
