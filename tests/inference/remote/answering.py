"""A model server of loopback that answers what a test says."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hits.predictions import Attribution, Prediction, WordAttribution
from inference.target import ModelCard, ModelInput

LABELS = ("negative", "positive", "neutral")
Answer = tuple[int, Any]
Asked = tuple[str, str, Any, dict[str, str]]


@dataclass
class Answering:
    """A running server: ``asked`` lists (method, path, JSON body, headers) of what came."""

    url: str
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def answering(answer: Callable[[str, str, Any, dict[str, str]], Answer | None]) -> Iterator[Answering]:
    """Serve ``answer(method, path, body, headers)``: (status, JSON or bytes), or None to cut the connection."""
    known = Answering("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            body = json.loads(raw) if raw else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            known.asked.append((self.command, self.path, body, headers))
            found = answer(self.command, self.path, body, headers)
            if found is None:
                self.close_connection = True
                self.connection.close()
                return
            status, content = found
            payload = content if isinstance(content, bytes) else json.dumps(content).encode()
            # A client may have given up meanwhile.
            with suppress(ConnectionError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

        do_GET = do_POST = _answer  # noqa: N815  # the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    known.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()


class CountingModel:
    """A TargetModel whose answer follows from the text: its first word is the label; "boom" raises."""

    model_id, revision = "test/counting", "r1"
    card = ModelCard("test/counting", "r1", LABELS, {"NEG": "negative"}, "ab" * 32, "MIT", 12, 3)

    def __init__(self) -> None:
        self.batches: list[int] = []

    def predict_all(self, inputs: list[ModelInput]) -> list[Prediction]:
        self.batches.append(len(inputs))
        if any("boom" in text for item in inputs for text in item):
            raise RuntimeError("boom")
        return [self._prediction(item) for item in inputs]

    def _prediction(self, item: ModelInput) -> Prediction:
        label = item[-1].split()[0] if item[-1].split()[0] in LABELS else "neutral"
        probabilities = {name: 0.8 if name == label else 0.1 for name in LABELS}
        return Prediction(self.model_id, self.revision, label, probabilities, 1.0)

    def explain(self, item: ModelInput, target: str, method: str | None = None) -> Attribution:
        word = item[-1].split()[0]
        words = (WordAttribution(0, len(word), word, 1.5, "statement"),)
        return Attribution(self.model_id, self.revision, method or "m", 12, target, words, 0.01, True, 0.1)


@contextmanager
def dripping(*parts: bytes | int, every: float = 0.05, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve what is given: bytes at once, a number of seconds as a pause; then a blank every now and then, for 8 s.

    Every connection gets the same; the context gives the address.
    """
    stop = threading.Event()

    def serve(taken: socket.socket) -> None:
        with (
            suppress(OSError),
            taken if tls is None else tls.wrap_socket(taken, server_side=True) as connection,
        ):
            connection.recv(65_536)
            for part in parts:
                if isinstance(part, bytes):
                    connection.sendall(part)
                elif stop.wait(part):
                    return
            until = time.monotonic() + 8
            while time.monotonic() < until and not stop.wait(every):
                connection.sendall(b" ")

    def accept(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        try:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            stop.set()
            listening.shutdown(socket.SHUT_RDWR)
