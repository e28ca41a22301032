"""Predictions and explanations have paths of their own."""

from __future__ import annotations

import time

import pytest

from inference.errors import ModelTimeout
from inference.remote.doors import HttpDoor
from tests.inference.remote.answering import answering, dripping


def test_each_kind_of_question_has_its_path() -> None:
    with answering(lambda *_: (200, {})) as server:
        door = HttpDoor(server.url, predict_seconds=2, explain_seconds=2)
        door.ask("a b", {"inputs": []}, explain=False)
        door.ask("a b", {"explain": {}}, explain=True)

        assert [path for _, path, _, _ in server.asked] == ["/predictions/a%20b", "/explanations/a%20b"]


def test_a_server_that_drips_its_answer_holds_no_prediction_beyond_its_time() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nX-Slow:", every=0.2) as url:
        door = HttpDoor(url, predict_seconds=0.5, explain_seconds=1)
        for explain, most in ((False, 0.5), (True, 1.0)):
            started = time.monotonic()
            with pytest.raises(ModelTimeout):
                door.ask("m", {"inputs": []}, explain=explain)
            assert most * 0.9 < time.monotonic() - started < 5
