"""One POST or GET to a model server: deadlines, one more try where nothing can count twice, errors in our words."""

from __future__ import annotations

import http.client
import io
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, ReadTimeoutError

from inference.errors import BadModelAnswer, EngineRefused, EngineUnreachable, ModelQueueFull, ModelTimeout

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 2.0
MAX_ANSWER_BYTES = 4_000_000
PIECE_BYTES = 65_536
BUSY = (429, 503)
"""What servers say when their queue is full or no replica is up: worth asking again later, never a verdict."""
DIED = (502, 504, 507)
"""The process that computed is gone (507 is TorchServe's "Worker died"); its successor may answer."""


def address(url: str) -> str:
    """Return the server's address without a trailing slash. Raises EngineRefused for one that is no web address."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise EngineRefused(url, "it is no web address such as http://127.0.0.1:8080")
    return url.rstrip("/")


@dataclass(frozen=True)
class Reply:
    """What a server sent back, whole."""

    status: int
    content: bytes


class _Call(threading.local):
    """Until when the call that this thread makes may take, on the monotonic clock."""

    deadline = float("inf")

    @contextmanager
    def until(self, deadline: float) -> Iterator[None]:
        self.deadline = deadline
        try:
            yield
        finally:
            self.deadline = float("inf")

    def left(self) -> float:
        """Return the seconds that are left. Raises TimeoutError when there are none."""
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds


_call = _Call()


class _Bytes(io.RawIOBase):
    """What a socket receives until the call's deadline: its own timeout begins anew with every byte."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._raw = connected.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int | None:
        self._socket.settimeout(_call.left())
        return self._raw.readinto(into)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer whose first line, headers and body all come before the call's deadline."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        endless, self.fp = self.fp, io.BufferedReader(_Bytes(sock))
        endless.close()


class _Connection(HTTPConnection):
    response_class = _Answer

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            # Kept from another call, with what that one had left.
            self.sock.settimeout(_call.left())
        super().request(*args, **kwargs)


class _SecureConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _Adapter(requests.adapters.HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}


class ModelServer:
    """A model server's address with its pool of connections; safe to use from several threads.

    Predicting is free of side effects, so a lost connection or a died process is tried once more. ``seconds`` is for
    the whole of a call: both tries, and every byte of an answer. (Looking up a host's name has no limit but the
    system's.)
    """

    def __init__(self, url: str, *, seconds: float, headers: dict[str, str] | None = None) -> None:
        self.url = address(url)
        self.seconds = seconds
        self._session = requests.Session()
        # A proxy of the environment is for the world outside, and would see every text.
        self._session.trust_env = False
        self._session.headers.update(headers or {})
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _Adapter(pool_connections=1, pool_maxsize=32))

    def get(self, path: str) -> Any:
        """Return the JSON that a path answers, None for an empty body. Raises as post does."""
        return self._answer(self._send("GET", path, None, None))

    def post(self, path: str, body: object, *, headers: dict[str, str] | None = None) -> Any:
        """Post JSON and return the JSON of the answer.

        Raises EngineUnreachable, ModelTimeout, ModelQueueFull, EngineRefused (with the server's words), BadModelAnswer.
        """
        return self._answer(self._send("POST", path, body, headers))

    def _send(self, method: str, path: str, body: object, headers: dict[str, str] | None) -> Reply:
        with _call.until(time.monotonic() + self.seconds):
            return self._sent(method, path, body, headers)

    def _sent(self, method: str, path: str, body: object, headers: dict[str, str] | None) -> Reply:
        last: Exception | None = None
        for _ in range(2):
            try:
                left = _call.left()
                response = self._session.request(
                    method,
                    self.url + path,
                    data=None if body is None else json.dumps(body).encode(),
                    headers={**({"Content-Type": "application/json"} if body is not None else {}), **(headers or {})},
                    timeout=(min(CONNECT_SECONDS, left), left),
                    allow_redirects=False,
                    stream=True,
                )
                with response:
                    reply = Reply(response.status_code, self._read(response))
            except requests.ConnectTimeout as error:
                raise EngineUnreachable(self.url, "it takes no connection") from error
            except (requests.Timeout, ReadTimeoutError, TimeoutError) as error:
                raise ModelTimeout(self.seconds) from error
            except (requests.RequestException, HTTPError, OSError) as error:
                last = error
                continue
            if reply.status in DIED:
                last = EngineRefused(self.url, f"HTTP {reply.status}: {words_of(reply)}")
                continue
            return reply
        if isinstance(last, EngineRefused):
            raise last
        raise EngineUnreachable(self.url, type(last).__name__) from last

    def _read(self, response: requests.Response) -> bytes:
        # Nothing else bounds what a server may send.
        content = bytearray()
        while piece := response.raw.read1(PIECE_BYTES, decode_content=True):
            content += piece
            if len(content) > MAX_ANSWER_BYTES:
                raise BadModelAnswer(f"it answered with more than {MAX_ANSWER_BYTES:,} bytes")
        return bytes(content)

    def _answer(self, reply: Reply) -> Any:
        if reply.status in BUSY:
            raise ModelQueueFull(None)
        if reply.status != 200:
            raise EngineRefused(self.url, f"HTTP {reply.status}: {words_of(reply)}")
        if not reply.content:
            return None
        try:
            return json.loads(reply.content)
        except (ValueError, RecursionError) as error:
            raise BadModelAnswer("it answered with something else than JSON that can be read") from error


def words_of(reply: Reply) -> str:
    """Return what a server said about an error, cut short, whatever form it has."""
    try:
        found = json.loads(reply.content)
    except (ValueError, RecursionError):
        return reply.content[:200].decode(errors="replace")
    if isinstance(found, dict):
        for name in ("message", "error", "detail"):
            if name in found:
                return f"{found.get('type', '')} {found[name]}".strip()[:200]
    return str(found)[:200]
