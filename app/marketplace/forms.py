"""How a QuestionForm looks on the site: which control a question gets, its hint, and where its media come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from lxml import html
from markupsafe import Markup as SafeMarkup

from app.marketplace.languages import gettext
from app.marketplace.settings import origin_text
from hits.marketplace.forms import FreeText, Markup, Media, Overview, Question, QuestionForm, Selection, Words

Control = Literal["line", "area", "radio", "checkbox", "select", "listbox"]
# What stands in a header: an address of any other form would end it or add to it.
_ORIGIN: Final = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?")
_TALLEST: Final = 20


@dataclass(frozen=True)
class Asked:
    """One question as the page shows it: `values` is what is filled in, `problem` what is wrong with that."""

    number: int
    question: Question
    control: Control
    hint: str
    values: tuple[str, ...]
    other: str
    problem: str | None


@dataclass(frozen=True)
class Shown:
    """A form with what was filled in; `parts` in order, `problems` for the summary above."""

    parts: tuple[Overview | Asked, ...]
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The questions alone."""
        return tuple(part for part in self.parts if isinstance(part, Asked))


def shown(
    form: QuestionForm,
    filled: Mapping[str, list[str]] | None = None,
    problems: Mapping[str, str] | None = None,
) -> Shown:
    """Return a form for the page; without `filled` it has the requester's own default texts."""
    problems = problems or {}
    parts: list[Overview | Asked] = []
    for part in form.parts:
        if isinstance(part, Overview):
            parts.append(part)
            continue
        number = sum(isinstance(one, Asked) for one in parts) + 1
        values, other = _filled(part, filled)
        parts.append(
            Asked(number, part, control(part.answer), hint(part.answer), values, other, problems.get(part.field))
        )
    return Shown(tuple(parts), problems)


def control(answer: FreeText | Selection) -> Control:
    """Return the control of an answer.

    The style is a suggestion: several choices are always check boxes, which need no Ctrl key, and choices that show
    more than plain words never stand in a drop-down.
    """
    if isinstance(answer, FreeText):
        return "area" if answer.lines > 1 and not answer.is_numeric else "line"
    if answer.maximum > 1 or answer.style == "checkbox":
        return "checkbox"
    if all(isinstance(choice.label, Words) for choice in answer.choices):
        if answer.style in {"dropdown", "combobox"}:
            return "select"
        if answer.style in {"list", "multichooser"}:
            return "listbox"
    return "radio"


def hint(answer: FreeText | Selection) -> str:
    """Return in words what fits as an answer; empty if everything does."""
    if isinstance(answer, Selection):
        most = min(answer.maximum, len(answer.choices) + (answer.other is not None))
        if most <= 1:
            return ""
        if answer.minimum == most:
            return gettext("Choose %(number)d.", number=most)
        if answer.minimum:
            return gettext("Choose %(least)d to %(most)d.", least=answer.minimum, most=most)
        return gettext("Choose up to %(most)d.", most=most)
    said = []
    if answer.is_numeric:
        said.append(_number(answer.min_value, answer.max_value))
    if answer.min_length or answer.max_length:
        said.append(_characters(answer.min_length or None, answer.max_length))
    return " ".join(said)


def rows(answer: FreeText) -> int:
    """Return how many lines the box of a long answer has."""
    return min(answer.lines, _TALLEST)


def checked_markup(content: Markup) -> SafeMarkup:
    """Return a form's markup for a page as it is: it was reduced to a safe subset when the form was read."""
    return SafeMarkup(content.html)  # noqa: S704  # hits.marketplace.markup lets nothing else through


def media_origins(form: QuestionForm) -> tuple[str, ...]:
    """Return the origins of a form's images, sounds and videos that may go into a header, each once."""
    found = (safe_origin(address) for address in _addresses(form))
    return tuple(dict.fromkeys(one for one in found if one is not None))


def safe_origin(address: str) -> str | None:
    """Return an address's origin if it is one that may stand in a header."""
    try:
        text = origin_text(address)
    except ValueError:
        return None
    return text if _ORIGIN.fullmatch(text) else None


def _filled(question: Question, filled: Mapping[str, list[str]] | None) -> tuple[tuple[str, ...], str]:
    if filled is not None:
        return tuple(filled.get(question.field, ())), next(iter(filled.get(question.other_field, ())), "")
    answer = question.answer
    if isinstance(answer, FreeText):
        return (answer.default_text,), ""
    return (), answer.other.default_text if answer.other is not None else ""


def _number(least: int | None, most: int | None) -> str:
    if least is None and most is None:
        return gettext("A number.")
    if least is None:
        return gettext("A number at most %(most)d.", most=most)
    if most is None:
        return gettext("A number at least %(least)d.", least=least)
    return gettext("A number %(least)d to %(most)d.", least=least, most=most)


def _characters(least: int | None, most: int | None) -> str:
    if least is None:
        return gettext("At most %(most)d characters.", most=most)
    if most is None:
        return gettext("At least %(least)d characters.", least=least)
    return gettext("%(least)d to %(most)d characters.", least=least, most=most)


def _addresses(form: QuestionForm) -> Iterator[str]:
    for part in form.parts:
        content = list(part.content)
        if isinstance(part, Question) and isinstance(part.answer, Selection):
            content += [choice.label for choice in part.answer.choices]
        for one in content:
            if isinstance(one, Media):
                yield one.url
            elif isinstance(one, Markup) and one.html.strip():
                yield from (str(address) for address in html.fromstring(f"<div>{one.html}</div>").xpath("//@src"))
