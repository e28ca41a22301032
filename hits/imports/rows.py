"""One row of a published data set, whatever its form, and what can be wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hits.errors import Finding, InvalidAnswer, InvalidInput
from hits.tasks import SpanInput, TaskSpec
from hits.tasks._spec import checked_text

#: Longer than any text of a published set.
MAX_CHARACTERS: Final = 20_000
_LISTED: Final = 20


@dataclass(frozen=True)
class PublishedModel:
    """What the target model had said, as it was published."""

    model_id: str
    label: str
    probabilities: Mapping[str, float] | None = None


@dataclass(frozen=True)
class PublishedVote:
    """What a reader had said; ``validator`` is the reader's name in the set, None where readers are not told apart."""

    validator: str | None
    label: str


@dataclass(frozen=True)
class PublishedRow:
    """A row by the task's fields. ``name`` is its own in the set; ``model`` is None where no answer was published.

    Rows of one ``family`` belong together (an original and its perturbation). ``details`` are by the names of the
    task's vote choices.
    """

    name: str
    context: Mapping[str, str]
    answer: Mapping[str, str]
    label: str
    writer: str | None = None
    model: PublishedModel | None = None
    votes: tuple[PublishedVote, ...] = ()
    why: str = ""
    split: str | None = None
    family: str | None = None
    details: Mapping[str, Sequence[str]] = field(default_factory=dict)
    raw: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LeftOut:
    """A row that is sound and of no use here, with the reason in words."""

    reason: str


class InvalidRows(InvalidInput):
    """Files with rows that can't be used; ``findings`` lists the first of them, ``count`` says how many there are."""

    def __init__(self, findings: Sequence[tuple[str, Finding]], count: int) -> None:
        shown = "\n".join(f"  {path}, {finding}" for path, finding in findings[:_LISTED])
        more = f"\n  and {count - _LISTED:,} more" if count > _LISTED else ""
        super().__init__(f"{count:,} rows can't be used, nothing was imported:\n{shown}{more}")
        self.findings = tuple(findings)
        self.count = count


def check_row(spec: TaskSpec, row: PublishedRow) -> PublishedRow:
    """Return the row as it is stored. Raises InvalidAnswer with the value for what the tables can't hold.

    The rules for writers don't bind: what was published may be shorter than what we ask for.
    """
    if not row.name or len(row.name) > 100 or not row.name.isprintable():
        raise InvalidAnswer("id", f"the row's name {row.name[:60]!r} is empty, longer than 100, or not printable")
    if row.label not in spec.label_codes:
        raise InvalidAnswer(
            "label", f"{row.label!r} is no label of the {spec.code} task: {', '.join(spec.label_codes)}"
        )
    context = {
        item.name: _text(item.name, item.label, row.context[item.name]) if row.context.get(item.name) else ""
        for item in spec.context_fields
    }
    answer: dict[str, str] = {}
    for item in spec.answer_fields:
        if isinstance(item, SpanInput):
            answer |= _span(item, row.answer, row.context[item.of], context)
        else:
            answer[item.name] = _text(item.name, item.label, row.answer.get(item.name))
    why = _text("why", "The reason", row.why) if row.why.strip() else ""
    names = [row.writer, *(vote.validator for vote in row.votes)]
    if long := next((name for name in names if name is not None and not (0 < len(name) <= 40)), None):
        raise InvalidAnswer("writer", f"the person's name {long[:60]!r} is empty or longer than 40 characters")
    known = [vote.validator for vote in row.votes if vote.validator is not None]
    if len(set(known)) != len(known):
        raise InvalidAnswer("votes", f"one reader has voted twice: {', '.join(sorted(known))}")
    if row.writer is not None and row.writer in known:
        raise InvalidAnswer("votes", f"the writer {row.writer!r} is among the readers")
    return PublishedRow(
        row.name,
        context,
        answer,
        row.label,
        row.writer,
        row.model,
        row.votes,
        why,
        row.split,
        row.family,
        row.details,
        row.raw,
    )


def _text(name: str, label: str, value: object) -> str:
    return checked_text(name, label, value, MAX_CHARACTERS)


def _span(item: SpanInput, answer: Mapping[str, str], passage: str, stored: dict[str, str]) -> dict[str, str]:
    """Return the marked stretch and its place in the passage as it is stored: without the white space around it."""
    text = answer.get(item.name, "")
    start = int(answer.get(item.start_name, "-1"))
    if not text.strip() or passage[max(start, 0) : start + len(text)] != text:
        raise InvalidAnswer(item.name, f"{item.label} {text[:60]!r} does not stand at {start} of the passage")
    lead = len(passage) - len(passage.lstrip())
    shift = len(text) - len(text.lstrip()) - lead
    if stored[item.of][start + shift : start + shift + len(text.strip())] != text.strip():
        raise InvalidAnswer(item.name, f"{item.label} {text[:60]!r} is not found once line ends are made alike")
    return {item.name: text.strip(), item.start_name: str(start + shift)}
