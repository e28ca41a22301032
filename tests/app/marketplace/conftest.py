"""A marketplace with a requester and HITs, its app, people who visit it, and a real server on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.config import Config
from bs4 import BeautifulSoup
from flask import Flask
from flask.testing import FlaskClient
from pydantic import SecretStr
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.test import TestResponse

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace.clock import TestClock
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from hits.marketplace.views import Requester

CONTENT_URL = "http://hits.localhost:8000"
PASSWORD = "correct horse battery staple"
QUESTION = (
    '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/'
    '2006-07-14/ExternalQuestion.xsd"><ExternalURL>{url}</ExternalURL><FrameHeight>{height}</FrameHeight>'
    "</ExternalQuestion>"
)


def question(url: str = "http://localhost:8001/hit?round=1", height: int = 0) -> str:
    """Return the XML of an ExternalQuestion."""
    return QUESTION.format(url=url.replace("&", "&amp;"), height=height)


def hit_params(**changes: Any) -> dict[str, Any]:
    """Return CreateHIT's parameters with some changed."""
    params: dict[str, Any] = {
        "Title": "Write a statement that fools a model",
        "Description": "Write up to five short statements. Bonus $0.30 for each verified one.",
        "Keywords": "writing, sentiment",
        "Reward": "0.30",
        "AssignmentDurationInSeconds": 3600,
        "LifetimeInSeconds": 86400,
        "AutoApprovalDelayInSeconds": 259200,
        "MaxAssignments": 2,
        "Question": question(),
    }
    return {**params, **changes}


class Visitor:
    """Somebody with a browser: follows forms by sending the token of the page they stand on."""

    def __init__(self, client: FlaskClient) -> None:
        self.client = client
        self.token = ""
        self.page: BeautifulSoup = BeautifulSoup("", "html.parser")

    def get(self, path: str, **kwargs: Any) -> TestResponse:
        """Open a page and follow redirects."""
        return self._look(self.client.get(path, follow_redirects=True, **kwargs))

    def post(self, path: str, data: dict[str, Any] | None = None, *, follow: bool = True) -> TestResponse:
        """Send a form with the page's token."""
        content = {"csrf_token": self.token, **(data or {})}
        return self._look(self.client.post(path, data=content, follow_redirects=follow))

    def join(self, code: str, user_name: str) -> TestResponse:
        """Register with an invitation."""
        self.get(f"/join?code={code}")
        return self.post("/join", {"code": code, "user_name": user_name, "password": PASSWORD})

    def text(self) -> str:
        """Return the page's words in order."""
        return " ".join(self.page.get_text(" ").split())

    def _look(self, response: TestResponse) -> TestResponse:
        if response.mimetype == "text/html":
            self.page = BeautifulSoup(response.text, "html.parser")
            hidden = self.page.find("input", {"name": "csrf_token"})
            self.token = str(hidden["value"]) if hidden else self.token
        return response


@dataclass(frozen=True)
class Account:
    """A requester with money and a key."""

    requester: Requester
    access_key_id: str
    secret: str

    @property
    def requester_id(self) -> str:
        """The account's id."""
        return self.requester.requester_id


@contextmanager
def serving(app: Callable[..., Any], port: int = 0) -> Iterator[BaseWSGIServer]:
    """Run a WSGI app on a loopback port, a free one unless it is given."""
    server = make_server("127.0.0.1", port, app, threaded=True, request_handler=_Quiet)
    # Stopping waits for one interval, and many tests start a server of their own.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Quiet(WSGIRequestHandler):
    def log_request(self, *args: object, **kwargs: object) -> None:
        pass


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
def settings() -> Settings:
    return Settings(
        database_url="sqlite://",
        secret_key=SecretStr("0123456789abcdef0123456789abcdef"),
        site_url="http://127.0.0.1:8000",
        content_url=CONTENT_URL,
        allowed_hosts=("localhost",),
    )


@pytest.fixture
def engine(clock: TestClock) -> Iterator[Marketplace]:
    opened = Marketplace("sqlite://", settings=MarketplaceSettings.for_tests(content_url=CONTENT_URL), clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def account(engine: Marketplace) -> Account:
    requester = engine.create_requester("Sentiment Lab", email="lab@example.org", password=PASSWORD)
    engine.top_up(requester.requester_id, Decimal("100.00"), "seed")
    key = engine.create_access_key(requester.requester_id)
    return Account(requester, key.access_key_id, key.secret)


@pytest.fixture
def app(settings: Settings, engine: Marketplace) -> Flask:
    made = create_app(settings, marketplace=engine)
    made.testing = True
    return made


@pytest.fixture
def visitor(app: Flask) -> Visitor:
    return Visitor(app.test_client())


@pytest.fixture
def worker(app: Flask, engine: Marketplace) -> Visitor:
    """A registered worker who is signed in."""
    return new_worker(app, engine, "ada")


def new_worker(app: Flask, engine: Marketplace, user_name: str) -> Visitor:
    """Register somebody through the site."""
    visitor = Visitor(app.test_client())
    response = visitor.join(engine.create_invitation("test"), user_name)
    assert response.status_code == 200, response.text
    return visitor


@pytest.fixture
def hit(engine: Marketplace, account: Account) -> dict[str, Any]:
    return engine.call(account.requester_id, "CreateHIT", hit_params())["HIT"]


def accepted(worker: Visitor, hit_id: str) -> str:
    """Accept a HIT through the site and return the assignment's id."""
    worker.get(f"/hits/{hit_id}")
    response = worker.post(f"/hits/{hit_id}/accept", follow=False)
    assert response.status_code == 303, response.text
    worker.get(response.location)
    return response.location.rsplit("/", 1)[-1]


def mturk_client(url: str, access_key_id: str, secret: str) -> Any:
    """Return an unmodified boto3 client of one endpoint, without retries."""
    return boto3.client(
        "mturk",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=access_key_id,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}),
    )
