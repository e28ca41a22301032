"""Reading review policies."""

from __future__ import annotations

from typing import Any

import pytest

from hits.marketplace.errors import MarketplaceError
from hits.marketplace.review_policies import KNOWN_ANSWERS, PLURALITY, checked, read


def policy(name: str, entries: dict[str, list[str]] | None = None, **parameters: str | list[str]) -> dict[str, Any]:
    given: list[dict[str, Any]] = [
        {"Key": key, "Values": value if isinstance(value, list) else [value]} for key, value in parameters.items()
    ]
    if entries is not None:
        given.append({"Key": "AnswerKey", "MapEntries": [{"Key": k, "Values": v} for k, v in entries.items()]})
    return {"PolicyName": name, "Parameters": given}


def test_known_answers_are_read() -> None:
    found = read(policy(KNOWN_ANSWERS, {"q": [" a ", "b"]}, RejectIfKnownAnswerScoreIsLessThan="50", RejectReason="r"))

    assert found.answer_key == {"q": frozenset({"a", "b"})}
    assert found.numbers == {"RejectIfKnownAnswerScoreIsLessThan": 50}
    assert found.texts == {"RejectReason": "r"}
    assert found.most_assignments == 5


def test_pluralities_are_read() -> None:
    found = read(
        policy(
            PLURALITY,
            QuestionIds=["a, b", "c"],
            QuestionAgreementThreshold="49",
            DisregardAssignmentIfRejected="T",
            ExtendMaximumAssignments="9",
        )
    )

    assert found.question_ids == ("a", "b", "c")
    assert found.disregards_rejected
    assert found.most_assignments == 9


@pytest.mark.parametrize(
    ("level", "form"),
    [
        ("HIT", policy(KNOWN_ANSWERS, {"q": ["a"]})),
        ("Assignment", policy("MyPolicy/2026-01-01")),
        ("Assignment", {"PolicyName": KNOWN_ANSWERS}),
        ("Assignment", policy(KNOWN_ANSWERS, {})),
        ("Assignment", policy(KNOWN_ANSWERS, {"q": []})),
        ("Assignment", policy(KNOWN_ANSWERS, {"q": ["a"]}, Mood="good")),
        ("Assignment", policy(KNOWN_ANSWERS, {"q": ["a"]}, ApproveIfKnownAnswerScoreIsAtLeast="102")),
        ("Assignment", policy(KNOWN_ANSWERS, {"q": ["a"]}, ExtendMaximumAssignments="26")),
        ("Assignment", policy(KNOWN_ANSWERS, {"q": ["a"]}, ExtendMaximumAssignments=["2", "3"])),
        ("Assignment", policy(KNOWN_ANSWERS, {"q": ["a"]}, ExtendMinimumTimeInSeconds="59")),
        ("HIT", policy(PLURALITY, QuestionIds="a")),
        ("HIT", policy(PLURALITY, QuestionAgreementThreshold="50")),
        ("HIT", policy(PLURALITY, QuestionIds="a,a", QuestionAgreementThreshold="50")),
        ("HIT", policy(PLURALITY, QuestionIds=[f"q{n}" for n in range(16)], QuestionAgreementThreshold="50")),
        ("HIT", policy(PLURALITY, QuestionIds="a", QuestionAgreementThreshold="half")),
        (
            "HIT",
            policy(PLURALITY, QuestionIds="a", QuestionAgreementThreshold="1", DisregardAssignmentIfRejected="maybe"),
        ),
    ],
)
def test_policies_that_are_refused(level: str, form: dict[str, Any]) -> None:
    with pytest.raises(MarketplaceError) as caught:
        checked(form, level)

    assert caught.value.type == "ParameterValidationError"


def test_no_policy_is_none() -> None:
    assert checked(None, "HIT") is None
