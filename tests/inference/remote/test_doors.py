"""Predictions and explanations have paths of their own."""

from __future__ import annotations

from inference.remote.doors import HttpDoor
from tests.inference.remote.answering import answering


def test_each_kind_of_question_has_its_path() -> None:
    with answering(lambda *_: (200, {})) as server:
        door = HttpDoor(server.url, predict_seconds=2, explain_seconds=2)
        door.ask("a b", {"inputs": []}, explain=False)
        door.ask("a b", {"explain": {}}, explain=True)

        assert [path for _, path, _, _ in server.asked] == ["/predictions/a%20b", "/explanations/a%20b"]
