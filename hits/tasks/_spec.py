"""What a task is: data and a few pure functions. Forms, checks, labels, quiz and export follow from it."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from hits.errors import AmbiguousAnswer, InvalidAnswer, InvalidInput
from hits.predictions import MemberAnswer, Prediction
from hits.tasks._spans import character_offset, occurrences, widened
from hits.tasks._squad import RIGHT_FROM_F1, answer_words, token_f1

#: What a page calls other things than a task's fields.
PAGE_NAMES = frozenset(
    {"ask", "said", "token", "tries", "trouble", "verdict", "warming", "why"}
    | {"browser_keys", "browser_pasted", "browser_pastes", "browser_seconds"}
)


class AnswerKind(StrEnum):
    """What a model of a task does; decides which models can serve it."""

    TEXT = "text"
    """Classifies one text."""
    PAIR = "pair"
    """Classifies two texts, in the order of ``model_fields``."""
    SPAN = "span"
    """Answers with a stretch of the first of ``model_fields``, given the second."""
    FIELDS = "fields"
    """Classifies three texts or more: only by a model of the task's own."""


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
    min_words: int = 1


@dataclass(frozen=True)
class SpanInput:
    """A stretch of the context field ``of`` that the writer marks, of at most ``max_words`` words if that is given.

    Stored as two texts: the stretch itself under ``name``, and under ``start_name`` where it begins, in characters.
    A browser, which counts otherwise, sends ``utf16_name`` instead.
    """

    name: str
    label: str
    hint: str
    of: str
    max_words: int | None = None

    @property
    def full_hint(self) -> str:
        """The hint as the page gives it, with the limit."""
        return self.hint if self.max_words is None else f"{self.hint} {self.max_words} words at most."

    @property
    def start_name(self) -> str:
        return f"{self.name}_start"

    @property
    def utf16_name(self) -> str:
        return f"{self.name}_start_utf16"


@dataclass(frozen=True)
class Choices:
    """Something that a validator may say besides the label, one of ``options`` (code, words); never required.

    Asked only together with one of the labels in ``with_labels``.
    """

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    with_labels: tuple[str, ...]


@dataclass(frozen=True)
class WorkedExample:
    """An answer with its label and the reason, shown in the instructions; ``context`` where it needs one."""

    answer: Mapping[str, str]
    label: str
    note: str
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class QuizItem:
    """One question of the readers' quiz; ``right`` is a label code and never reaches the browser.

    ``context`` where the question needs one, and ``marked`` the stretch of it that is marked as the answer.
    """

    text: str
    right: str
    feedback: str
    context: Mapping[str, str] = field(default_factory=dict)
    marked: str = ""


class Fit(StrEnum):
    """Whether what somebody wrote for a goal will do."""

    FITS = "fits"
    OTHER_LABEL = "other_label"
    BREAKS_RULE = "breaks_rule"


@dataclass(frozen=True)
class WriterItem:
    """One question of the writers' quiz: would ``text``, written for the label ``goal``, do?

    ``right`` never reaches the browser. ``context`` and ``marked`` as in QuizItem.
    """

    text: str
    goal: str
    right: Fit
    feedback: str
    context: Mapping[str, str] = field(default_factory=dict)
    marked: str = ""


@dataclass(frozen=True)
class Judgement:
    """What a prediction means for the writer. ``f1`` is the overlap of the two spans, None for tasks without.

    ``shown`` is the answer that the writer sees: the only one, or one member's of an ensemble.
    """

    predicted_label: str
    fooled: bool
    f1: float | None
    shown: MemberAnswer


