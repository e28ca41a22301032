"""How a server of our own protocol is reached: a path per model, one connection pool for each kind of question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from inference.remote.http import ModelServer


class HttpDoor:
    """Asks ``/predictions/NAME`` and ``/explanations/NAME``, as `dynahit model serve --ray` answers them."""

    def __init__(self, url: str, *, predict_seconds: float, explain_seconds: float) -> None:
        self._predict = ModelServer(url, seconds=predict_seconds)
        self._explain = ModelServer(url, seconds=explain_seconds)

    def ask(self, name: str, request: Mapping[str, Any], *, explain: bool) -> Any:
        """Return the server's answer. Raises ModelUnavailable."""
        if explain:
            return self.post(self._explain, f"/explanations/{quote(self.explaining(name))}", request)
        return self.post(self._predict, f"/predictions/{quote(name)}", request)

    def explaining(self, name: str) -> str:
        """Return the name under which a model explains."""
        return name

    def post(self, server: ModelServer, path: str, request: Mapping[str, Any]) -> Any:
        """Send one request."""
        return server.post(path, request)
