"""A marketplace for tests: a real boto3 client that signs, whose requests go through the wire form into the engine."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from hits.marketplace import wire
from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.tables import WorkerRow

if TYPE_CHECKING:
    from mypy_boto3_mturk import MTurkClient

EXTERNAL_NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
WORKERS_PASSWORD = "a good password"
_numbers = itertools.count(1)


def external_question(url: str = "http://localhost:8001/hits?batch=1&amp;round=1", height: str = "0") -> str:
    return (
        f'<ExternalQuestion xmlns="{EXTERNAL_NAMESPACE}"><ExternalURL>{url}</ExternalURL>'
        f"<FrameHeight>{height}</FrameHeight></ExternalQuestion>"
    )


HIT_PROPERTIES: dict[str, Any] = {
    "Title": "Fool the model",
    "Description": "Write a statement that the model takes for something else.",
    "Keywords": "writing, language",
    "Reward": "0.30",
    "AssignmentDurationInSeconds": 600,
}


class _Body(io.BytesIO):
    def stream(self, **_options: Any) -> Iterator[bytes]:
        yield self.read()


class Market:
    """A marketplace with one requester who has $1000.00, and that requester's boto3 client."""

    def __init__(self, url: str = "sqlite://", *, frame_secret: str | None = None) -> None:
        self.url = url
        self.clock = TestClock()
        self.settings = MarketplaceSettings.for_tests(frame_secret=frame_secret)
        self.engine = Marketplace(url, settings=self.settings, clock=self.clock)
        self.engine.create_schema()
        self.requester_id = self.engine.create_requester("Language Lab").requester_id
        self.engine.top_up(self.requester_id, Decimal("1000.00"))
        self.client = self.client_for(self.requester_id)

    def client_for(self, requester_id: str) -> MTurkClient:
        key = self.engine.create_access_key(requester_id)
        client = boto3.client(
            "mturk",
            region_name="us-east-1",
            endpoint_url="http://127.0.0.1:8000",
            aws_access_key_id=key.access_key_id,
            aws_secret_access_key=key.secret,
            config=Config(retries={"total_max_attempts": 1}),
        )
        client.meta.events.register("before-send.mturk", self._answer)
        return client

    def other_requester(self) -> str:
        requester_id = self.engine.create_requester(f"Other {next(_numbers)}").requester_id
        self.engine.top_up(requester_id, Decimal("1000.00"))
        return requester_id

    def worker(self, **traits: Any) -> str:
        code = self.engine.create_invitation("for a test")
        worker_id = self.engine.register_worker(code, f"worker{next(_numbers)}", WORKERS_PASSWORD).worker_id
        with self.engine.store.session(writes=True) as session:
            row = session.get_one(WorkerRow, worker_id)
            for name, value in traits.items():
                setattr(row, name, value)
        return worker_id

    def create_hit(self, **properties: Any) -> str:
        given = {**HIT_PROPERTIES, "LifetimeInSeconds": 3600, "Question": external_question(), **properties}
        return self.client.create_hit(**given)["HIT"]["HITId"]

    def hit(self, hit_id: str) -> Any:
        return self.client.get_hit(HITId=hit_id)["HIT"]

    def counters(self, hit_id: str) -> tuple[str, int, int, int]:
        """Status, available, pending, completed."""
        hit = self.hit(hit_id)
        return (
            hit["HITStatus"],
            hit["NumberOfAssignmentsAvailable"],
            hit["NumberOfAssignmentsPending"],
            hit["NumberOfAssignmentsCompleted"],
        )

    def accepted(self, hit_id: str, worker_id: str | None = None) -> str:
        return self.engine.accept(worker_id or self.worker(), hit_id).assignment_id

    def submitted(self, hit_id: str, worker_id: str | None = None) -> str:
        assignment_id = self.accepted(hit_id, worker_id)
        self.engine.external_submit(assignment_id, {"statement": ["It was fine, I suppose."]})
        return assignment_id

    def worker_of(self, assignment_id: str) -> str:
        return self.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["WorkerId"]

    def balance(self) -> tuple[str, str]:
        """What the API says: available, on hold."""
        answer = self.client.get_account_balance()
        return answer["AvailableBalance"], answer["OnHoldBalance"]

    def _answer(self, request: Any, **_event: Any) -> AWSResponse:
        parts = urlsplit(request.url)
        headers = {
            name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()
        }
        # Stands for what the HTTP library adds on the way.
        headers.setdefault("Host", parts.netloc)
        body = request.body if isinstance(request.body, bytes) else (request.body or "").encode()
        # Signatures are held against the machine's time, as in a running marketplace.
        status, answer_headers, answer = wire.handle(
            self.engine,
            request.method,
            headers,
            body,
            authenticate=lambda: self.engine.authenticate_request(
                request.method, parts.path, parts.query, headers, body
            ),
        )
        return AWSResponse(request.url, status, answer_headers, _Body(answer))


class Refusal:
    """What an expected error said."""

    type: str
    turk_code: str | None
    message: str


@contextmanager
def refused(type: str, code: str | None = None, *, says: str = "") -> Iterator[Refusal]:
    """Expect an error of the API by its type, its TurkErrorCode (without prefix) and a part of its message."""
    refusal = Refusal()
    with pytest.raises(ClientError) as caught:
        yield refusal
    response: Any = caught.value.response
    refusal.type = response["Error"]["Code"]
    refusal.turk_code = response.get("TurkErrorCode")
    refusal.message = response["Error"]["Message"]
    assert refusal.type == type, response
    assert says in refusal.message
    if code is not None:
        assert refusal.turk_code in {f"AWS.MechanicalTurk.{code}", f"AWS.{code}"}, response
