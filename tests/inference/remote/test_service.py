"""One batch of requests: together where that is faster, apart where one would spoil the others."""

from __future__ import annotations

from typing import Any

import pytest

from inference.errors import NothingToRead
from inference.remote.service import ModelService
from tests.inference.remote.answering import CountingModel


@pytest.fixture
def model() -> CountingModel:
    return CountingModel()


@pytest.fixture
def service(model: CountingModel) -> ModelService:
    return ModelService(model, 1)


def labels(answer: dict[str, Any]) -> list[str]:
    return [item["label"] for item in answer["predictions"]]


def test_the_texts_of_all_requests_share_a_batch(service: ModelService, model: CountingModel) -> None:
    answers = service.answer([{"inputs": [["positive a"], ["negative b"]]}, {"inputs": [["neutral c"]]}])

    assert [labels(answer) for answer in answers] == [["positive", "negative"], ["neutral"]]
    assert model.batches == [3]


def test_one_bad_text_fails_alone(service: ModelService) -> None:
    good, bad = service.answer([{"inputs": [["positive a"]]}, {"inputs": [["boom"]]}])

    assert labels(good) == ["positive"]
    assert bad["error"] == {"kind": "failed", "message": "RuntimeError: boom"}


def test_kinds_of_requests_may_be_mixed(service: ModelService) -> None:
    described, explained, predicted = service.answer(
        [
            {"describe": True},
            {"explain": {"input": ["positive a"], "target": "positive", "method": None}},
            {"inputs": [["negative"]]},
        ]
    )

    assert described["card"]["revision"] == "r1"
    assert explained["attribution"]["target"] == "positive"
    assert labels(predicted) == ["negative"]


@pytest.mark.parametrize(
    "request_",
    [None, [], "x", {}, {"inputs": "x"}, {"inputs": [["a", "b"]]}, {"inputs": [[3]]}, {"explain": {}}, {"explain": 3}],
)
def test_a_malformed_request_gets_an_error_and_spoils_nothing(service: ModelService, request_: object) -> None:
    bad, good = service.answer([request_, {"inputs": [["positive"]]}])

    assert bad["error"]["kind"] == "malformed"
    assert labels(good) == ["positive"]


def test_nothing_to_read_is_told_apart(service: ModelService, model: CountingModel) -> None:
    def predict_all(_: object) -> Any:
        raise NothingToRead

    model.predict_all = predict_all  # type: ignore[method-assign]

    assert service.answer([{"inputs": [[" "]]}])[0]["error"]["kind"] == "nothing_to_read"


def test_no_texts_get_no_answers(service: ModelService) -> None:
    assert service.answer([{"inputs": []}]) == [{"predictions": []}]


def test_the_log_says_what_failed_without_the_text(service: ModelService, caplog: pytest.LogCaptureFixture) -> None:
    service.answer([{"inputs": [["boom"]]}])

    assert "RuntimeError" in caplog.text
    assert "answering.py" in caplog.text
    assert "RuntimeError: boom" not in caplog.text