@dataclass(frozen=True)
class TaskSpec:
    """A task, whole. ``version`` rises with every change of labels, fields or rules.

    ``model_fields`` names the context and answer fields that the model reads, in order. ``goals`` are the labels that
    writers can be asked for, all of them if left empty. Readers who agree on one of ``rejecting_labels`` reject the
    example. In ``goal_words`` stands what the writer is asked to do, with ``{goal}`` for the label's words.
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
    answer_fields: tuple[TextInput | SpanInput, ...]
    model_fields: tuple[str, ...]
    validation_question: str
    examples: tuple[WorkedExample, ...]
    quiz: tuple[QuizItem, ...]
    default_model: str
    language: str = "en"
    content_warning: str | None = None
    #: Of a task with a warning: what its HITs' titles say, and what its consent text adds.
    content_note: str = ""
    consent_addition: str | None = None
    goals: tuple[str, ...] = ()
    rejecting_labels: tuple[str, ...] = ()
    goal_words: str = "Write {goal} that the model takes for something else."
    #: How one of its examples is called, for readers and in lists.
    item_name: str = "statement"
    vote_choices: tuple[Choices, ...] = ()
    #: ``quiz`` is for those who judge, this one for those who write.
    writer_quiz: tuple[WriterItem, ...] = ()
    _by_code: dict[str, Label] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_code", {label.code: label for label in self.labels})
        object.__setattr__(self, "goals", self.goals or self.label_codes)

    @property
    def kind(self) -> AnswerKind:
        """What a model of this task does."""
        if self.span_input is not None:
            return AnswerKind.SPAN
        return {1: AnswerKind.TEXT, 2: AnswerKind.PAIR}.get(len(self.model_fields), AnswerKind.FIELDS)

    @property
    def span_input(self) -> SpanInput | None:
        """The answer that is marked in the context, if the task has one."""
        return next((item for item in self.answer_fields if isinstance(item, SpanInput)), None)

    @property
    def text_inputs(self) -> tuple[TextInput, ...]:
        """The answers that are written."""
        return tuple(item for item in self.answer_fields if isinstance(item, TextInput))

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names under which a page sends an answer."""
        names = [item.name for item in self.answer_fields]
        span = self.span_input
        return (*names, *((span.start_name, span.utf16_name) if span is not None else ()))

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

    def hit_title(self, title: str) -> str:
        """Return the title of a HIT of this task, with what people should know before they even look at it."""
        return f"{title} ({self.content_note})" if self.content_note else title

    def goal_sentence(self, goal_label: str) -> str:
        """Return what the writer is asked to do, in one sentence."""
        return self.goal_words.format(goal=self.label(goal_label).goal)

    def judge(self, goal_label: str, answer: Mapping[str, str], prediction: Prediction) -> Judgement:
        """Return what a prediction means, given what the writer aimed at and marked.

        A classifier is wrong with another label than the goal, a reader of passages with a span whose words overlap
        with the marked one's by less than ``RIGHT_FROM_F1``; its label is then the other one of the task's two. Of an
        ensemble that counts wrong members, the most confident wrong one is shown when it is fooled, else the most
        confident right one.
        """
        needed = prediction.wrong_members_needed
        if needed is None or not prediction.members:
            return self._judged(goal_label, answer, prediction.as_member())
        judged = [self._judged(goal_label, answer, member) for member in prediction.members]
        fooled = sum(one.fooled for one in judged) >= needed
        shown = [one for one in judged if one.fooled is fooled] or judged
        return replace(max(shown, key=lambda one: _confidence(one.shown)), fooled=fooled)

    def _judged(self, goal_label: str, answer: Mapping[str, str], said: MemberAnswer) -> Judgement:
        span = self.span_input
        if span is None:
            label = self.label(said.label).code
            return Judgement(label, label != self.label(goal_label).code, None, said)
        f1 = token_f1(said.span.text if said.span is not None else "", answer[span.name])
        fooled = f1 < RIGHT_FROM_F1
        other = next(code for code in self.label_codes if code != goal_label)
        return Judgement(other if fooled else self.label(goal_label).code, fooled, f1, said)

    def model_input(self, context: Mapping[str, str], answer: Mapping[str, str]) -> dict[str, str]:
        """Return what the model reads, by field name."""
        known = {**context, **answer}
        return {name: known[name] for name in self.model_fields}

    def check_answer(self, raw: Mapping[str, object], context: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the answer by field, trimmed, exactly as written otherwise.

        Raises InvalidAnswer, and AmbiguousAnswer with the places when a marked answer stands at several.
        """
        checked: dict[str, str] = {}
        for item in self.answer_fields:
            if isinstance(item, SpanInput):
                text, start = checked_span(item, raw, (context or {})[item.of])
                checked |= {item.name: text, item.start_name: str(start)}
            else:
                checked[item.name] = _checked_input(item, raw.get(item.name))
        return checked

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


def checked_span(item: SpanInput, raw: Mapping[str, object], passage: str) -> tuple[str, int]:
    """Return the marked stretch of the passage and where it begins, in characters.

    The text is what counts: it must stand in the passage, and a place that is sent along only chooses between several.
    Words that it cuts through are taken whole.
    Raises InvalidAnswer, and AmbiguousAnswer when it stands at several places and none of them is chosen.
    """
    value = raw.get(item.name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidAnswer(item.name, f"{item.label} is missing. Mark it in the text first; no try was used.")
    sent = value.replace("\r\n", "\n").replace("\r", "\n")
    text = sent.strip()
    _check_word(item, text)
    lead = len(sent) - len(sent.lstrip())
    chosen = {start + shift for start in _sent_starts(item, raw, passage) for shift in (0, lead)}
    exact = next((start for start in sorted(chosen) if passage.startswith(text, start)), None)
    if exact is not None:
        return _whole(item, passage, exact, exact + len(text))
    found = occurrences(passage, text) if len(text) <= len(passage) else []
    if not found:
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise InvalidAnswer(
            item.name,
            f"“{shown}” does not stand in the text above. Mark the answer there, or type it exactly as it stands;"
            " no try was used.",
        )
    here = found if len(found) == 1 else [one for one in found if one.start in chosen]
    if len(here) != 1:
        raise AmbiguousAnswer(
            item.name,
            f"“{passage[found[0].start : found[0].end]}” stands {len(found)} times in the text."
            " Choose which one you mean; no try was used.",
            [(one.start, one.before, passage[one.start : one.end], one.after) for one in found],
        )
    return _whole(item, passage, here[0].start, here[0].end)


def _check_word(item: SpanInput, text: str) -> None:
    if not _holds_word(text):
        raise InvalidAnswer(item.name, f"{item.label} holds no word. Mark at least one besides a, an and the.")


def _holds_word(text: str) -> bool:
    # A dash or a quotation mark alone is a word to SQuAD's rules, and no answer. Accents in one character with their
    # letter, or "à" would be an article.
    words = answer_words(unicodedata.normalize("NFC", text))
    return any(unicodedata.category(character)[0] in "LNS" for character in "".join(words))


def _whole(item: SpanInput, passage: str, start: int, end: int) -> tuple[str, int]:
    start, end = widened(passage, start, end)
    # A mark through "the" is a letter until it is taken whole.
    _check_word(item, passage[start:end])
    words = len(passage[start:end].split())
    if item.max_words is not None and words > item.max_words:
        raise InvalidAnswer(
            item.name,
            f"{item.label} has {words} words; {item.max_words} are the most. Mark a shorter stretch; no try was used.",
        )
    return passage[start:end], start


def _sent_starts(item: SpanInput, raw: Mapping[str, object], passage: str) -> list[int]:
    starts = []
    for name in (item.start_name, item.utf16_name):
        value = raw.get(name)
        if not isinstance(value, str) or not (value.isascii() and value.isdigit() and len(value) < 10):
            continue
        try:
            starts.append(int(value) if name == item.start_name else character_offset(passage, int(value)))
        except ValueError:
            # In the middle of a character, or behind the end: the text alone then says what is meant.
            continue
    return starts


def _checked_input(item: TextInput, value: object) -> str:
    text = checked_text(item.name, item.label, value, item.max_characters)
    words = len(text.split())
    if words < item.min_words:
        raise InvalidAnswer(
            item.name,
            f"{item.label} has {words} {'word' if words == 1 else 'words'}; write a whole sentence, {item.min_words}"
            " words at least. No try was used.",
        )
    return text


def _confidence(said: MemberAnswer) -> float:
    # What a classifier says beside its probabilities must not decide which member is shown.
    if said.label in said.probabilities:
        return said.probabilities[said.label]
    return said.confidence or 0.0


def digest_of(fields: Mapping[str, str]) -> str:
    """Return a stable SHA-256 over fields, by which equal answers and equal contexts are recognised."""
    return hashlib.sha256(json.dumps(dict(fields), sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def incomplete(spec: TaskSpec) -> Sequence[str]:
    """Return what is wrong with a task's specification; an empty list for a good one."""
    findings = []
    if len(set(spec.label_codes)) != len(spec.labels) or len(spec.labels) < 2:
        findings.append("labels must be two or more, each with its own code")
    findings += [
        f"{code!r} is no label"
        for code in (*spec.goals, *spec.rejecting_labels, *(c for one in spec.vote_choices for c in one.with_labels))
        if code not in spec.label_codes
    ]
    if set(spec.goals) & set(spec.rejecting_labels):
        findings.append("a label that rejects the example can't be a goal")
    if "{goal}" not in spec.goal_words:
        findings.append("goal_words must hold {goal}")
    names = [item.name for item in spec.context_fields] + list(spec.input_names)
    if len(set(names)) != len(names):
        findings.append("context and answer fields must have different names")
    findings += [f"{name!r} is a name of the page's own" for name in names if name in PAGE_NAMES]
    findings += [
        f"model field {name!r} is neither a context nor an answer field"
        for name in spec.model_fields
        if name not in names
    ]
    if not spec.answer_fields:
        findings.append("there is nothing to answer")
    return [*findings, *_span_findings(spec), *_quiz_findings(spec), *_example_findings(spec)]


def _span_findings(spec: TaskSpec) -> list[str]:
    span = spec.span_input
    if span is None:
        return []
    findings = []
    if sum(isinstance(item, SpanInput) for item in spec.answer_fields) > 1:
        findings.append("one answer at most can be marked in the context")
    if len(spec.labels) != 2:
        findings.append("a task with a marked answer has two labels: the answer is right, the answer is wrong")
    if len(spec.model_fields) != 2 or spec.model_fields[0] != span.of:
        findings.append(f"its model reads ({span.of!r}, question) and answers with a stretch of the first")
    if span.max_words is not None and span.max_words < 1:
        findings.append(f"max_words must be 1 or more, not {span.max_words}")
    if span.of not in {item.name for item in spec.context_fields}:
        findings.append(f"the answer is marked in {span.of!r}, which is no context field")
    return findings


def _quiz_findings(spec: TaskSpec) -> list[str]:
    findings = []
    span = spec.span_input
    findings += [
        f"quiz item {item.text!r} has unknown label {item.right!r}"
        for item in spec.quiz
        if item.right not in spec.label_codes
    ]
    findings += [
        f"quiz item {item.text!r} has {item.goal!r}, which writers are never asked for"
        for item in spec.writer_quiz
        if item.goal not in (spec.goals or spec.label_codes)
    ]
    items: tuple[QuizItem | WriterItem, ...] = (*spec.quiz, *spec.writer_quiz)
    for item in items:
        if item.context:
            findings += _context_findings(spec, item.context, f"quiz item {item.text!r}")
        if span is not None and len(occurrences(item.context.get(span.of, ""), item.marked)) != 1:
            findings.append(f"quiz item {item.text!r}: {item.marked!r} must stand once in its {span.of}")
    return findings


def _example_findings(spec: TaskSpec) -> list[str]:
    findings = []
    for example in spec.examples:
        if example.label not in spec.label_codes:
            findings.append(f"example has unknown label {example.label!r}")
        if example.context:
            findings += _context_findings(spec, example.context, "example")
        try:
            spec.check_answer(example.answer, example.context)
        except (InvalidAnswer, KeyError) as error:
            findings.append(f"example fails its own check: {error}")
    return findings


def _context_findings(spec: TaskSpec, context: Mapping[str, str], what: str) -> list[str]:
    try:
        spec.check_context(context)
    except InvalidAnswer as error:
        return [f"{what}: {error}"]
    return []
