"""A model's card survives the way to another process."""

from __future__ import annotations

import json

import pytest

from inference.errors import BadModelAnswer
from inference.target import ModelCard, card_from_json, card_to_json

CARD = ModelCard("m", "r", ("a", "b"), {"LABEL_0": "a"}, "ab" * 32, "MIT", 22_000_000, 1)


@pytest.mark.parametrize("card", [CARD, ModelCard("m", "r", ())])
def test_a_card_survives_the_way(card: ModelCard) -> None:
    assert card_from_json(json.loads(json.dumps(card_to_json(card)))) == card


@pytest.mark.parametrize(
    "item",
    [
        None,
        [],
        {},
        {**card_to_json(CARD), "labels": 3},
        {**card_to_json(CARD), "seed": "x"},
        {**card_to_json(CARD), "seed": 2**31},
        {**card_to_json(CARD), "parameters": -1},
        {**card_to_json(CARD), "parameters": float("inf")},
        {**card_to_json(CARD), "weights_sha256": "x" * 64},
    ],
)
def test_a_malformed_card_is_refused(item: object) -> None:
    with pytest.raises(BadModelAnswer, match="card can't be read"):
        card_from_json(item)
