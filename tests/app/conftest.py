"""The service on an empty database of each kind, with a model that answers by rule, and its test client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask import Flask
from flask.testing import FlaskClient
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app import models
from app.extensions import db
from app.factory import create_app
from app.models import StaffUser
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Assignment, Example, Hit
from hits.predictions import Attribution, Prediction, WordAttribution
from hits.states import AssignmentState, HitKind
from tests.factories import (
    NOON,
    PSEUDONYM_KEY,
    make_assignment,
    make_attempt,
    make_batch,
    make_example,
    make_hit,
    make_validation_hit,
    make_worker,
)


class CompiledOnce(BytecodeCache):
    """Keeps compiled templates for all applications of this test process: each test makes one of its own."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if (kept := self._kept.get(self._key(bucket))) is not None:
            bucket.bytecode_from_string(kept)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[self._key(bucket)] = bucket.bytecode_to_string()

    @staticmethod
    def _key(bucket: Bucket) -> tuple[object, ...]:
        made_by = bucket.environment
        return bucket.key, tuple(made_by.extensions), getattr(made_by.finalize, "__qualname__", None)


# Both cost a page's test more than all that it is about.
Flask.jinja_options = {**Flask.jinja_options, "bytecode_cache": CompiledOnce()}
models.HASH_METHOD = "scrypt:1024:8:1"

SITE = "http://127.0.0.1:8000"
WORKER = "AWRITER1"
ASSIGNMENT = "ASSIGNMENTONE"


@dataclass
class RuleEngine:
    """A target model that says positive for a text with "good", neutral for one with "soup", else negative."""

    asked: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    before_answer: Callable[[str], None] = lambda text: None
    error: Exception | None = None
    explain_error: Exception | None = None
    probabilities: Mapping[str, float] | None = None
    revision: str = "one"

    def predict(self, task_code: str, fields: Mapping[str, str], *, key: str = "") -> Prediction:
        text = fields["statement"]
        self.asked.append(text)
        self.before_answer(text)
        if self.error is not None:
            raise self.error
        label = "positive" if "good" in text else "neutral" if "soup" in text else "negative"
        others = [code for code in ("negative", "positive", "neutral") if code != label]
        probabilities = self.probabilities or {label: 0.83, others[0]: 0.12, others[1]: 0.05}
        return Prediction("rule", self.revision, label, probabilities, latency_ms=1.5)

    def explain(self, task_code: str, fields: Mapping[str, str], target: str, **_: object) -> Attribution:
        text = fields["statement"]
        self.explained.append(text)
        if self.explain_error is not None:
            raise self.explain_error
        words = []
        at = 0
        for number, word in enumerate(text.split()):
            start = text.index(word, at)
            at = start + len(word)
            words.append(WordAttribution(start, at, word, (1.0, -0.6, 0.4, 0.01)[number % 4]))
        return Attribution("rule", self.revision, "rule", 20, target, tuple(words), 0.001, True, 0.02)


@pytest.fixture
def engine() -> RuleEngine:
    return RuleEngine()


@pytest.fixture
def settings(database_url: str) -> Settings:
    return Settings(
        database_url=database_url,
        secret_key=SecretStr("tokens of the tests"),
        pseudonym_key=SecretStr(PSEUDONYM_KEY),
        aws_access_key_id=SecretStr("AKIATEST"),
        aws_secret_access_key=SecretStr("test"),
    )


@pytest.fixture
def app(
    settings: Settings, session_factory: sessionmaker[Session], engine: RuleEngine, clock: FixedClock
) -> Iterator[Flask]:
    """The service; its tables come from ``session_factory`` on the same database."""
    built = create_app(settings, engine=engine, clock=clock)
    yield built
    with built.app_context():
        db.engine.dispose()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def rows(session_factory: sessionmaker[Session]) -> Callable[[type[Any]], list[Any]]:
    """Every row of a table, read in a transaction of its own."""

    def read(table: type[Any]) -> list[Any]:
        with session_factory() as session:
            found = session.query(table).order_by(table.id).all()
            session.expunge_all()
            return found

    return read


