"""TorchServe as the engine: predictions and explanations under two names, tokens that expire, one .mar per task.

TorchServe is archived upstream (2025-08): for those who have it, on loopback or a private network only.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inference.errors import EngineRefused
from inference.remote.doors import HttpDoor
from inference.remote.http import ModelServer

EXPLAIN_SUFFIX = "-explain"
"""TorchServe puts predictions and explanations of one name into one batch; two names keep them apart."""
KEY_FILE = "TORCHSERVE_KEY_FILE"
"""Names TorchServe's key_file.json, if its token authorization is on."""


class TorchServeDoor(HttpDoor):
    """Asks a TorchServe; an expired inference token is read again once from the key file, which TorchServe rewrites."""

    def __init__(self, url: str, *, predict_seconds: float, explain_seconds: float, key_file: Path | None) -> None:
        super().__init__(url, predict_seconds=predict_seconds, explain_seconds=explain_seconds)
        self._key_file = key_file
        self._key: str | None = None
        self._lock = threading.Lock()

    def explaining(self, name: str) -> str:
        """Return the name under which a model explains."""
        return name + EXPLAIN_SUFFIX

    def post(self, server: ModelServer, path: str, request: Mapping[str, Any]) -> Any:
        """Send one request with a token that is in force."""
        try:
            return server.post(path, request, headers=self._authorization(fresh=False))
        except EngineRefused as error:
            # The refusal of a token is a 400 with this type, not a 401.
            if self._key_file is None or "InvalidKeyException" not in str(error):
                raise
        return server.post(path, request, headers=self._authorization(fresh=True))

    def _authorization(self, *, fresh: bool) -> dict[str, str]:
        if self._key_file is None:
            return {}
        with self._lock:
            if self._key is None or fresh:
                self._key = read_key(self._key_file)
            return {"Authorization": f"Bearer {self._key}"}


def key_file_from_environment() -> Path | None:
    """Return the key file that the environment names, if it does."""
    named = os.environ.get(KEY_FILE)
    return Path(named) if named else None


def read_key(path: Path) -> str:
    """Return the inference key of TorchServe's key file. Raises EngineRefused."""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["inference"]["key"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineRefused(
            str(path), f"TorchServe's inference key can't be read ({type(error).__name__}: {error})"
        ) from error
