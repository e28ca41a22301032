"""One example as it is published: its columns, what they mean, and the people in it under names of this export only."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Final

from hits.errors import InvalidInput
from hits.export.stored import StoredExample, StoredVote
from hits.states import Verdict
from hits.tasks import TaskSpec

#: Rises when a column changes its name or meaning; CHANGES says what came with each.
SCHEMA_VERSION: Final = 2
CHANGES: Final = {1: "The first version.", 2: "Each example tells its arm, in rounds that have arms."}

_VALID: Final = frozenset({Verdict.VALID_AND_MODEL_WRONG, Verdict.VALID_AND_MODEL_RIGHT})

#: What a value is: one of the words below, a list of it, or several by name.
Shape = str | list[Any] | dict[str, Any]
TEXT, WHOLE, NUMBER, YES_NO = "text", "whole", "number", "yes_no"


@dataclass(frozen=True)
class Column:
    """A column of the export."""

    shape: Shape
    meaning: str


_SPAN: Final = {"start": WHOLE, "end": WHOLE, "text": TEXT}
_ATTRIBUTION: Final = {
    "method": TEXT,
    "steps": WHOLE,
    "target": TEXT,
    "convergence_delta": NUMBER,
    "converged": YES_NO,
    "words": [{"field": TEXT, "start": WHOLE, "end": WHOLE, "text": TEXT, "score": NUMBER}],
}
_VOTE: Final = {
    "validator": TEXT,
    "label": TEXT,
    "flagged": YES_NO,
    "seconds": NUMBER,
    "correction": [{"field": TEXT, "value": TEXT}],
}


def columns(spec: TaskSpec, *, with_attributions: bool) -> dict[str, Column]:
    """Return the columns of a task's export, in their order. Raises InvalidInput for fields that can't be columns."""
    by_label = dict.fromkeys(spec.label_codes, NUMBER)
    answer = dict(_SPAN) if spec.span_input is not None else None
    member = {"model_id": TEXT, "revision": TEXT, "label": TEXT, "probabilities": by_label, "confidence": NUMBER}
    found = {"id": Column(TEXT, "The example's name; it stays the same in every export.")}
    starts = spec.span_input.start_name if spec.span_input is not None else None
    for name, (field, what) in text_columns(spec).items():
        found[name] = Column(WHOLE if field == starts else TEXT, what)
    found |= {
        "label": Column(TEXT, "The label that counts; null where there is none."),
        "label_from": Column(
            TEXT, "Who settled it: readers, requester, publisher (of an imported set), or writer alone."
        ),
        "verified": Column(YES_NO, "Whether somebody besides the writer settled the label."),
        "goal_label": Column(TEXT, "The label that the writer was asked for; of imported examples, the published one."),
        "verdict": Column(TEXT, "What the readers' votes say about the example, as the card describes."),
        "fooled": Column(YES_NO, "Whether the target model missed the goal; null where its answer is not known."),
        "model_id": Column(TEXT, "The target model that the writer was up against."),
        "model_revision": Column(TEXT, "Its version."),
        "model_label": Column(TEXT, "What it said."),
        "model_probabilities": Column(by_label, "Its probability of each label."),
        "model_confidence": Column(NUMBER, "Its probability of what it said."),
        "ensemble_policy": Column(TEXT, "Of several models: by which rule they answered together."),
        "ensemble_members": Column(
            [member | ({"answer": answer} if answer else {})], "What each of several models said."
        ),
        "votes": Column([_VOTE], "Every reader's judgement, in the order in which they were given."),
        "label_distribution": Column(dict.fromkeys(spec.label_codes, WHOLE), "How many readers gave each label."),
        "flags": Column(WHOLE, "How many readers reported it as unfit instead."),
        "why": Column(TEXT, "The writer's own remark on why the label is right."),
        "tries": Column(WHOLE, "Which of the writer's tries it was."),
        "seconds": Column(WHOLE, "Seconds from the opening of the page to the question to the model."),
        "writer": Column(TEXT, "Who wrote it, under a name of this export only; null where it is not known."),
        "round": Column(WHOLE, "The round of collection."),
        "arm": Column(TEXT, "Of a round with arms: under which conditions it was written, as the card says."),
        "split": Column(TEXT, "train, dev, test or withheld."),
        "collected_on": Column(TEXT, "The UTC day on which the model was asked; null for imported examples."),
        "published_id": Column(TEXT, "Of an imported example: its name in the published set."),
        "published_split": Column(TEXT, "Of an imported example: its split there, which need not be the one here."),
        "task_version": Column(WHOLE, "The version of the task's labels, fields and rules."),
    }
    if answer is not None:
        found["model_answer"] = Column(answer, "The stretch that the model marked.")
        found["answer_f1"] = Column(NUMBER, "The overlap of the model's answer with the writer's, in words.")
    if spec.vote_choices:
        choices = {choice.name: [TEXT] for choice in spec.vote_choices}
        found["details"] = Column(choices, "Said besides, by the readers who agree with the label or by the publisher.")
    if with_attributions:
        found["attribution"] = Column(_ATTRIBUTION, "How much each word spoke for what the model said.")
        found["goal_attribution"] = Column(_ATTRIBUTION, "The same for the label that the writer aimed at.")
    return found


@dataclass(frozen=True, slots=True)
class ExportedExample:
    """A published example. ``texts`` are the task's columns, by their names here; ``columns`` describes the others."""

    id: str
    texts: dict[str, str | int]
    label: str | None
    label_from: str | None
    verified: bool
    goal_label: str
    verdict: str
    fooled: bool | None
    model_id: str | None
    model_revision: str | None
    model_label: str | None
    model_probabilities: dict[str, float] | None
    model_answer: dict[str, Any] | None
    model_confidence: float | None
    answer_f1: float | None
    ensemble_policy: str | None
    ensemble_members: list[dict[str, Any]] | None
    votes: list[dict[str, Any]]
    label_distribution: dict[str, int]
    flags: int
    details: dict[str, list[str]] | None
    why: str | None
    tries: int | None
    seconds: int | None
    writer: str | None
    round: int
    arm: str | None
    split: str
    collected_on: str | None
    published_id: str | None
    published_split: str | None
    task_version: int
    attribution: dict[str, Any] | None
    goal_attribution: dict[str, Any] | None

    def record(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the example by column."""
        return {name: self.texts[name] if name in self.texts else getattr(self, name) for name in names}


class Pseudonyms:
    """The names of people in one export: the same person has the same name in it, and another one in any other."""

    def __init__(self, secret: str, export: str) -> None:
        self._key = hmac.new(secret.encode(), f"export {export}".encode(), hashlib.sha256).digest()

    def of(self, pseudonym: str | None) -> str | None:
        """Return the name of the person with this pseudonym of ours, None for somebody who is not known."""
        if pseudonym is None:
            return None
        return f"p-{hmac.new(self._key, pseudonym.encode(), hashlib.sha256).hexdigest()[:12]}"


def text_columns(spec: TaskSpec) -> dict[str, tuple[str, str]]:
    """Return the task's columns: name in the export -> (name in the task, what it is).

    A field whose name is one of the export's own columns gets ``_text`` behind it.
    """
    fields = [(field.name, field.label) for field in spec.context_fields]
    fields += [(item.name, item.label) for item in spec.answer_fields]
    span = spec.span_input
    if span is not None:
        fields.append((span.start_name, f"Where {span.label} begins in {span.of}, in characters"))
    taken = {field.name for field in dataclass_fields(ExportedExample)}
    columns = {f"{name}_text" if name in taken else name: (name, what) for name, what in fields}
    if len(columns) != len(fields):
        raise InvalidInput(
            f"The fields of the {spec.code} task can't be told from the export's own columns. Rename them."
        )
    return columns


def settled_label(stored: StoredExample) -> tuple[str | None, str | None]:
    """Return the label that counts and who settled it, both None where none counts."""
    if stored.verdict in _VALID:
        return stored.final_label, "requester" if stored.overridden else "readers"
    if stored.verdict is Verdict.NOT_VALIDATED:
        if stored.origin is not None:
            return stored.final_label, "publisher" if stored.final_label is not None else None
        return stored.goal_label, "writer"
    return None, None


def exported(spec: TaskSpec, task_version: int, stored: StoredExample, pseudonyms: Pseudonyms) -> ExportedExample:
    """Return the example as it is published."""
    label, label_from = settled_label(stored)
    model = stored.model or {}
    span = spec.span_input
    texts: dict[str, str | int] = {}
    for column, (name, _) in text_columns(spec).items():
        value = stored.context.get(name, stored.answer.get(name, ""))
        texts[column] = int(value or -1) if span is not None and name == span.start_name else value
    distribution = dict.fromkeys(spec.label_codes, 0) | Counter(vote.label for vote in stored.votes if vote.label)
    return ExportedExample(
        id=stored.public_id,
        texts=texts,
        label=label,
        label_from=label_from,
        verified=label_from not in (None, "writer"),
        goal_label=stored.goal_label,
        verdict=stored.verdict.value,
        fooled=stored.fooled,
        model_id=model.get("id"),
        model_revision=model.get("revision"),
        model_label=model.get("label"),
        model_probabilities=_by_label(spec, model.get("probabilities")),
        model_answer=_part(model.get("answer"), ("start", "end", "text")),
        model_confidence=model.get("confidence"),
        answer_f1=stored.answer_f1,
        ensemble_policy=model.get("policy"),
        ensemble_members=_members(spec, model.get("members")),
        votes=[_vote(vote, pseudonyms) for vote in stored.votes],
        label_distribution={code: distribution[code] for code in spec.label_codes},
        flags=sum(vote.flag_reason is not None for vote in stored.votes),
        details=_details(spec, stored, label),
        why=stored.why or None,
        tries=stored.tries,
        seconds=stored.seconds,
        writer=pseudonyms.of(stored.writer),
        round=stored.round,
        arm=stored.arm,
        split=stored.split.value if stored.split is not None else "withheld",
        collected_on=None if stored.origin is not None else f"{stored.asked_at:%Y-%m-%d}",
        published_id=stored.origin,
        published_split=(stored.published or {}).get("split"),
        task_version=task_version,
        attribution=_attribution(stored.attribution),
        goal_attribution=_attribution(stored.goal_attribution),
    )


def _vote(vote: StoredVote, pseudonyms: Pseudonyms) -> dict[str, Any]:
    correction = vote.correction or {}
    return {
        "validator": pseudonyms.of(vote.validator),
        "label": vote.label,
        # Why somebody reported a text is for the requester alone.
        "flagged": vote.flag_reason is not None,
        "seconds": vote.seconds,
        "correction": [{"field": name, "value": correction[name]} for name in sorted(correction)],
    }


def _details(spec: TaskSpec, stored: StoredExample, label: str | None) -> dict[str, list[str]] | None:
    names = [choice.name for choice in spec.vote_choices]
    if not names:
        return None
    said: dict[str, set[str]] = {name: set() for name in names}
    for name, values in ((stored.published or {}).get("details") or {}).items():
        if name in said:
            said[name].update(values)
    for vote in stored.votes:
        if vote.label is not None and vote.label == label:
            for name, value in (vote.details or {}).items():
                if name in said:
                    said[name].add(value)
    return {name: sorted(said[name]) for name in names}


def _by_label(spec: TaskSpec, said: Mapping[str, float] | None) -> dict[str, float] | None:
    return {code: said[code] for code in spec.label_codes if code in said} if said else None


def _part(value: Mapping[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    return None if value is None else {name: value.get(name) for name in names}


def _members(spec: TaskSpec, members: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    if not members:
        return None
    return [
        {
            "model_id": one.get("model_id"),
            "revision": one.get("revision"),
            "label": one.get("label"),
            "probabilities": _by_label(spec, one.get("probabilities")),
            "answer": _part(one.get("span"), ("start", "end", "text")),
            "confidence": one.get("confidence"),
        }
        for one in members
    ]


def _attribution(said: dict[str, Any] | None) -> dict[str, Any] | None:
    found = _part(said, ("method", "steps", "target", "convergence_delta", "converged"))
    if found is None or said is None:
        return None
    words = [_part(word, ("field", "start", "end", "text", "score")) for word in said["words"]]
    return {**found, "words": words}
