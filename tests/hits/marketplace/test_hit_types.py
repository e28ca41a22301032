"""When two sets of properties are one HIT type."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hits.marketplace.market import HIT_PROPERTIES, Market
from tests.hits.marketplace.test_qualifications import create


def type_id(market: Market, **properties: Any) -> str:
    return market.client.create_hit_type(**{**HIT_PROPERTIES, **properties})["HITTypeId"]


def test_equal_properties_are_one_type_however_written(market: Market) -> None:
    first, second = create(market), create(market, Name="second")
    guard = {"QualificationTypeId": first, "Comparator": "In", "IntegerValues": [2, 1], "RequiredToPreview": True}
    other = {"QualificationTypeId": second, "Comparator": "Exists"}

    original = type_id(market, Reward="0.3", QualificationRequirements=[guard, other])

    assert original == type_id(
        market,
        Reward="0.30",
        AutoApprovalDelayInSeconds=2_592_000,
        QualificationRequirements=[
            {**other, "ActionsGuarded": "Accept"},
            {
                "QualificationTypeId": first,
                "Comparator": "In",
                "IntegerValues": [1, 2],
                "ActionsGuarded": "PreviewAndAccept",
            },
        ],
    )


@pytest.mark.parametrize(
    "change",
    [
        {"Title": "Fool the model!"},
        {"Description": "Other words."},
        {"Keywords": "writing"},
        {"Reward": "0.31"},
        {"AssignmentDurationInSeconds": 601},
        {"AutoApprovalDelayInSeconds": 0},
        {"QualificationRequirements": [{"QualificationTypeId": "00000000000000000040", "Comparator": "Exists"}]},
    ],
)
def test_any_small_change_is_another_type(market: Market, change: dict[str, Any]) -> None:
    assert type_id(market, **change) != type_id(market)


def test_create_hit_finds_the_type_and_its_group(market: Market) -> None:
    hit_type = type_id(market)

    first, second = market.hit(market.create_hit()), market.hit(market.create_hit())

    assert first["HITTypeId"] == second["HITTypeId"] == hit_type
    assert first["HITGroupId"] == second["HITGroupId"]


def test_types_are_each_requesters_own(market: Market) -> None:
    other = market.client_for(market.other_requester())

    assert other.create_hit_type(**HIT_PROPERTIES)["HITTypeId"] != type_id(market)
