"""What the people of an arm meet on the writer's pages, and what nobody can change from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from hits.arms import Arm, set_arms
from hits.models import ArmAssignment, Assignment, Attempt, Hit, Round
from hits.predictions import ModelUnavailable
from hits.states import AssignmentState, AttemptState
from inference.errors import NothingToRead
from tests.app.conftest import RuleEngine, ask, open_page, token_in
from tests.factories import NOON, make_batch, make_hit

pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

Rows = Callable[[type[Any]], list[Any]]
CONTROL = Arm("control", 1, model_in_loop=False)
PLAIN = Arm("plain", 1, explanations=False)


def give_arms(session_factory: sessionmaker[Session], *arms: Arm) -> None:
    with session_factory() as session:
        set_arms(session, session.query(Round).one(), arms, seed=1, by="ada", now=NOON)
        session.commit()


def told(answer: TestResponse) -> str:
    """What the page says besides the instructions, which speak of fooling in general."""
    found = BeautifulSoup(answer.text, "lxml")
    for part in found.select("details.instructions"):
        part.decompose()
    return found.get_text(" ", strip=True).lower()


def submit(client: FlaskClient, token: str) -> Any:
    return client.post("/work/submit", data={"token": token, "why": "It is a complaint."})


def test_without_a_model_one_text_is_handed_in_and_nothing_tells_what_the_model_said(
    client: FlaskClient, hit: Hit, rows: Rows, engine: RuleEngine, session_factory: sessionmaker[Session]
) -> None:
    give_arms(session_factory, CONTROL)
    page = open_page(client, hit)
    token = token_in(page)
    answers = {}
    for script in (True, False):
        answers[script] = ask(client, token, "The good old queue again.", script=script)
    second = ask(client, token, "Another one.")
    done = submit(client, token)

    assert "don't see the model" in page.text
    assert "Finish this statement" in page.text
    assert "Ask the model" not in BeautifulSoup(page.text, "lxml").find(id="ask").text  # type: ignore[union-attr]
    for answer in answers.values():
        assert answer.status_code == 200
        assert "Your statement is stored" in answer.text
        assert "fooled" not in told(answer)
        assert "83%" not in answer.text
        assert "positive" not in told(answer)
    assert second.status_code == 409
    assert "asks for one text, and yours is stored" in second.text
    assert "fooled" not in told(second)
    assert 'action="http://127.0.0.1:8000/mturk/externalSubmit"' in done.text
    assert engine.asked == ["The good old queue again."]
    assert [(one.fooled, one.predicted_label) for one in rows(Attempt)] == [(True, "positive")]
    assert [one.state for one in rows(Assignment)] == [AssignmentState.SAVED]


def test_the_answer_page_without_a_model_is_the_same_whether_it_was_fooled_or_not(
    client: FlaskClient, hit: Hit, session_factory: sessionmaker[Session]
) -> None:
    give_arms(session_factory, CONTROL)
    said = []
    for number, text in enumerate(("The good old queue again.", "I am sad.")):
        token = token_in(open_page(client, hit, assignment=f"ASSIGNMENT{number}", worker=f"AWRITER{number}"))
        found = BeautifulSoup(ask(client, token, text, script=True).text, "lxml")
        for field in found.find_all("input", {"name": "token"}):
            field["value"] = ""
        said.append(str(found).replace(text, "TEXT"))

    assert said[0] == said[1]


@pytest.mark.parametrize("error", [ModelUnavailable("broken"), NothingToRead(), RuntimeError("broken")])
def test_a_model_that_fails_is_nothing_to_somebody_who_writes_without_it(
    client: FlaskClient,
    hit: Hit,
    rows: Rows,
    engine: RuleEngine,
    session_factory: sessionmaker[Session],
    error: Exception,
) -> None:
    give_arms(session_factory, CONTROL)
    engine.error = error
    token = token_in(open_page(client, hit))
    answer = ask(client, token, "The good old queue again.", script=True)
    done = submit(client, token)

    assert answer.status_code == 200
    assert "Your statement is stored" in answer.text
    assert "model gave no answer" not in answer.text
    assert "externalSubmit" in done.text
    assert [one.state for one in rows(Attempt)] == [AttemptState.UNANSWERED]
    assert [one.state for one in rows(Assignment)] == [AssignmentState.SAVED]


def test_without_explanations_there_is_no_button_and_the_route_refuses(
    client: FlaskClient, hit: Hit, rows: Rows, engine: RuleEngine, session_factory: sessionmaker[Session]
) -> None:
    give_arms(session_factory, PLAIN)
    token = token_in(open_page(client, hit))
    answer = ask(client, token, "The good old queue again.")
    public_id = rows(Attempt)[0].public_id
    forced = client.post(f"/work/attempts/{public_id}/explanation", data={"token": token})

    assert "You fooled the model" in answer.text
    assert "words mattered" not in answer.text
    assert forced.status_code == 409
    assert "no explanations are shown" in forced.text
    assert engine.explained == []
    assert rows(Attempt)[0].attribution is None


def test_nothing_that_a_browser_sends_decides_about_the_arm(
    client: FlaskClient, hit: Hit, rows: Rows, engine: RuleEngine, session_factory: sessionmaker[Session]
) -> None:
    give_arms(session_factory, CONTROL)
    forged = {"arm": "explained", "model_in_loop": "1", "explanations": "1", "plan_id": "1", "place": "7"}
    page = open_page(client, hit, **forged)
    token = token_in(page)
    fields = {"token": token, "statement": "The good old queue again.", **forged}
    answer = client.post("/work/attempts", data=fields)
    explained = client.post(f"/work/attempts/{rows(Attempt)[0].public_id}/explanation", data={"token": token, **forged})

    assert [(row.arm, row.place) for row in rows(ArmAssignment)] == [("control", 0)]
    assert "Your statement is stored" in answer.text
    assert "fooled" not in told(answer)
    assert explained.status_code == 409
    assert engine.explained == []


def test_a_person_stays_in_one_arm_over_hits_and_devices(
    client: FlaskClient, hit: Hit, rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    give_arms(session_factory, CONTROL, Arm("explained", 1))
    with session_factory() as session:
        other = make_hit(session, batch=make_batch(session, round=session.query(Round).one()))
        session.commit()
        session.expunge_all()
    open_page(client, hit)
    open_page(client.application.test_client(), other, assignment="ASSIGNMENTTWO")
    open_page(client, hit, assignment="ASSIGNMENTTHREE", worker="AWRITER2")

    drawn = rows(ArmAssignment)
    assert len({one.worker_id for one in drawn}) == len(drawn) == 2
    assert {one.arm for one in drawn} == {"control", "explained"}


def test_a_preview_tells_what_may_be_drawn_and_that_the_pay_is_the_same(
    client: FlaskClient, hit: Hit, rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    give_arms(session_factory, CONTROL, Arm("explained", 1), PLAIN)
    query = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": hit.mturk_hit_id or ""}
    preview = client.get(f"/work/{hit.reference}", query_string=query)
    groups = BeautifulSoup(preview.text, "lxml").find("section", attrs={"aria-labelledby": "groups"})

    assert groups is not None
    said = " ".join(groups.get_text(" ", strip=True).split())
    assert "drawn by lot" in said
    assert "The pay is the same in each group" in said
    assert "You ask a model up to 5 times" in said
    assert "You write one statement and don't see the model" in said
    assert len(groups.find_all("li")) == 3
    assert rows(ArmAssignment) == []
