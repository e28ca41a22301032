"""TorchServe hands over bodies in several forms; each row of a batch gets one answer."""

from __future__ import annotations

import json

import pytest

from inference.remote.service import ModelService
from inference.remote.torchserve_handler import Handler
from tests.inference.remote.answering import CountingModel

ASKED = {"inputs": [["positive a"]]}


@pytest.fixture
def handler() -> Handler:
    handler = Handler()
    handler.service = ModelService(CountingModel(), 1)
    return handler


@pytest.mark.parametrize(
    "row",
    [
        {"body": ASKED},
        {"body": json.dumps(ASKED)},
        {"body": json.dumps(ASKED).encode()},
        {"body": bytearray(json.dumps(ASKED).encode())},
        {"data": ASKED},
    ],
)
def test_every_form_of_a_body_is_read(handler: Handler, row: dict[str, object]) -> None:
    (answer,) = handler.handle([row], None)

    assert answer["predictions"][0]["label"] == "positive"


@pytest.mark.parametrize("row", [{}, {"body": b"{"}, {"body": "\xff"}, {"body": None}])
def test_what_is_no_body_gets_an_error_of_its_own(handler: Handler, row: dict[str, object]) -> None:
    bad, good = handler.handle([row, {"body": ASKED}], None)

    assert bad["error"]["kind"] == "malformed"
    assert good["predictions"][0]["label"] == "positive"
