"""What the model said, made ready to be read: bars, marked words and passages, earlier attempts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hits.attempts import stored_answer, stored_attribution
from hits.models import Attempt
from hits.predictions import Attribution, WordAttribution
from hits.states import AttemptState
from hits.tasks import TaskSpec, utf16_offset

#: Words that speak less than this share of the strongest word stay unmarked.
FAINT = 0.1


@dataclass(frozen=True)
class Bar:
    """The probability of one label. ``width`` is of 100."""

    name: str
    percent: str
    width: str
    is_top: bool
    is_goal: bool


@dataclass(frozen=True)
class Piece:
    """A stretch of a text; ``mark`` is the class of its marking, empty for none."""

    text: str
    mark: str


@dataclass(frozen=True)
class Passage:
    """One part of a context as it is shown.

    ``markable`` where an answer is marked; ``model_mark`` is then the model's own, as ``start-end`` in UTF-16 units,
    in which the page's script counts.
    """

    name: str
    label: str
    pieces: tuple[Piece, ...]
    markable: bool = False
    model_mark: str = ""


@dataclass(frozen=True)
class WordRow:
    """One word of the explanation's table; ``where`` names its text if there are several."""

    text: str
    where: str
    direction: str
    share: str
    number: str


@dataclass(frozen=True)
class ExplainedText:
    """One text that the model read, with its words marked."""

    label: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Explanation:
    """Which words spoke for and against an answer. ``delta`` is by how much the words' numbers miss the model's."""

    target: str
    texts: tuple[ExplainedText, ...]
    rows: tuple[WordRow, ...]
    exact: bool
    method: str
    steps: int
    delta: str


@dataclass(frozen=True)
class AttemptView:
    """One attempt as its page shows it.

    ``predicted`` is the model's label or its stretch of the passage, in quotation marks; ``overlap`` says in percent
    how far that meets the writer's. ``read`` says of each text that the model did not see whole how much it saw.
    """

    public_id: str
    number: int
    texts: tuple[tuple[str, str], ...]
    written: tuple[str, ...]
    answered: bool
    fooled: bool
    goal: str
    predicted: str
    percent: str
    bars: tuple[Bar, ...]
    own_answer: str
    overlap: str
    truncated: bool
    read: tuple[str, ...]
    explanation: Explanation | None
    goal_explanation: Explanation | None


def percent(probability: float) -> str:
    """Return a probability in words that never claim more certainty than there is."""
    if probability < 0.005:
        return "under 1%"
    if 0.995 <= probability < 1:
        return "over 99%"
    return f"{probability * 100:.0f}%"


def overlap_percent(f1: float) -> str:
    """Return an overlap rounded down, so that nothing below the threshold reads as the threshold."""
    return f"{math.floor(f1 * 100 + 1e-9)}%"


def attempt_view(spec: TaskSpec, attempt: Attempt, number: int) -> AttemptView:
    """Return one attempt for the page; one without an answer has no bars."""
    span = spec.span_input
    return AttemptView(
        public_id=attempt.public_id,
        number=number,
        texts=tuple((item.label, attempt.answer[item.name]) for item in spec.answer_fields),
        written=tuple(attempt.answer[item.name] for item in spec.text_inputs),
        answered=attempt.state is AttemptState.ANSWERED,
        fooled=bool(attempt.fooled),
        goal=spec.label(attempt.goal_label).name,
        predicted=_predicted(spec, attempt),
        percent=percent(confidence) if (confidence := _confidence(attempt)) is not None else "",
        bars=_bars(spec, attempt),
        own_answer=attempt.answer[span.name] if span is not None else "",
        overlap=overlap_percent(attempt.answer_f1) if attempt.answer_f1 is not None else "",
        truncated=bool(attempt.truncated),
        read=tuple(read_sentences(spec, attempt)),
        explanation=_explanation(spec, attempt, of_goal=False),
        goal_explanation=_explanation(spec, attempt, of_goal=True),
    )


def _confidence(attempt: Attempt) -> float | None:
    # Attempts from before confidences were stored have probabilities all the same.
    if attempt.confidence is None and attempt.predicted_label is not None:
        return (attempt.probabilities or {}).get(attempt.predicted_label)
    return attempt.confidence


def _predicted(spec: TaskSpec, attempt: Attempt) -> str:
    if attempt.predicted_label is None:
        return ""
    said = stored_answer(attempt)
    return spec.label(attempt.predicted_label).name if said is None else f"“{said.text}”"


def _bars(spec: TaskSpec, attempt: Attempt) -> tuple[Bar, ...]:
    return tuple(
        Bar(
            name=spec.label(code).name,
            percent=percent(probability),
            width=f"{probability * 100:.1f}",
            is_top=code == attempt.predicted_label,
            is_goal=code == attempt.goal_label,
        )
        for code, probability in (attempt.probabilities or {}).items()
    )


