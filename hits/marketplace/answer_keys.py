"""Reads AnswerKey XML and scores tests with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Final

from hits.marketplace.forms import QuestionForm, Selection
from hits.marketplace.xmltext import SCHEMAS, Elements, parse, unreadable

NAMESPACE: Final = f"{SCHEMAS}2005-10-01/AnswerKey.xsd"
_NAME: Final = "AnswerKey"
_BIGGEST: Final = 2**31 - 1
_SCORES: Final = 1_000_000
_ALL: Final = {"least": -_BIGGEST, "most": _BIGGEST}


@dataclass(frozen=True)
class Scored:
    """What the answers to one question are worth: an exact set of selections, or the default."""

    options: Mapping[frozenset[str], int]
    default: int


@dataclass(frozen=True)
class AnswerKey:
    """The right answers, and how their sum becomes the value of the qualification."""

    questions: Mapping[str, Scored]
    mapping: Callable[[int], int]

    def score(self, selections: Mapping[str, frozenset[str]]) -> int:
        """Return the value that these selections, by question, bring; never outside of 32 bits."""
        total = sum(
            scored.options.get(selections.get(identifier, frozenset()), scored.default)
            for identifier, scored in self.questions.items()
        )
        return max(-_BIGGEST, min(_BIGGEST, self.mapping(total)))


def read_answer_key(text: str, form: QuestionForm) -> AnswerKey:
    """Return the key to a test.

    Raises MarketplaceError (ParameterValidationError) for a key that is broken or does not fit the form, and for a
    form with free texts, which no key can score.
    """
    root = parse(_NAME, text)
    if root.tag != f"{{{NAMESPACE}}}AnswerKey":
        raise unreadable(_NAME, f"the root must be AnswerKey in the namespace {NAMESPACE}, got {root.tag!r}")
    elements = Elements(_NAME, root)
    questions: dict[str, Scored] = {}
    for item in elements.many("Question"):
        identifier = item.one("QuestionIdentifier").text()
        if identifier in questions:
            raise unreadable(_NAME, f"the question {identifier[:60]!r} is there twice")
        questions[identifier] = _scored(item, _choices(form, identifier))
    mapping = elements.maybe("QualificationValueMapping")
    elements.end()
    for question in form.questions:
        if not isinstance(question.answer, Selection) or question.answer.other is not None:
            raise unreadable(
                _NAME, f"the test asks for free words in {question.identifier[:60]!r}, so it cannot be scored by a key"
            )
    return AnswerKey(questions, _mapping(mapping) if mapping is not None else lambda total: total)


def _choices(form: QuestionForm, identifier: str) -> frozenset[str]:
    for question in form.questions:
        if question.identifier == identifier and isinstance(question.answer, Selection):
            return frozenset(choice.identifier for choice in question.answer.choices)
    raise unreadable(_NAME, f"the test has no question {identifier[:60]!r} with selections")


def _scored(item: Elements, known: frozenset[str]) -> Scored:
    options: dict[frozenset[str], int] = {}
    for option in item.many("AnswerOption"):
        chosen = frozenset(selection.text() for selection in option.many("SelectionIdentifier"))
        if unknown := sorted(chosen - known):
            raise unreadable(_NAME, f"the test has no selection {unknown[0][:60]!r}")
        score = option.one("AnswerScore").number(least=-_SCORES, most=_SCORES)
        option.end()
        # Of two options with the same selections the first counts.
        options.setdefault(chosen, score)
    default = item.maybe("DefaultScore")
    item.end()
    return Scored(options, default.number(least=-_SCORES, most=_SCORES) if default is not None else 0)


def _mapping(elements: Elements) -> Callable[[int], int]:
    kind = elements.take()
    elements.end()
    if kind.tag == "PercentageMapping":
        most = kind.one("MaximumSummedScore").number(least=1, most=_BIGGEST)
        kind.end()
        return lambda total: _rounded(Decimal(100 * total) / most)
    if kind.tag == "ScaleMapping":
        multiplier = _double(kind.one("SummedScoreMultiplier"))
        kind.end()
        return lambda total: _rounded(total * multiplier)
    if kind.tag == "RangeMapping":
        return _ranges(kind)
    raise unreadable(_NAME, f"{kind.tag} is no kind of QualificationValueMapping")


def _ranges(kind: Elements) -> Callable[[int], int]:
    ranges = []
    for item in kind.many("SummedScoreRange"):
        low, high, value = (
            item.one(part).number(**_ALL)
            for part in ("InclusiveLowerBound", "InclusiveUpperBound", "QualificationValue")
        )
        item.end()
        if low > high:
            raise unreadable(_NAME, f"the SummedScoreRange from {low} to {high} is empty")
        ranges.append((low, high, value))
    outside = kind.one("OutOfRangeQualificationValue").number(**_ALL)
    kind.end()
    return lambda total: next((value for low, high, value in ranges if low <= total <= high), outside)


def _double(element: Elements) -> Decimal:
    text = element.text()
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise unreadable(_NAME, f"{element.tag} must be a number, got {text[:40]!r}") from error
    if not number.is_finite() or abs(number) > _SCORES or number.adjusted() < -20:
        raise unreadable(_NAME, f"{element.tag} must be between -{_SCORES} and {_SCORES}, got {text[:40]!r}")
    return number


def _rounded(value: Decimal) -> int:
    return int(value.quantize(Decimal(1), ROUND_HALF_UP))
