"""What is TorchServe's own: two names, and tokens that expire while the service runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inference.errors import EngineRefused
from inference.remote.torchserve import TorchServeDoor, key_file_from_environment, read_key
from tests.inference.remote.answering import answering


def door(url: str, key_file: Path | None = None) -> TorchServeDoor:
    return TorchServeDoor(url, predict_seconds=2, explain_seconds=2, key_file=key_file)


def write_key(path: Path, key: str) -> None:
    path.write_text(json.dumps({"inference": {"key": key, "expiration time": "soon"}, "management": {"key": "m"}}))


def only(key: str) -> Any:
    def answer(_method: str, _path: str, _body: Any, headers: dict[str, str]) -> tuple[int, Any]:
        if headers.get("authorization") == f"Bearer {key}":
            return 200, {"predictions": []}
        return 400, {"code": 400, "type": "InvalidKeyException", "message": "Token Authorization failed."}

    return answer


def test_explanations_go_to_a_second_name_without_a_token() -> None:
    with answering(lambda *_: (200, {})) as server:
        door(server.url).ask("hate", {}, explain=False)
        door(server.url).ask("hate", {}, explain=True)

        assert [path for _, path, _, _ in server.asked] == ["/predictions/hate", "/explanations/hate-explain"]
        assert "authorization" not in server.asked[0][3]


def test_an_expired_token_is_read_again(tmp_path: Path) -> None:
    write_key(tmp_path / "key.json", "old")
    with answering(only("old")) as server:
        known = door(server.url, tmp_path / "key.json")
        assert known.ask("m", {}, explain=False) == {"predictions": []}
    with answering(only("new")) as server:
        known = door(server.url, tmp_path / "key.json")
        with pytest.raises(EngineRefused, match="InvalidKeyException"):
            known.ask("m", {}, explain=False)
        write_key(tmp_path / "key.json", "new")
        assert known.ask("m", {}, explain=False) == {"predictions": []}


def test_a_missing_token_is_refused_once() -> None:
    with answering(only("k")) as server:
        with pytest.raises(EngineRefused, match="InvalidKeyException"):
            door(server.url).ask("m", {}, explain=False)
        assert len(server.asked) == 1


@pytest.mark.parametrize("content", [None, "", "{}", '{"inference": 3}'])
def test_an_unusable_key_file_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "key.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises(EngineRefused, match=r"key\.json.*can't be read"):
        read_key(path)


def test_the_environment_names_the_key_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHSERVE_KEY_FILE", raising=False)
    assert key_file_from_environment() is None
    monkeypatch.setenv("TORCHSERVE_KEY_FILE", "/x/key_file.json")
    assert key_file_from_environment() == Path("/x/key_file.json")
