"""A model elsewhere behaves as one here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hits.predictions import ModelUnavailable
from inference.errors import BadModelAnswer, EngineRefused, ModelFailed, NothingToRead
from inference.remote.model import RemoteModel
from inference.remote.service import ModelService
from tests.inference.remote.answering import LABELS, CountingModel


class DirectDoor:
    """Asks the service in this process."""

    def __init__(self, answer: Any = None) -> None:
        self.service = ModelService(CountingModel(), 1)
        self.answer = answer

    def ask(self, _name: str, request: Mapping[str, Any], *, explain: bool) -> Any:
        assert explain == ("explain" in request)
        if self.answer is not None and "describe" not in request:
            return self.answer
        return self.service.answer([request])[0]


def test_it_predicts_and_explains_as_the_model_does() -> None:
    model, here = RemoteModel(DirectDoor(), "sentiment", LABELS), CountingModel()

    assert model.card == CountingModel.card
    found = model.predict_all([("positive a",), ("negative",)])
    assert [(item.label, item.probabilities) for item in found] == [
        (item.label, item.probabilities) for item in here.predict_all([("positive a",), ("negative",)])
    ]
    assert model.explain(("positive a",), "positive") == here.explain(("positive a",), "positive")


def test_other_labels_are_refused_with_both_lists() -> None:
    with pytest.raises(EngineRefused, match=r"\['negative', 'neutral', 'positive'\].*\['hateful', 'not_hateful'\]"):
        RemoteModel(DirectDoor(), "hate", ("hateful", "not_hateful"))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ([], BadModelAnswer),
        ({}, BadModelAnswer),
        ({"predictions": []}, BadModelAnswer),
        ({"predictions": 3}, BadModelAnswer),
        ({"error": {"kind": "failed", "message": "boom"}}, ModelFailed),
        ({"error": {"kind": "nothing_to_read"}}, NothingToRead),
    ],
)
def test_what_is_no_answer_is_an_error(answer: object, error: type[ModelUnavailable]) -> None:
    with pytest.raises(error):
        RemoteModel(DirectDoor(answer), "sentiment", LABELS).predict_all([("positive",)])


class ShiftingDoor(DirectDoor):
    """Answers as another model than its card says; ``redeployed`` then also shows the new card."""

    def __init__(self, *, redeployed: bool) -> None:
        super().__init__()
        self.redeployed = redeployed
        self.cards = 0

    def ask(self, name: str, request: Mapping[str, Any], *, explain: bool) -> Any:
        found = super().ask(name, request, explain=explain)
        if "describe" in request:
            self.cards += 1
            if self.redeployed and self.cards > 1:
                found = {"card": found["card"] | {"revision": "r2"}}
        for row in found.get("predictions", ()):
            row["revision"] = "r2"
        return found


def test_a_server_that_answers_as_another_model_than_it_says_is_no_answer() -> None:
    model = RemoteModel(ShiftingDoor(redeployed=False), "sentiment", LABELS)

    with pytest.raises(BadModelAnswer, match="another model"):
        model.predict_all([("positive",)])


def test_a_model_that_was_deployed_anew_is_met_anew() -> None:
    door = ShiftingDoor(redeployed=True)
    model = RemoteModel(door, "sentiment", LABELS)

    assert model.predict_all([("positive",)])[0].revision == "r2"
    assert (model.revision, model.card.revision) == ("r2", "r2")
    model.predict_all([("positive",)])
    assert door.cards == 2
