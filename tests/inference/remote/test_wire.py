"""What is sent is what arrives, and nothing that is malformed becomes an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hits.predictions import AnswerSpan, Attribution, Prediction, WordAttribution
from inference.errors import BadModelAnswer
from inference.remote.wire import attribution_from_json, attribution_to_json, prediction_from_json, prediction_to_json

LABELLED = Prediction("m", "r", "a", {"a": 0.75, "b": 0.25}, 2.0, truncated=True, characters_read={"x": 7})
SPAN = Prediction("m", "r", "", {}, 2.0, span=AnswerSpan(1, 3, "é😀"), confidence=0.5)
EXPLAINED = Attribution("m", "r", "ig", 12, "a", (WordAttribution(0, 2, "ab", -1.25, "x"),), None, True, 0.5)


@pytest.mark.parametrize("prediction", [LABELLED, SPAN])
def test_a_prediction_survives_the_way(prediction: Prediction) -> None:
    assert prediction_from_json(json.loads(json.dumps(prediction_to_json(prediction))), 2.0) == prediction


def test_an_explanation_survives_the_way() -> None:
    assert attribution_from_json(json.loads(json.dumps(attribution_to_json(EXPLAINED)))) == EXPLAINED


@pytest.mark.parametrize("name", sorted(prediction_to_json(LABELLED)))
def test_a_prediction_that_lacks_something_is_refused(name: str) -> None:
    item = prediction_to_json(LABELLED)
    del item[name]

    with pytest.raises(BadModelAnswer, match=f"can't be read .*{name}"):
        prediction_from_json(item, 2.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("label", 3),
        ("probabilities", []),
        ("probabilities", {"a": "x"}),
        ("span", {"start": 1}),
        ("span", "x"),
        ("confidence", "x"),
        ("span", {"start": float("inf"), "end": 3, "text": "x"}),
        ("characters_read", {"x": float("inf")}),
        ("characters_read", [3]),
        ("model_id", None),
    ],
)
def test_a_malformed_prediction_is_refused(name: str, value: Any) -> None:
    with pytest.raises(BadModelAnswer, match="can't be read"):
        prediction_from_json(prediction_to_json(LABELLED) | {name: value}, 2.0)


@pytest.mark.parametrize("item", [None, [], "text", {"words": 3}])
def test_a_malformed_explanation_is_refused(item: object) -> None:
    with pytest.raises(BadModelAnswer, match="can't be read"):
        attribution_from_json(item)