def read_sentences(spec: TaskSpec, attempt: Attempt) -> list[str]:
    """Return, for each text that the model did not see whole, how much of it it saw."""
    context = attempt.hit.context.fields if attempt.hit.context is not None else {}
    texts = spec.model_input(context, attempt.answer)
    labels = field_labels(spec)
    found = []
    for name, characters in (attempt.characters_read or {}).items():
        whole = len(texts.get(name, ""))
        if characters < whole:
            found.append(f"Of “{labels[name]}” it read {characters:,} of {whole:,} characters.")
    return found


def field_labels(spec: TaskSpec) -> dict[str, str]:
    """Return how each context and answer field is called on the page."""
    return {item.name: item.label for item in (*spec.context_fields, *spec.answer_fields)}


def passages(spec: TaskSpec, context: Mapping[str, str], attempt: Attempt | None = None) -> list[Passage]:
    """Return the context for the page; of an attempt also with the writer's and the model's answer marked in it."""
    span = spec.span_input
    found = []
    for item in spec.context_fields:
        text = context[item.name]
        if span is None or span.of != item.name:
            found.append(Passage(item.name, item.label, (Piece(text, ""),)))
            continue
        marks: dict[str, tuple[int, int]] = {}
        if attempt is not None:
            start = int(attempt.answer[span.start_name])
            marks["mine"] = (start, start + len(attempt.answer[span.name]))
            if (said := stored_answer(attempt)) is not None:
                marks["model"] = (said.start, said.end)
        model = marks.get("model")
        model_mark = "-".join(str(utf16_offset(text, at)) for at in model) if model is not None else ""
        found.append(Passage(item.name, item.label, tuple(marked(text, marks)), True, model_mark))
    return found


def marked(text: str, marks: Mapping[str, tuple[int, int]]) -> list[Piece]:
    """Cut a text where a mark begins or ends; a piece under several marks has all their classes."""
    borders = sorted({0, len(text), *(at for span in marks.values() for at in span if 0 <= at <= len(text))})
    return [
        Piece(text[start:end], " ".join(name for name, (begin, stop) in marks.items() if begin <= start < stop))
        for start, end in pairwise(borders)
    ]


def _explanation(spec: TaskSpec, attempt: Attempt, *, of_goal: bool) -> Explanation | None:
    attribution = stored_attribution(attempt, of_goal=of_goal)
    return explanation(spec, attempt, attribution) if attribution is not None else None


def explanation(spec: TaskSpec, attempt: Attempt, attribution: Attribution) -> Explanation:
    """Return the texts that the model read of an attempt, marked, and the same as a table."""
    context = attempt.hit.context.fields if attempt.hit.context is not None else {}
    return explained(spec, spec.model_input(context, attempt.answer), attribution)


def explained(spec: TaskSpec, texts: Mapping[str, str], attribution: Attribution) -> Explanation:
    """Return the texts that a model read, by model field, with their words marked, and the same as a table."""
    labels = field_labels(spec)
    strongest = max((abs(word.score) for word in attribution.words), default=0.0)
    last = spec.model_fields[-1]
    by_field = {name: [word for word in attribution.words if (word.field or last) == name] for name in texts}
    several = len(spec.model_fields) > 1
    delta = attribution.convergence_delta
    return Explanation(
        target=_target(spec, texts, attribution.target),
        texts=tuple(
            ExplainedText(labels[name] if several else "", tuple(pieces(text, by_field[name], strongest)))
            for name, text in texts.items()
            if by_field[name] or name == last
        ),
        rows=tuple(_row(word, strongest, labels[name] if several else "") for name in texts for word in by_field[name]),
        exact=attribution.converged,
        method=attribution.method,
        steps=attribution.steps,
        delta=f"{delta:.4f}" if delta is not None else "",
    )


def _target(spec: TaskSpec, texts: Mapping[str, str], target: str) -> str:
    span = spec.span_input
    if span is None:
        return spec.label(target).name
    start, end = (int(at) for at in target.split("-"))
    return f"“{texts[span.of][start:end]}”"


def pieces(text: str, words: Sequence[WordAttribution], strongest: float) -> list[Piece]:
    """Cut a text into its marked words and what stands between them; together they are the text again."""
    found: list[Piece] = []
    at = 0
    for word in sorted(words, key=lambda word: word.start):
        if word.start < at or word.end > len(text) or word.end <= word.start:
            continue
        if word.start > at:
            found.append(Piece(text[at : word.start], ""))
        found.append(Piece(text[word.start : word.end], mark(word.score, strongest)))
        at = word.end
    if at < len(text):
        found.append(Piece(text[at:], ""))
    return found


def mark(score: float, strongest: float) -> str:
    """Return the class of a word's marking: direction and one of three weights."""
    share = abs(score) / strongest if strongest > 0 else 0.0
    if share < FAINT:
        return ""
    weight = 3 if share > 2 / 3 else 2 if share > 1 / 3 else 1
    return f"{'for' if score > 0 else 'against'}-{weight}"


def _row(word: WordAttribution, strongest: float, where: str) -> WordRow:
    share = abs(word.score) / strongest if strongest > 0 else 0.0
    direction = "hardly any" if share < FAINT else "for" if word.score > 0 else "against"
    return WordRow(word.text, where, direction, f"{share * 100:.0f}", f"{word.score:+.3f}")
