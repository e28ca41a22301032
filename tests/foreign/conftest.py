"""A marketplace on loopback for clients in processes of their own, and a worker who uses its pages over HTTP."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from bs4 import BeautifulSoup
from pydantic import SecretStr

from app.marketplace.factory import create_app
from app.marketplace.settings import Settings
from hits.marketplace.engine import Marketplace
from hits.marketplace.settings import MarketplaceSettings
from tests.app.marketplace.conftest import PASSWORD, serving


class Refused(Exception):
    """What a client reported of an error."""

    def __init__(self, code: str, turk_code: str, message: str) -> None:
        super().__init__(f"{code}: {message} ({turk_code})")
        self.code = code
        self.turk_code = turk_code
        self.message = message


class SiteRefused(Exception):
    """The worker site did not let somebody do something."""


class Client(Protocol):
    """One foreign client, as its user would call it."""

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        """Carry out an operation; raises Refused."""

    def every(self, operation: str, key: str, **params: Any) -> list[dict[str, Any]]:
        """Return the rows of all pages, by the client's own paging."""


@dataclass(frozen=True)
class Served:
    """A marketplace that other processes reach."""

    url: str
    engine: Marketplace
    requester_id: str
    access_key_id: str
    secret: str

    def environment(self, **changes: str) -> dict[str, str]:
        """Return a process's environment that knows this endpoint and these keys, and nothing else of AWS."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
        return {
            **kept,
            "AWS_ENDPOINT_URL_MTURK": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            **changes,
        }


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    class Late:
        app: Any = None

        def __call__(self, environ: Any, start_response: Any) -> Any:
            return self.app(environ, start_response)

    late = Late()
    with serving(late) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        database_url = f"sqlite:///{tmp_path / 'marketplace.db'}"
        engine = Marketplace(database_url, settings=MarketplaceSettings.for_tests(site_url=url))
        engine.create_schema()
        late.app = create_app(
            Settings(database_url=database_url, secret_key=SecretStr("0123456789abcdef" * 2), site_url=url),
            marketplace=engine,
        )
        requester = engine.create_requester("Sentiment Lab")
        engine.top_up(requester.requester_id, Decimal(100), "seed")
        key = engine.create_access_key(requester.requester_id)
        yield Served(url, engine, requester.requester_id, key.access_key_id, key.secret)
        engine.close()


class SiteWorker:
    """Somebody at the worker site: its pages and forms over HTTP, and a HIT's page that posts externalSubmit."""

    def __init__(self, served: Served, user_name: str) -> None:
        self.url = served.url
        self.browser = requests.Session()
        self.token = ""
        code = served.engine.create_invitation(user_name)
        self._look("GET", f"/join?code={code}")
        self._look("POST", "/join", {"code": code, "user_name": user_name, "password": PASSWORD})
        self.worker_id = served.engine.authenticate_worker(user_name, PASSWORD).worker_id

    def work_on(self, hit_id: str, **answers: str) -> str:
        """Accept the HIT, answer on its page, and return the assignment's id."""
        self._look("GET", f"/hits/{hit_id}")
        page = self._look("POST", f"/hits/{hit_id}/accept")
        frame = page.find("iframe")
        assert frame is not None
        query = parse_qs(urlsplit(str(frame["src"])).query)
        assert query["workerId"] == [self.worker_id]
        assignment_id = query["assignmentId"][0]
        answer = requests.post(
            query["turkSubmitTo"][0] + "/mturk/externalSubmit",
            data={"assignmentId": assignment_id, **answers},
            timeout=30,
        )
        assert answer.status_code == 200, answer.text
        return assignment_id

    def ask_for(self, qualification_type_id: str) -> None:
        """Request a qualification on its page."""
        self._look("GET", f"/qualifications/{qualification_type_id}")
        self._look("POST", f"/qualifications/{qualification_type_id}/request")

    def _look(self, method: str, path: str, form: dict[str, str] | None = None) -> BeautifulSoup:
        data = {"csrf_token": self.token, **(form or {})} if method == "POST" else None
        response = self.browser.request(method, self.url + path, data=data, timeout=30)
        if response.status_code != 200:
            raise SiteRefused(f"{path}: {response.status_code} " + re.sub(r"\s+", " ", response.text))
        page = BeautifulSoup(response.text, "html.parser")
        hidden = page.find("input", {"name": "csrf_token"})
        self.token = str(hidden["value"]) if hidden else self.token
        return page
