"""The pages of a round's readers, and of single statements that the requester decides about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app.models import AuditEntry, StaffUser
from hits import validations
from hits.clock import FixedClock
from hits.models import Example, Worker
from hits.states import AssignmentState, Moderation, Verdict
from tests.app.conftest import csrf_in, sign_in
from tests.app.four_tasks import creation_hit, fooling_example
from tests.factories import make_assignment, make_attempt, make_example, make_round, make_vote

Rows = Callable[[type[Any]], list[Any]]
PAGE = "/rounds/sentiment/1/readers"


@pytest.fixture
def judged(session_factory: sessionmaker[Session], clock: FixedClock) -> str:
    """The public id of a statement in round 1 of sentiment that two readers take for positive."""
    with session_factory() as session:
        assignment = make_assignment(session, state=AssignmentState.APPROVED)
        attempt = make_attempt(session, assignment=assignment, answer={"statement": "<b>Lovely</b>, cold soup."})
        example = make_example(session, attempt=attempt)
        for _ in range(2):
            make_vote(session, example=example, label="positive", seconds=7.0)
        validations.decide(session, example, clock.now())
        make_example(session)
        session.commit()
        return attempt.public_id


@pytest.fixture
def requester(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff()
    sign_in(client)
    return client


def decide(client: FlaskClient, public_id: str, **fields: str) -> TestResponse:
    token = csrf_in(client.get("/rounds"))
    return client.post(f"/rounds/statements/{public_id}", data={"csrf_token": token, **fields})


def test_the_readers_page_shows_figures_denominators_and_pseudonyms_only(
    requester: FlaskClient, judged: str, rows: Rows
) -> None:
    page = requester.get(PAGE)
    text = BeautifulSoup(page.text, "lxml").get_text(" ", strip=True)

    assert "0 valid_and_model_wrong / (2 collected - 0 retracted)" in text
    assert "0.0% 0 of 2" in text
    assert "Waits for readers" in text
    assert "7.0" in text
    for image in BeautifulSoup(page.text, "lxml").find_all("img"):
        assert image["alt"].strip()
    voters = [worker for worker in rows(Worker) if worker.pseudonym in page.text]
    assert len(voters) == 2
    for worker in rows(Worker):
        assert worker.mturk_worker_id not in page.text


def test_an_empty_round_says_what_will_appear(requester: FlaskClient, session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        make_round(session)
        session.commit()

    assert "No vote was counted yet" in requester.get(PAGE).text
    assert "There are none" in requester.get("/rounds/sentiment/1/statements").text
    assert requester.get("/rounds/sentiment/2/readers").status_code == 404
    assert requester.get("/rounds/sentiment/2/statements").status_code == 404
    assert requester.get("/rounds/statements/nothing").status_code == 404


@pytest.mark.parametrize("name", ["error-rates", "gold-and-agreement", "seconds-per-item"])
def test_plots_are_pictures_that_the_content_policy_allows(requester: FlaskClient, judged: str, name: str) -> None:
    response = requester.get(f"{PAGE}/{name}.svg")

    assert response.content_type == "image/svg+xml; charset=utf-8"
    assert "<svg" in response.text
    assert "style=" not in response.text
    assert "<style" not in response.text
    assert requester.get(f"{PAGE}/other.svg").status_code == 404


def test_statements_are_listed_by_verdict(requester: FlaskClient, judged: str) -> None:
    everything = requester.get("/rounds/sentiment/1/statements")
    assert "&lt;b&gt;Lovely&lt;/b&gt;, cold soup." in everything.text
    assert "2 in all" in everything.text

    chosen = requester.get("/rounds/sentiment/1/statements?verdict=valid_and_model_right&page=99")
    assert "1 in all" in chosen.text
    assert "There are none" in requester.get("/rounds/sentiment/1/statements?verdict=invalid").text
    assert "2 in all" in requester.get("/rounds/sentiment/1/statements?verdict=nonsense&page=-1").text


def test_the_requester_overrides_and_lets_the_votes_count_again(
    requester: FlaskClient, judged: str, rows: Rows
) -> None:
    page = decide(requester, judged, decision="override", label="negative", reason="It is irony.")
    assert page.status_code == 302
    shown = requester.get(f"/rounds/statements/{judged}")
    assert "stands above the readers" in shown.text
    assert "It is irony." in shown.text
    first = rows(Example)[0]
    assert (first.verdict, first.final_label) == (Verdict.VALID_AND_MODEL_WRONG, "negative")

    assert decide(requester, judged, decision="override", label="-", reason="No English.").status_code == 302
    assert rows(Example)[0].verdict is Verdict.INVALID
    assert decide(requester, judged, decision="lift").status_code == 302
    assert rows(Example)[0].verdict is Verdict.VALID_AND_MODEL_RIGHT
    assert decide(requester, judged, decision="lift").status_code == 409
    actions = [(entry.action, entry.staff_name) for entry in rows(AuditEntry)]
    assert [action for action, _ in actions] == ["example.override", "example.override", "example.override_lifted"]
    assert {name for _, name in actions} != {""}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"decision": "override", "reason": "x"}, "Choose the label that holds"),
        ({"decision": "override", "label": "negative", "reason": " "}, "is empty"),
        ({"decision": "retract", "reason": "x"}, "Tick that you are sure"),
        ({"decision": "retract", "reason": "", "sure": "1"}, "is empty"),
        ({}, "Choose what to do"),
    ],
)
def test_what_is_no_decision_is_told_at_its_field(
    requester: FlaskClient, judged: str, rows: Rows, fields: dict[str, str], words: str
) -> None:
    response = decide(requester, judged, **fields)

    assert response.status_code == 422
    assert words in response.text
    assert rows(AuditEntry) == []
    assert rows(Example)[0].overridden_at is None
    assert rows(Example)[0].retracted_at is None


def test_a_label_that_there_is_not_is_refused(requester: FlaskClient, judged: str, rows: Rows) -> None:
    response = decide(requester, judged, decision="override", label="angry", reason="x")

    assert response.status_code == 422
    assert "angry" in response.text
    assert rows(Example)[0].overridden_at is None


def test_a_statement_is_retracted_once_and_then_only_shown(requester: FlaskClient, judged: str, rows: Rows) -> None:
    for _ in range(2):
        assert decide(requester, judged, decision="retract", reason="Asked for.", sure="1").status_code == 302

    page = requester.get(f"/rounds/statements/{judged}")
    assert "Retracted" in page.text
    assert "Let this stand" not in page.text
    assert [entry.action for entry in rows(AuditEntry)] == ["example.retract"]
    assert "without the 1 retracted: 0 of 1" in requester.get("/rounds/sentiment/1").text
    assert decide(requester, judged, decision="override", label="negative", reason="x").status_code == 409


def test_a_flag_is_decided_first(
    requester: FlaskClient, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    with session_factory() as session:
        example = make_example(session)
        make_vote(session, example=example, label=None, flag_reason="insult")
        validations.decide(session, example, clock.now())
        name = example.attempt.public_id
        session.commit()
    assert "A flag waits for you" in requester.get(f"/rounds/statements/{name}").text

    with session_factory() as session:
        found = session.get_one(Example, 1)
        validations.moderate(session, found, upheld=True, reason="so it is", now=clock.now())
        assert found.moderation is Moderation.UPHELD
        session.commit()
    assert "You upheld a flag" in requester.get(f"/rounds/statements/{name}").text


def test_a_corrected_answer_is_shown_and_hateful_texts_are_covered(
    requester: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        corrected = fooling_example(session, creation_hit(session, "qa"))
        make_vote(session, example=corrected, label="wrong", correction={"answer": "oak", "answer_start": "1"})
        hateful = fooling_example(session, creation_hit(session, "hate"))
        names = corrected.attempt.public_id, hateful.attempt.public_id
        session.commit()

    page = requester.get(f"/rounds/statements/{names[0]}").text
    assert '<td dir="auto">oak</td>' in page
    assert "<details" in requester.get(f"/rounds/statements/{names[1]}").text
    assert "Quillby" not in requester.get("/rounds/hate/1/statements").text


@pytest.mark.parametrize("address", [PAGE, f"{PAGE}/error-rates.svg", "/rounds/sentiment/1/statements"])
def test_finance_and_strangers_see_none_of_it(
    client: FlaskClient, staff: Callable[..., StaffUser], judged: str, address: str
) -> None:
    assert client.get(address).status_code in (302, 303)
    staff(name="fin", roles=["finance"])
    sign_in(client, "fin")
    assert client.get(address).status_code == 403


def test_a_decision_without_the_forms_token_is_refused(requester: FlaskClient, judged: str, rows: Rows) -> None:
    response = requester.post(f"/rounds/statements/{judged}", data={"decision": "retract", "reason": "x", "sure": "1"})

    assert response.status_code == 400
    assert rows(Example)[0].retracted_at is None
