"""Takes the fields that a page sent for a QuestionForm, checks them, and writes QuestionFormAnswers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import regex
from lxml import etree

from hits.marketplace.errors import AnswerTooLarge, FormIncomplete
from hits.marketplace.forms import FreeText, Pattern, Question, QuestionForm, Selection
from hits.marketplace.questions import QUESTION_FORM_ANSWERS
from hits.marketplace.words import words
from hits.marketplace.xmltext import legal

LARGEST_ANSWER_BYTES: Final = 512 * 1024
_NUMBER: Final = regex.compile(r"[+-]?(\d+([.]\d*)?|[.]\d+)", regex.ASCII)
# Requesters write the patterns, so that one of them may take forever.
_PATTERN_SECONDS: Final = 0.2

Fields = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class FormAnswers:
    """Checked answers: the selections by question, and all of it as XML."""

    selections: Mapping[str, frozenset[str]]
    xml: str


def collect(form: QuestionForm, fields: Fields) -> FormAnswers:
    """Return the answers in `fields`, which are named as the form's questions say.

    Raises FormIncomplete with a sentence for each field that does not fit, AnswerTooLarge.
    """
    problems: dict[str, str] = {}
    selections: dict[str, frozenset[str]] = {}
    root = etree.Element("QuestionFormAnswers", nsmap={None: QUESTION_FORM_ANSWERS})
    for question in form.questions:
        answer = etree.SubElement(root, "Answer")
        etree.SubElement(answer, "QuestionIdentifier").text = question.identifier
        if isinstance(question.answer, FreeText):
            text = _text(fields, question.field)
            problem = _problem_of_text(question.answer, text, is_required=question.is_required)
            etree.SubElement(answer, "FreeText").text = text
        else:
            chosen, other, problem = _chosen(question, question.answer, fields)
            selections[question.identifier] = frozenset(chosen)
            for identifier in chosen:
                etree.SubElement(answer, "SelectionIdentifier").text = identifier
            if other:
                etree.SubElement(answer, "OtherSelectionText").text = other
        if problem:
            problems[question.field] = problem
    if problems:
        raise FormIncomplete(problems)
    body = etree.tostring(root, encoding="ASCII", xml_declaration=False).decode("ascii")
    if len(body) > LARGEST_ANSWER_BYTES:
        raise AnswerTooLarge(len(body), LARGEST_ANSWER_BYTES)
    return FormAnswers(selections, f'<?xml version="1.0" encoding="ASCII"?>{body}')


def _chosen(question: Question, answer: Selection, fields: Fields) -> tuple[list[str], str, str | None]:
    given = set(fields.get(question.field, ()))
    chosen = [choice.identifier for choice in answer.choices if choice.identifier in given]
    other = _text(fields, question.other_field) if answer.other is not None else ""
    if len(chosen) < len(given - {""}):
        return chosen, other, words("Choose from what is shown.")
    count = len(chosen) + bool(other)
    problem: str | None = None
    if count == 0:
        problem = words("Answer this question.") if question.is_required else None
    elif count < answer.minimum:
        problem = words("Choose at least %(least)d.", least=answer.minimum)
    elif count > answer.maximum:
        problem = words("Choose at most %(most)d.", most=answer.maximum)
    if problem is None and other and answer.other is not None:
        problem = _problem_of_text(answer.other, other, is_required=False)
    return chosen, other, problem


def _problem_of_text(answer: FreeText, text: str, *, is_required: bool) -> str | None:
    if not text.strip():
        return words("Answer this question.") if is_required else None
    if answer.min_length is not None and len(text) < answer.min_length:
        return words("Write at least %(least)d characters.", least=answer.min_length)
    if answer.max_length is not None and len(text) > answer.max_length:
        return words(
            "Write at most %(most)d characters; these are %(length)d.", most=answer.max_length, length=len(text)
        )
    if answer.is_numeric and (problem := _problem_of_number(answer, text.strip())):
        return problem
    for pattern in answer.patterns:
        if not _fits(pattern, text):
            return pattern.error_text or words("The answer does not have the form that is asked for.")
    return None


def _problem_of_number(answer: FreeText, text: str) -> str | None:
    if len(text) > 300 or _NUMBER.fullmatch(text) is None:
        return words("Write a number.")
    number = float(text)
    if answer.min_value is not None and number < answer.min_value:
        return words("Write a number that is at least %(least)d.", least=answer.min_value)
    if answer.max_value is not None and number > answer.max_value:
        return words("Write a number that is at most %(most)d.", most=answer.max_value)
    return None


def _fits(pattern: Pattern, text: str) -> bool:
    flags = regex.IGNORECASE if pattern.ignores_case else 0
    try:
        return regex.search(pattern.regex, text, flags=flags, timeout=_PATTERN_SECONDS) is not None
    except TimeoutError:
        # The worker cannot help it that the pattern is too slow to decide.
        return True


def _text(fields: Fields, name: str) -> str:
    values = fields.get(name, ())
    return legal(values[0]).replace("\r\n", "\n") if values else ""