@pytest.fixture
def hit(session_factory: sessionmaker[Session]) -> Hit:
    """A creation HIT with the goal "negative" and five tries; detached, with its plain columns loaded."""
    with session_factory() as session:
        made = make_hit(session)
        session.commit()
        session.expunge_all()
        return made


def frame_query(hit: Hit, *, assignment: str = ASSIGNMENT, worker: str = WORKER, **other: str) -> dict[str, str]:
    """The query that the marketplace appends for an accepted HIT."""
    return {
        "assignmentId": assignment,
        "hitId": hit.mturk_hit_id or "",
        "workerId": worker,
        "turkSubmitTo": SITE,
        **other,
    }


def open_page(client: FlaskClient, hit: Hit, **other: str) -> TestResponse:
    """Open a writer's page; who is asked to agree or warned goes on."""
    return gone_on(client, client.get(f"/work/{hit.reference}", query_string=frame_query(hit, **other)))


def gone_on(client: FlaskClient, response: TestResponse) -> TestResponse:
    """Agree and go on behind a warning, where a page asks for that; return the page that comes then."""
    for way in ("/care/consent", "/care/warning"):
        form = BeautifulSoup(response.text, "lxml").find("form", {"action": way})
        if form is not None:
            fields = {str(field["name"]): str(field["value"]) for field in form.find_all("input")}
            response = client.post(way, data=fields, follow_redirects=True)
    return response


def token_in(response: TestResponse) -> str:
    """The token of a page's forms."""
    found = BeautifulSoup(response.text, "lxml").find("input", {"name": "token"})
    assert found is not None, response.text[:2000]
    return str(found["value"])


@pytest.fixture
def token(client: FlaskClient, hit: Hit) -> str:
    """The token of the first worker's opened assignment."""
    return token_in(open_page(client, hit))


def ask(client: FlaskClient, token: str, text: str, *, script: bool = False, **other: str) -> TestResponse:
    headers = {"X-Requested-With": "fetch"} if script else {}
    return client.post("/work/attempts", data={"token": token, "statement": text, **other}, headers=headers)


@dataclass(frozen=True)
class Judging:
    """A validation HIT of three statements, the last of them written by the validator "AOWNER"."""

    hit: Hit
    public_ids: tuple[str, ...]
    example_ids: tuple[int, ...]


@pytest.fixture
def judging(session_factory: sessionmaker[Session]) -> Judging:
    with session_factory() as session:
        owner = make_worker(session, mturk_worker_id="AOWNER")
        creation = make_hit(session)
        examples: list[Example] = []
        for writer in (make_worker(session), make_worker(session), owner):
            assignment: Assignment = make_assignment(
                session, hit=creation, worker=writer, state=AssignmentState.SUBMITTED
            )
            attempt = make_attempt(session, assignment=assignment)
            examples.append(make_example(session, attempt=attempt))
        batch = make_batch(
            session,
            round=examples[0].round,
            kind=HitKind.VALIDATION,
            title="Say what the writer of a short statement feels",
        )
        validation = make_validation_hit(session, examples=examples, batch=batch)
        session.commit()
        found = Judging(validation, tuple(one.attempt.public_id for one in examples), tuple(one.id for one in examples))
        session.expunge_all()
        return found


STAFF_PASSWORD = "correct horse battery"


@pytest.fixture
def staff(session_factory: sessionmaker[Session]) -> Callable[..., StaffUser]:
    """Makes accounts for staff."""

    def make(name: str = "robin", roles: tuple[str, ...] = ("requester",)) -> StaffUser:
        with session_factory() as session:
            user = StaffUser(name=name, roles=list(roles), created_at=NOON)
            user.set_password(STAFF_PASSWORD)
            session.add(user)
            session.commit()
            session.expunge_all()
            return user

    return make


def sign_in(client: FlaskClient, name: str = "robin", password: str = STAFF_PASSWORD, **other: str) -> TestResponse:
    page = client.get("/staff/sign-in")
    return client.post(
        "/staff/sign-in", data={"csrf_token": csrf_in(page), "name": name, "password": password, **other}
    )


def csrf_in(response: TestResponse) -> str:
    found = BeautifulSoup(response.text, "lxml").find("input", {"name": "csrf_token"})
    assert found is not None, response.text[:2000]
    return str(found["value"])
