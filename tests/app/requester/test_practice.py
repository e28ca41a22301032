"""The reviewer's page: what waits is read, graded in words, and told once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app.models import AuditEntry, StaffUser
from hits.models import Example
from hits.states import AssignmentState, PracticeState
from qualification.limits_models import PracticeGrade
from qualification.models import LevelChange
from tests.app.conftest import csrf_in, open_page, sign_in
from tests.app.four_tasks import ANSWERS, creation_hit, fooling_example
from tests.factories import make_assignment, make_attempt, make_batch, make_example, make_hit, make_worker

Rows = Callable[[type[Any]], list[Any]]

#: What they call is tested on both databases.
pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)


@pytest.fixture
def requester(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff()
    sign_in(client)
    return client


@pytest.fixture
def waiting(session_factory: sessionmaker[Session]) -> str:
    """The name of a practice example that waits, with markup in it, of the writer "AWRITER1"."""
    with session_factory() as session:
        writer = make_worker(session, mturk_worker_id="AWRITER1")
        hit = make_hit(session, batch=make_batch(session, practice=1))
        assignment = make_assignment(
            session, hit=hit, worker=writer, state=AssignmentState.SUBMITTED, why="<i>Cold</i> is bad"
        )
        attempt = make_attempt(session, assignment=assignment, answer={"statement": "<b>Cold</b> soup."})
        make_example(session, attempt=attempt, practice_state=PracticeState.WAITING)
        session.commit()
        return attempt.public_id


def grade(client: FlaskClient, public_id: str, *, form: str = "/rounds", **fields: str) -> TestResponse:
    token = csrf_in(client.get(form))
    return client.post(f"/rounds/practice/{public_id}", data={"csrf_token": token, **fields})


def test_without_practice_the_page_says_how_it_comes(requester: FlaskClient) -> None:
    page = requester.get("/rounds/practice")

    assert "Nobody waits for you" in page.text
    assert "practice example" not in requester.get("/rounds").text


def test_what_waits_is_shown_with_all_that_a_reviewer_needs_and_no_id(requester: FlaskClient, waiting: str) -> None:
    page = requester.get("/rounds/practice")

    for shown in (
        "&lt;b&gt;Cold&lt;/b&gt; soup.",
        "&lt;i&gt;Cold&lt;/i&gt; is bad",
        "A train was late",
        "negative",
        "so it was fooled",
        "none yet",
        "w-",
    ):
        assert shown in page.text
    assert "AWRITER1" not in page.text
    assert "1 practice example waits for a reviewer" in requester.get("/rounds").text


@pytest.mark.parametrize(
    ("decision", "state", "levels"), [("pass", PracticeState.PASSED, 1), ("fail", PracticeState.FAILED, 0)]
)
def test_a_grade_is_kept_with_its_words_and_shown_to_the_writer(
    requester: FlaskClient,
    waiting: str,
    rows: Rows,
    hit: Any,
    decision: str,
    state: PracticeState,
    levels: int,
) -> None:
    answer = grade(requester, waiting, decision=decision, words="Shorter,\r\nplease <b>.")

    assert answer.status_code == 302
    [example], [found], [entry] = rows(Example), rows(PracticeGrade), rows(AuditEntry)
    assert example.practice_state is state
    assert (found.passed, found.words, found.graded_by) == (decision == "pass", "Shorter,\nplease <b>.", "robin")
    assert (entry.action, entry.staff_name) == (f"practice.{decision}", "robin")
    assert len(rows(LevelChange)) == levels
    for _ in range(2):
        page = open_page(requester, hit)
        assert "A reviewer has read what you wrote before" in page.text
        assert "Shorter,<br>please &lt;b&gt;." in page.text
    assert "A reviewer" not in open_page(requester, hit, worker="ANOTHER1", assignment="ASSIGNMENTTWO").text


def test_a_grade_without_words_or_decision_is_refused_and_keeps_what_was_typed(
    requester: FlaskClient, waiting: str, rows: Rows
) -> None:
    silent = grade(requester, waiting, decision="pass", words=" ")
    undecided = grade(requester, waiting, decision="perhaps", words="Well done")

    assert (silent.status_code, undecided.status_code) == (422, 422)
    error = BeautifulSoup(silent.text, "lxml").find(class_="field-error")
    assert "Say in words" in error.get_text()
    assert "Choose whether it passes" in undecided.text
    assert "Well done" in undecided.text
    assert rows(PracticeGrade) == []


def test_a_second_click_changes_nothing(requester: FlaskClient, waiting: str, rows: Rows) -> None:
    grade(requester, waiting, decision="fail", words="Not clear.")

    again = grade(requester, waiting, decision="pass", words="It is clear.")

    assert again.status_code == 409
    assert "graded it already" in again.text
    assert [one.passed for one in rows(PracticeGrade)] == [False]
    assert rows(LevelChange) == []


def test_forged_grades_are_refused(
    client: FlaskClient, staff: Callable[..., StaffUser], waiting: str, rows: Rows
) -> None:
    """By nobody, by finance, without the form's own token, and of an example that there is not."""
    fields = {"decision": "pass", "words": "Fine."}
    assert grade(client, waiting, form="/staff/sign-in", **fields).status_code == 302
    staff("finn", ("finance",))
    sign_in(client, "finn")
    assert grade(client, waiting, form="/finance", **fields).status_code == 403
    client.post("/staff/sign-out", data={"csrf_token": csrf_in(client.get("/finance"))})
    staff("robin")
    sign_in(client, "robin")
    assert client.post(f"/rounds/practice/{waiting}", data=fields).status_code == 400
    assert grade(client, "nothing", **fields).status_code == 404

    assert rows(PracticeGrade) == []


def test_disturbing_examples_are_covered_until_they_are_asked_for(
    requester: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        fooling_example(session, creation_hit(session, "hate")).practice_state = PracticeState.WAITING
        session.commit()

    page = BeautifulSoup(requester.get("/rounds/practice").text, "lxml")

    covered = page.find("details", class_="reveal")
    assert ANSWERS["hate"]["message"] in covered.get_text()
    assert "open" not in covered.attrs
