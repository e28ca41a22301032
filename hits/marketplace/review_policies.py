"""Reads the two review policies of the API and refuses what they do not know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hits.marketplace.errors import unfit_parameter

KNOWN_ANSWERS: Final = "ScoreMyKnownAnswers/2011-09-01"
PLURALITY: Final = "SimplePlurality/2011-09-01"
_OF_LEVEL: Final = {"Assignment": KNOWN_ANSWERS, "HIT": PLURALITY}
_MOST_QUESTIONS: Final = 15
_YEAR: Final = 31_536_000
_BOOLEANS: Final = {"t": True, "true": True, "f": False, "false": False}
_NUMBERS: Final = {
    KNOWN_ANSWERS: {
        "ApproveIfKnownAnswerScoreIsAtLeast": (0, 101),
        "RejectIfKnownAnswerScoreIsLessThan": (0, 101),
        "ExtendIfKnownAnswerScoreIsLessThan": (0, 101),
        "ExtendMaximumAssignments": (2, 25),
        "ExtendMinimumTimeInSeconds": (60, _YEAR),
    },
    PLURALITY: {
        "QuestionAgreementThreshold": (0, 101),
        "DisregardAssignmentIfKnownAnswerScoreIsLessThan": (0, 101),
        "ExtendIfHITAgreementScoreIsLessThan": (0, 101),
        "ExtendMaximumAssignments": (2, 25),
        "ExtendMinimumTimeInSeconds": (60, _YEAR),
        "ApproveIfWorkerAgreementScoreIsAtLeast": (0, 101),
        "RejectIfWorkerAgreementScoreIsLessThan": (0, 101),
    },
}
_TEXTS: Final = {KNOWN_ANSWERS: {"ApproveReason", "RejectReason"}, PLURALITY: {"ApproveReason", "RejectReason"}}
_MOST_EXTENDED: Final = 5


@dataclass(frozen=True)
class Policy:
    """A policy with its parameters read; numbers and texts that are not given are absent."""

    numbers: Mapping[str, int]
    texts: Mapping[str, str]
    answer_key: Mapping[str, frozenset[str]]
    question_ids: tuple[str, ...]
    disregards_rejected: bool

    @property
    def most_assignments(self) -> int:
        """How far the policy may extend a HIT."""
        return self.numbers.get("ExtendMaximumAssignments", _MOST_EXTENDED)


def checked(form: Mapping[str, Any] | None, level: str) -> dict[str, Any] | None:
    """Return a policy as it was given, after reading it.

    Raises MarketplaceError (ParameterValidationError) for a policy of another level and unfit parameters.
    """
    if form is None:
        return None
    if form["PolicyName"] != _OF_LEVEL[level]:
        raise unfit_parameter(
            f"The policy of the level {level} is {_OF_LEVEL[level]}, got {form['PolicyName'][:60]!r}."
        )
    read(form)
    return dict(form)


def read(form: Mapping[str, Any]) -> Policy:
    """Return a policy's parameters.

    Raises MarketplaceError (ParameterValidationError) for parameters that are unknown, missing or out of range.
    """
    name = form["PolicyName"]
    numbers: dict[str, int] = {}
    texts: dict[str, str] = {}
    key: dict[str, frozenset[str]] = {}
    questions: list[str] = []
    disregards = False
    for parameter in form.get("Parameters", []):
        label, values = parameter.get("Key", "").strip(), parameter.get("Values", [])
        if label in _NUMBERS[name]:
            numbers[label] = _number(label, values, *_NUMBERS[name][label])
        elif label in _TEXTS[name]:
            texts[label] = _one(label, values)[:1024]
        elif label == "AnswerKey" and name == KNOWN_ANSWERS:
            key = _answer_key(parameter.get("MapEntries", []))
        elif label in {"QuestionIds", "QuestionIDs"} and name == PLURALITY:
            questions = [part.strip() for value in values for part in value.split(",") if part.strip()]
        elif label == "DisregardAssignmentIfRejected" and name == PLURALITY:
            disregards = _boolean(label, values)
        else:
            raise unfit_parameter(f"{name} has no parameter {label[:60]!r}.")
    if name == KNOWN_ANSWERS and not key:
        raise unfit_parameter(f"{name} needs an AnswerKey with MapEntries.")
    if name == PLURALITY and not (questions and "QuestionAgreementThreshold" in numbers):
        raise unfit_parameter(f"{name} needs QuestionIds and QuestionAgreementThreshold.")
    if len(questions) > _MOST_QUESTIONS or len(set(questions)) < len(questions):
        raise unfit_parameter(f"{name} compares up to {_MOST_QUESTIONS} different QuestionIds.")
    return Policy(numbers, texts, key, tuple(questions), disregards)


def _answer_key(entries: list[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for entry in entries:
        question, values = entry.get("Key", "").strip(), entry.get("Values", [])
        if not question or not values or question in found:
            raise unfit_parameter("Each of AnswerKey's MapEntries needs a Key of its own, and Values.")
        found[question] = frozenset(value.strip() for value in values)
    return found


def _one(label: str, values: list[str]) -> str:
    if len(values) != 1:
        raise unfit_parameter(f"The parameter {label} of a review policy has one value, got {len(values)}.")
    return values[0].strip()


def _number(label: str, values: list[str], least: int, most: int) -> int:
    text = _one(label, values)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise unfit_parameter(f"{label} must be a whole number from {least} to {most}, got {text[:40]!r}.")
    return int(text)


def _boolean(label: str, values: list[str]) -> bool:
    text = _one(label, values).lower()
    if text not in _BOOLEANS:
        raise unfit_parameter(f"{label} must be true or false, got {text[:40]!r}.")
    return _BOOLEANS[text]
