"""A task that nobody here has heard of, in a package of its own, goes through the whole loop."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy.orm import Session, sessionmaker

from app.extensions import db
from app.factory import create_app
from app.operations.jobs_pass import jobs_pass
from app.operations.launch import LaunchTerms, launch_batch
from app.operations.settle import settle
from app.settings import Settings
from hits import tasks
from hits.clock import FixedClock
from hits.export import export_round
from hits.predictions import Attribution, Prediction, WordAttribution
from qualification.validators import MINIMUM, validator_type
from tests.app.conftest import gone_on, token_in
from tests.market import Market

SOURCE = """
from hits.tasks import ContextField, Label, QuizItem, TaskSpec, TextInput, WorkedExample

TASK = TaskSpec(
    code="register",
    version=3,
    title="Write a mail of a given tone",
    description="Write a short mail that a model misjudges.",
    keywords=("mail",),
    summary="Write a mail.",
    instructions=("Write a mail.",),
    rules=("One mail.",),
    labels=(
        Label("formal", "formal", "a FORMAL mail", "Formal: as to an office"),
        Label("casual", "casual", "a CASUAL mail", "Casual: as to a friend"),
    ),
    context_fields=(ContextField("receiver", "Receiver", 200), ContextField("occasion", "Occasion", 200)),
    answer_fields=(TextInput("subject", "Your subject", "A line.", 80), TextInput("body", "Your mail", "", 500)),
    model_fields=("receiver", "subject", "body"),
    validation_question="What tone has this mail?",
    examples=(
        WorkedExample({"subject": "Invoice", "body": "Dear Sir."}, "formal", "A greeting for offices."),
        WorkedExample({"subject": "hey", "body": "see you"}, "casual", "As to a friend."),
    ),
    quiz=(QuizItem("Dear Madam", "formal", "So it is."),),
    default_model="nobody's:own",
)
"""


class Registrar:
    """Calls every mail formal that says "dear"."""

    def predict(self, task_code: str, answer: Mapping[str, str], *, key: str = "") -> Prediction:
        assert task_code == "register"
        assert list(answer) == ["receiver", "subject", "body"]
        label, other = ("formal", "casual") if "dear" in answer["body"].lower() else ("casual", "formal")
        return Prediction("registrar", "9", label, {label: 0.9, other: 0.1}, 2.0)

    def explain(self, task_code: str, answer: Mapping[str, str], target: str, **_: object) -> Attribution:
        words = (WordAttribution(0, 4, answer["body"][:4], 0.5),)
        return Attribution("registrar", "9", "rule", 1, target, words, 0.0, True, 0.0)


@pytest.fixture
def task_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    package = tmp_path / "foreign_tasks"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "register.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = dict(tasks._registry)
    tasks.register_package("foreign_tasks")
    yield "register"
    tasks._registry.clear()
    tasks._registry.update(known)
    for name in [name for name in sys.modules if name.startswith("foreign_tasks")]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def market(clock: FixedClock) -> Market:
    return Market(clock)


@pytest.fixture
def service(
    settings: Settings, session_factory: sessionmaker[Session], clock: FixedClock, market: Market
) -> Iterator[Flask]:
    settings = settings.model_copy(update={"validation_wait_seconds": 0})
    built = create_app(settings, engine=Registrar(), clock=clock)
    built.extensions["dynahit"].__dict__["mturk"] = market.mturk
    with built.app_context():
        yield built
        db.session.remove()
        db.engine.dispose()


def test_it_is_launched_written_judged_paid_and_exported(
    task_code: str, service: Flask, market: Market, clock: FixedClock
) -> None:
    settings = service.extensions["dynahit"].settings
    qualification = validator_type(market.mturk, settings.validator_qualification)
    terms = LaunchTerms(
        task_code=task_code, round_number=1, hits=1, reward=Decimal("0.40"), bonus=Decimal("0.20"), tries=2
    )
    contexts = [{"receiver": "The tax office", "occasion": "A late letter"}]
    launch_batch(db.session(), market.mturk, settings, clock, replace(terms, seed=1), contexts)
    (hit,) = market.hits()

    page, token, assignment_id = _accepted(service, market, market.person("writer"), hit["HITId"])
    assert "The tax office" in page
    assert "Your subject" in page
    goal = "formal" if "a FORMAL mail" in page else "casual"
    body = "Here are the papers you wanted." if goal == "formal" else "Dear old friend, the pub is open."
    client = service.test_client()
    asked = client.post("/work/attempts", data={"token": token, "subject": "<b>The letter</b>", "body": body})
    assert asked.status_code == 200
    assert "You fooled the model" in asked.text
    assert "&lt;b&gt;The letter" in asked.text
    assert client.post("/work/submit", data={"token": token, "why": ""}).status_code == 200
    market.submit(assignment_id)
    jobs_pass(db.session(), market.mturk, settings, clock)

    (validation,) = [one for one in market.hits() if "/validate/" in one["Question"]]
    for name in ("reader-1", "reader-2"):
        reader = market.person(name, grants={qualification: MINIMUM})
        page, token, assignment_id = _accepted(service, market, reader, validation["HITId"])
        assert "What tone has this mail?" in page
        assert "Casual: as to a friend" in page
        assert body in page
        (row,) = db.session.execute(db.text("SELECT public_id FROM attempt")).all()
        voted = client.post("/validate/votes", data={"token": token, "statement": row[0], "label": goal})
        assert voted.status_code == 200
        assert client.post("/validate/submit", data={"token": token}).status_code == 200
        market.submit(assignment_id)
    jobs_pass(db.session(), market.mturk, settings, clock)
    settled = settle(db.session(), market.mturk, clock)

    assert [one.result.value for one in settled.settled] == ["paid"]
    (exported,) = export_round(db.session(), task_code, 1)
    assert exported["verdict"] == "valid_and_model_wrong"
    assert exported["task_version"] == 3
    assert exported["answer"] == {"subject": "<b>The letter</b>", "body": body}
    assert exported["context"] == contexts[0]
    assert json.dumps(exported)


def _accepted(service: Flask, market: Market, worker_id: str, hit_id: str) -> tuple[str, str, str]:
    """Accept a HIT and open its page; return the page, its token and the assignment id."""
    view = market.engine.accept(worker_id, hit_id)
    path = view.frame_url.split("?")[0].removeprefix("http://localhost:8001")
    query = {"assignmentId": view.assignment_id, "hitId": hit_id, "workerId": worker_id}
    client = service.test_client()
    page = gone_on(client, client.get(path, query_string=query))
    assert page.status_code == 200, page.text
    return page.text, token_in(page), view.assignment_id
