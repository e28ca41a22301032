"""Parameters against the vendored service model."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta, timezone

import pytest

from hits.marketplace.errors import MarketplaceError
from hits.marketplace.model_check import MODEL_FILE, check_parameters, service_model


def message(operation: str, params: dict[str, object]) -> str:
    with pytest.raises(MarketplaceError) as caught:
        check_parameters(operation, params)
    return caught.value.message


def test_the_vendored_model_is_the_one_that_its_notice_describes() -> None:
    notice = (MODEL_FILE.parent / "NOTICE.md").read_text()

    assert hashlib.sha256(MODEL_FILE.read_bytes()).hexdigest() in notice
    assert "Apache License 2.0" in notice
    assert service_model().signing_name == "mturk-requester"


def test_all_broken_constraints_are_listed_in_aws_words() -> None:
    assert message("ListHITs", {"MaxResults": 101}) == (
        "1 validation error detected: Value '101' at 'maxResults' failed to satisfy constraint: "
        "Member must have value less than or equal to 100"
    )
    assert message("GetQualificationScore", {"WorkerId": "b", "QualificationTypeId": ""}) == (
        "3 validation errors detected: Value 'b' at 'workerId' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: ^A[A-Z0-9]+$; "
        "Value '' at 'qualificationTypeId' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1; "
        "Value '' at 'qualificationTypeId' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: ^[A-Z0-9]+$"
    )
    assert "at 'hitId'" in message("GetHIT", {})
    assert "Member must satisfy enum value set: [Reviewable, Reviewing]" in message(
        "ListReviewableHITs", {"Status": "Disposed"}
    )


def test_nested_members_are_named_with_their_place() -> None:
    requirement = {"QualificationTypeId": "X", "Comparator": "Like"}

    text = message("CreateHITType", {"QualificationRequirements": [requirement]})

    assert "at 'qualificationRequirements.1.member.comparator'" in text


def test_long_values_are_quoted_in_part() -> None:
    assert len(message("GetHIT", {"HITId": "a" * 10_000})) < 700


def test_a_pattern_holds_for_the_whole_value() -> None:
    assert "pattern" in message("GetHIT", {"HITId": "3A\n"})


def test_nulls_and_unknown_members_are_left_out_and_times_are_aware() -> None:
    expected = datetime(2026, 1, 1, tzinfo=UTC)

    for given in (
        expected,
        expected.replace(tzinfo=None),
        expected.astimezone(timezone(timedelta(hours=5))),
        1_767_225_600,
        1_767_225_600.0,
        "2026-01-01T00:00:00Z",
        "2026-01-01",
    ):
        checked = check_parameters("UpdateExpirationForHIT", {"HITId": "3A", "ExpireAt": given, "Other": 1})
        assert checked == {"HITId": "3A", "ExpireAt": expected}
    assert check_parameters("ListHITs", {"NextToken": None}) == {}


@pytest.mark.parametrize(
    "params",
    [
        {"MaxResults": True},
        {"MaxResults": 1.5},
        {"MaxResults": "10"},
        {"MaxResults": 2**31},
        {"NextToken": ["a"]},
    ],
)
def test_values_of_another_kind(params: dict[str, object]) -> None:
    with pytest.raises(MarketplaceError) as caught:
        check_parameters("ListHITs", params)

    assert caught.value.type == "SerializationException"
