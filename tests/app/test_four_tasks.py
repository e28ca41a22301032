"""Each task goes through the whole loop: launched, written, explained, judged, paid, exported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from bs4 import BeautifulSoup
from flask import Flask
from sqlalchemy.orm import Session, sessionmaker

from app.extensions import db
from app.factory import create_app
from app.operations.jobs_pass import jobs_pass
from app.operations.launch import LaunchTerms, launch_batch, plan_launch
from app.operations.settle import settle
from app.settings import Settings
from hits import tasks
from hits.clock import FixedClock
from hits.export import export_round
from hits.models import Hit
from hits.tasks import TASKS, task
from qualification.validators import MINIMUM, validator_type
from tests.app.conftest import gone_on, token_in
from tests.app.four_tasks import CONTEXTS, PASSAGE, FourTaskEngine
from tests.market import Market


@pytest.fixture
def market(clock: FixedClock) -> Market:
    return Market(clock)


@pytest.fixture
def model() -> FourTaskEngine:
    return FourTaskEngine()


@pytest.fixture
def service(
    settings: Settings,
    session_factory: sessionmaker[Session],
    clock: FixedClock,
    market: Market,
    model: FourTaskEngine,
) -> Iterator[Flask]:
    settings = settings.model_copy(update={"validation_wait_seconds": 0})
    built = create_app(settings, engine=model, clock=clock)
    built.extensions["dynahit"].__dict__["mturk"] = market.mturk
    with built.app_context():
        yield built
        db.session.remove()
        db.engine.dispose()


def terms(code: str) -> LaunchTerms:
    return LaunchTerms(
        task_code=code, round_number=1, hits=1, reward=Decimal("0.40"), bonus=Decimal("0.20"), tries=3, seed=1
    )


def fooling_answer(code: str, goal: str) -> dict[str, str]:
    """What a writer sends who aims at ``goal``; the model of these tests says the first label that a text names."""
    if code == "qa":
        at = len(PASSAGE[: PASSAGE.index("stone")].encode("utf-16-le")) // 2
        return {
            "question": "Of what was the second bridge, stone or oak?",
            "answer": "stone",
            "answer_start": "",
            "answer_start_utf16": str(at),
        }
    spec = task(code)
    other = next(label for label in spec.label_codes if label != goal)
    (item,) = spec.text_inputs
    return {item.name: f"They call it {other} here, <b>and</b> so it is."}


@pytest.mark.parametrize("code", TASKS)
def test_it_is_launched_written_explained_judged_paid_and_exported(
    code: str, service: Flask, market: Market, clock: FixedClock, model: FourTaskEngine
) -> None:
    settings = service.extensions["dynahit"].settings
    qualification = validator_type(market.mturk, settings.validator_qualification)
    spec = task(code)
    launch_batch(db.session(), market.mturk, settings, clock, terms(code), [CONTEXTS[code]])
    (hit,) = market.hits()
    goal = db.session.query(Hit.goal_label).scalar()

    page, token, assignment_id = accepted(service, market, market.person("writer"), hit["HITId"])
    assert goal in spec.goals
    assert BeautifulSoup(page, "lxml").find("h1", class_="goal").get_text() == spec.goal_sentence(goal)
    client = service.test_client()
    answer = fooling_answer(code, goal)
    asked = client.post("/work/attempts", data={"token": token, **answer})
    assert asked.status_code == 200
    assert "You fooled the model" in asked.text
    assert "<b>and</b>" not in asked.text
    (row,) = db.session.execute(db.text("SELECT public_id FROM attempt")).all()
    for of in ("", "goal"):
        explained = client.post(f"/work/attempts/{row[0]}/explanation", data={"token": token, "of": of})
        assert explained.status_code == 200
    texts = BeautifulSoup(explained.text, "lxml").find_all("p", class_="attribution")
    assert len(texts) == 2 * len(spec.model_fields)
    assert len({target for _, target in model.explained}) == 2
    assert client.post("/work/submit", data={"token": token, "why": ""}).status_code == 200
    market.submit(assignment_id)
    jobs_pass(db.session(), market.mturk, settings, clock)

    (validation,) = [one for one in market.hits() if "/validate/" in one["Question"]]
    assert spec.item_name in validation["Title"]
    assert spec.content_note in hit["Title"]
    assert spec.content_note in validation["Title"]
    for name in ("reader-1", "reader-2"):
        reader = market.person(name, grants={qualification: MINIMUM})
        page, token, assignment_id = accepted(service, market, reader, validation["HITId"])
        if spec.content_warning:
            assert "<blockquote" not in page
            page = client.post("/validate/reveal", data={"token": token, "statement": row[0]}).text
        assert spec.validation_question in page
        quoted = [quote.get_text() for quote in BeautifulSoup(page, "lxml").find_all("blockquote")]
        assert quoted == [
            *readers_context(code),
            answer[spec.text_inputs[0].name],
            *(["stone"] if code == "qa" else []),
        ]
        said = {"hate_type": "animosity", "hate_target": "other"} if code == "hate" else {}
        voted = client.post("/validate/votes", data={"token": token, "statement": row[0], "label": goal, **said})
        assert voted.status_code == 200, voted.text
        assert client.post("/validate/submit", data={"token": token}).status_code == 200
        market.submit(assignment_id)
    jobs_pass(db.session(), market.mturk, settings, clock)
    settled = settle(db.session(), market.mturk, clock)

    assert [one.result.value for one in settled.settled] == ["paid"]
    (exported,) = export_round(db.session(), code, 1)
    assert exported["verdict"] == "valid_and_model_wrong"
    assert exported["context"] == CONTEXTS[code]
    assert exported["goal_attribution"]["words"]
    if code == "qa":
        assert exported["answer"] == {
            "question": answer["question"],
            "answer": "stone",
            "answer_start": str(PASSAGE.index("stone")),
        }
        said = exported["model"]["answer"]
        assert PASSAGE[said["start"] : said["end"]] == said["text"] == "oak"
        assert (exported["answer_f1"], exported["model"]["confidence"]) == (0.0, 0.62)
    if code == "hate":
        expected = {"hate_type": "animosity", "hate_target": "other"} if goal == "hateful" else None
        assert [vote["details"] for vote in exported["votes"]] == [expected, expected]
    assert json.dumps(exported)


def readers_context(code: str) -> list[str]:
    """Of the context a reader sees what the model sees."""
    return [PASSAGE] if code in ("nli", "qa") else []


def test_goals_rotate_over_what_writers_can_be_asked_for(service: Flask, market: Market, clock: FixedClock) -> None:
    settings = service.extensions["dynahit"].settings
    found = {
        code: plan_launch(
            db.session(), market.mturk, settings, clock, replace(terms(code), hits=6), [CONTEXTS[code]]
        ).goals
        for code in ("nli", "qa", "hate")
    }

    assert found == {
        "nli": {"entailment": 2, "neutral": 2, "contradiction": 2},
        "qa": {"right": 6},
        "hate": {"not_hateful": 3, "hateful": 3},
    }


def test_a_task_without_contexts_works_as_well(
    service: Flask, market: Market, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = service.extensions["dynahit"].settings
    bare = replace(task("hate"), code="bare", context_fields=())
    monkeypatch.setitem(tasks._registry, "bare", bare)
    launch_batch(db.session(), market.mturk, settings, clock, replace(terms("bare"), hits=2), [{}])

    hit = market.hits()[0]
    page, token, _ = accepted(service, market, market.person("writer"), hit["HITId"])
    asked = service.test_client().post("/work/attempts", data={"token": token, "message": "They are not_hateful."})

    assert "What you start from" not in page
    assert asked.status_code == 200
    assert "says" in asked.text


def accepted(service: Flask, market: Market, worker_id: str, hit_id: str) -> tuple[str, str, str]:
    """Accept a HIT and open its page; return the page, its token and the assignment id."""
    view = market.engine.accept(worker_id, hit_id)
    path = view.frame_url.split("?")[0].removeprefix("http://localhost:8001")
    query = {"assignmentId": view.assignment_id, "hitId": hit_id, "workerId": worker_id}
    client = service.test_client()
    page = gone_on(client, client.get(path, query_string=query))
    assert page.status_code == 200, page.text
    return page.text, token_in(page), view.assignment_id
