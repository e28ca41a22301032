"""What the model said, made ready to be read: bars, marked words, earlier attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hits.attempts import stored_attribution
from hits.models import Attempt
from hits.predictions import Attribution, WordAttribution
from hits.states import AttemptState
from hits.tasks import TaskSpec

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
    """A stretch of a statement; ``mark`` is the class of its marking, empty for none."""

    text: str
    mark: str


@dataclass(frozen=True)
class WordRow:
    """One word of the explanation's table."""

    text: str
    direction: str
    share: str


@dataclass(frozen=True)
class Explanation:
    """Which words spoke for and against the model's answer."""

    target: str
    pieces: tuple[Piece, ...]
    rows: tuple[WordRow, ...]
    exact: bool


@dataclass(frozen=True)
class AttemptView:
    """One attempt as its page shows it."""

    public_id: str
    number: int
    texts: tuple[tuple[str, str], ...]
    answered: bool
    fooled: bool
    goal: str
    predicted: str
    percent: str
    bars: tuple[Bar, ...]
    truncated: bool
    explanation: Explanation | None


def percent(probability: float) -> str:
    """Return a probability in words that never claim more certainty than there is."""
    if probability < 0.005:
        return "under 1%"
    if 0.995 <= probability < 1:
        return "over 99%"
    return f"{probability * 100:.0f}%"


def attempt_view(spec: TaskSpec, attempt: Attempt, number: int) -> AttemptView:
    """Return one attempt for the page; one without an answer has no bars."""
    probabilities = attempt.probabilities or {}
    predicted = attempt.predicted_label
    bars = tuple(
        Bar(
            name=spec.label(code).name,
            percent=percent(probability),
            width=f"{probability * 100:.1f}",
            is_top=code == predicted,
            is_goal=code == attempt.goal_label,
        )
        for code, probability in probabilities.items()
    )
    attribution = stored_attribution(attempt)
    return AttemptView(
        public_id=attempt.public_id,
        number=number,
        texts=tuple((item.label, attempt.answer[item.name]) for item in spec.answer_fields),
        answered=attempt.state is AttemptState.ANSWERED,
        fooled=bool(attempt.fooled),
        goal=spec.label(attempt.goal_label).name,
        predicted=spec.label(predicted).name if predicted is not None else "",
        percent=percent(probabilities[predicted]) if predicted is not None else "",
        bars=bars,
        truncated=bool(attempt.truncated),
        explanation=explanation(spec, attempt, attribution) if attribution is not None else None,
    )


def explanation(spec: TaskSpec, attempt: Attempt, attribution: Attribution) -> Explanation:
    """Return the marked statement and the same as a table."""
    # The model's own text is the last field that it reads; offsets count in it.
    text = attempt.answer[spec.model_fields[-1]]
    strongest = max((abs(word.score) for word in attribution.words), default=0.0)
    return Explanation(
        target=spec.label(attribution.target).name,
        pieces=tuple(pieces(text, attribution.words, strongest)),
        rows=tuple(_row(word, strongest) for word in attribution.words),
        exact=attribution.converged,
    )


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


def _row(word: WordAttribution, strongest: float) -> WordRow:
    share = abs(word.score) / strongest if strongest > 0 else 0.0
    direction = "hardly any" if share < FAINT else "for" if word.score > 0 else "against"
    return WordRow(word.text, direction, f"{share * 100:.0f}")
