"""A marketplace engine behind a real boto3 client, with a clock that tests move and faults that they inject."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from app.settings import Settings
from hits.clock import Clock
from hits.marketplace import wire
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from hits.mturk.client import MTurk

ENDPOINT = "http://127.0.0.1:8000"
PASSWORD = "correct horse battery staple"

#: Looks at an operation before or after the engine has carried it out; may raise, or answer in its place.
Answer = tuple[int, Mapping[str, str], bytes]
Fault = Callable[[str], Answer | None]


class _Body(io.BytesIO):
    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


class Market:
    """One engine, its requester's client, and people who work there."""

    def __init__(self, clock: Clock, *, balance: str = "10000.00", endpoint: str = ENDPOINT, attempts: int = 2) -> None:
        self.engine = Marketplace("sqlite://", settings=MarketplaceSettings.for_tests(), clock=clock)
        self.requester_id = self.engine.create_requester("The dynahit tests").requester_id
        if Decimal(balance):
            self.engine.top_up(self.requester_id, Decimal(balance), "for tests")
        self.calls: list[str] = []
        self.before: Fault | None = None
        self.after: Fault | None = None
        self.mturk = self.client(endpoint, attempts=attempts)

    def client(self, endpoint: str = ENDPOINT, *, attempts: int = 2) -> MTurk:
        """Return another client of the same requester."""
        mturk = MTurk(endpoint, "AKIDTESTS", "a secret of the tests", attempts=attempts)
        mturk._client.meta.events.register("before-send.mturk", self._answer)
        return mturk

    def _answer(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        headers = {
            name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()
        }
        operation = headers["X-Amz-Target"].rpartition(".")[2]
        self.calls.append(operation)
        answer = self.before(operation) if self.before else None
        if answer is None:
            body = request.body if isinstance(request.body, bytes) else (request.body or "").encode()
            answer = wire.handle(self.engine, "POST", headers, body, authenticate=lambda: self.requester_id)
            answer = (self.after(operation) if self.after else None) or answer
        status, answer_headers, content = answer
        return AWSResponse(request.url, status, dict(answer_headers), _Body(content))

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        """Call an operation past the client."""
        return self.engine.call(self.requester_id, operation, params)

    def hits(self) -> list[dict[str, Any]]:
        """Return every HIT of the requester."""
        found: list[dict[str, Any]] = []
        token: dict[str, str] = {}
        while True:
            page = self.call("ListHITs", MaxResults=100, **token)
            found += page["HITs"]
            if not page.get("NextToken"):
                return found
            token = {"NextToken": page["NextToken"]}

    def person(self, name: str, *, grants: Mapping[str, int] | None = None) -> str:
        """Register a worker and return the worker id."""
        code = self.engine.create_invitation(name, grants=grants or {})
        return self.engine.register_worker(code, name, PASSWORD).worker_id

    def accept(self, worker_id: str, hit_id: str) -> str:
        """Take a place of a HIT and return the assignment id."""
        return self.engine.accept(worker_id, hit_id).assignment_id

    def submit(self, assignment_id: str) -> datetime:
        """Submit and return when that was."""
        return self.engine.external_submit(assignment_id, {"done": ["1"]}).submitted_at


def failing(operation: str, status: int = 500, kind: str = "ServiceFault", *, times: int = 10_000) -> Fault:
    """Return a fault that answers an operation with an error so many times."""
    left = [times]

    def answer(called: str) -> Answer | None:
        if called != operation or left[0] <= 0:
            return None
        left[0] -= 1
        content = f'{{"__type":"{kind}","Message":"Rate exceeded"}}'.encode()
        return status, {"Content-Type": "application/x-amz-json-1.1"}, content

    return answer


def settings(**changes: Any) -> Settings:
    """Return the settings of a service beside the marketplace, all on loopback."""
    values: dict[str, Any] = {
        "database_url": "sqlite://",
        "secret_key": "a secret key of the tests",
        "pseudonym_key": "pseudonyms of the tests",
        "aws_access_key_id": "AKIDTESTS",
        "aws_secret_access_key": "a secret of the tests",
        "service_url": "http://localhost:8001",
        "marketplace_endpoint": ENDPOINT,
        "worker_site_url": ENDPOINT,
        "validation_wait_seconds": 60,
    }
    return Settings(**{**values, **changes}, _env_file=None)  # type: ignore[call-arg]  # pydantic-settings' own


@contextmanager
def served(market: Market) -> Iterator[str]:
    """Serve the market's Requester API on loopback, for other processes; yield its address."""

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, content = wire.handle(
                market.engine, "POST", dict(self.headers), body, authenticate=lambda: market.requester_id
            )
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
