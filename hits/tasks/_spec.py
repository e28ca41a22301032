"""What a task is: data and a few pure functions. Forms, checks, labels, quiz and export follow from it."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hits.errors import InvalidAnswer, InvalidInput


@dataclass(frozen=True)
class Label:
    """One label of a task. ``code`` is stored; ``name`` is read by people; ``goal`` completes "Write a ...".

    ``choice`` is the sentence a validator picks.
    """

    code: str
    name: str
    goal: str
    choice: str


@dataclass(frozen=True)
class ContextField:
    """One part of what the writer starts from."""

    name: str
    label: str
    max_characters: int


@dataclass(frozen=True)
class TextInput:
    """One text that the writer gives."""

    name: str
    label: str
    hint: str
    max_characters: int
    rows: int = 3


@dataclass(frozen=True)
class WorkedExample:
    """An answer with its label and the reason, shown in the instructions."""

    answer: Mapping[str, str]
    label: str
    note: str


@dataclass(frozen=True)
class QuizItem:
    """One question of the task's quiz; ``right`` is a label code and never reaches the browser."""

    text: str
    right: str
    feedback: str


@dataclass(frozen=True)
class TaskSpec:
    """A task, whole. ``version`` rises with every change of labels, fields or rules.

    ``model_fields`` names the context and answer fields that the model reads, in order.
    """

    code: str
    version: int
    title: str
    description: str
    keywords: tuple[str, ...]
    summary: str
    instructions: tuple[str, ...]
    rules: tuple[str, ...]
    labels: tuple[Label, ...]
    context_fields: tuple[ContextField, ...]
    answer_fields: tuple[TextInput, ...]
    model_fields: tuple[str, ...]
    validation_question: str
    examples: tuple[WorkedExample, ...]
    quiz: tuple[QuizItem, ...]
    default_model: str
    language: str = "en"
    content_warning: str | None = None
    _by_code: dict[str, Label] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_code", {label.code: label for label in self.labels})

    @property
    def label_codes(self) -> tuple[str, ...]:
        """The stored label names, in the task's order."""
        return tuple(label.code for label in self.labels)

    def label(self, code: str) -> Label:
        """Return the label. Raises InvalidInput for a label that the task does not have."""
        try:
            return self._by_code[code]
        except KeyError:
            raise InvalidInput(
                f"{code!r} is not a label of the {self.code} task. Its labels are {', '.join(self.label_codes)}."
            ) from None

    def goal_sentence(self, goal_label: str) -> str:
        """Return what the writer is asked to do, in one sentence."""
        return f"Write {self.label(goal_label).goal} that the model takes for something else."

    def is_fooled(self, goal_label: str, predicted_label: str) -> bool:
        """Tell whether the model was wrong, given the label that the writer aimed at."""
        return self.label(goal_label).code != self.label(predicted_label).code

    def model_input(self, context: Mapping[str, str], answer: Mapping[str, str]) -> dict[str, str]:
        """Return what the model reads, by field name."""
        known = {**context, **answer}
        return {name: known[name] for name in self.model_fields}

    def check_answer(self, raw: Mapping[str, object]) -> dict[str, str]:
        """Return the answer by field, trimmed, exactly as written otherwise. Raises InvalidAnswer."""
        return {
            item.name: checked_text(item.name, item.label, raw.get(item.name), item.max_characters)
            for item in self.answer_fields
        }

    def check_context(self, raw: object) -> dict[str, str]:
        """Return the context by field. Raises InvalidAnswer for missing, unknown or unusable fields."""
        if not isinstance(raw, Mapping):
            raise InvalidAnswer("", f"expected an object with {self._context_names()}, not {type(raw).__name__}")
        unknown = sorted(set(raw) - {item.name for item in self.context_fields})
        if unknown:
            raise InvalidAnswer(
                unknown[0], f"unknown field {unknown[0]!r}; this task's contexts have {self._context_names()}"
            )
        return {
            item.name: checked_text(item.name, item.label, raw.get(item.name), item.max_characters)
            for item in self.context_fields
        }

    def _context_names(self) -> str:
        return ", ".join(repr(item.name) for item in self.context_fields)


def checked_text(name: str, label: str, value: object, max_characters: int) -> str:
    """Return ``value`` with its outer white space trimmed and line ends as ``\\n``; nothing inside is changed.

    Raises InvalidAnswer when it is missing, not text, empty, too long, or holds characters that can't be stored
    (NUL and other control characters, lone surrogates).
    """
    if value is None:
        raise InvalidAnswer(name, f"{label} is missing.")
    if not isinstance(value, str):
        raise InvalidAnswer(name, f"{label} must be text, not {type(value).__name__}.")
    text = value.replace("\r\n", "\n").replace("\r", "\n").strip()
    if not any(unicodedata.category(character)[0] not in "ZC" for character in text):
        raise InvalidAnswer(name, f"{label} is empty. Write something first; no try was used.")
    if len(text) > max_characters:
        raise InvalidAnswer(
            name, f"{label} has {len(text):,} characters; {max_characters:,} are the most. Shorten it; no try was used."
        )
    for position, character in enumerate(text):
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
            raise InvalidAnswer(
                name,
                f"{label} holds a character that can't be stored: U+{ord(character):04X} at {position + 1}. Remove it.",
            )
    return text


def digest_of(fields: Mapping[str, str]) -> str:
    """Return a stable SHA-256 over fields, by which equal answers and equal contexts are recognised."""
    return hashlib.sha256(json.dumps(dict(fields), sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def incomplete(spec: TaskSpec) -> Sequence[str]:
    """Return what is wrong with a task's specification; an empty list for a good one."""
    findings = []
    if len(set(spec.label_codes)) != len(spec.labels) or len(spec.labels) < 2:
        findings.append("labels must be two or more, each with its own code")
    names = [item.name for item in spec.context_fields] + [item.name for item in spec.answer_fields]
    if len(set(names)) != len(names):
        findings.append("context and answer fields must have different names")
    findings += [
        f"model field {name!r} is neither a context nor an answer field"
        for name in spec.model_fields
        if name not in names
    ]
    findings += [
        f"quiz item {item.text!r} has unknown label {item.right!r}"
        for item in spec.quiz
        if item.right not in spec.label_codes
    ]
    for example in spec.examples:
        if example.label not in spec.label_codes:
            findings.append(f"example has unknown label {example.label!r}")
        try:
            spec.check_answer(example.answer)
        except InvalidAnswer as error:
            findings.append(f"example fails its own check: {error}")
    return findings
