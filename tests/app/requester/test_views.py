"""The requester's pages: rounds, figures, flags."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app.models import AuditEntry, StaffUser
from hits.clock import FixedClock
from hits.models import Assignment, Example
from hits.states import AssignmentState, AttemptState, Moderation, Verdict
from tests.app.conftest import csrf_in, sign_in
from tests.factories import make_assignment, make_attempt, make_example, make_round, make_vote

Rows = Callable[[type[Any]], list[Any]]


@pytest.fixture
def flagged(session_factory: sessionmaker[Session]) -> str:
    """The public id of a flagged statement with markup in it, in round 1 of sentiment."""
    with session_factory() as session:
        assignment = make_assignment(session, state=AssignmentState.APPROVED)
        attempt = make_attempt(session, assignment=assignment, answer={"statement": "<b>Cold</b> soup."})
        example = make_example(session, attempt=attempt, verdict=Verdict.FLAGGED)
        make_vote(session, example=example, label=None, flag_reason="<i>Insults</i> me")
        make_assignment(
            session, hit=attempt.hit, state=AssignmentState.SUBMITTED, review_reason="Never done on our page."
        )
        session.commit()
        return attempt.public_id


@pytest.fixture
def requester(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff()
    sign_in(client)
    return client


def decide(client: FlaskClient, public_id: str, **fields: str) -> TestResponse:
    token = csrf_in(client.get("/rounds"))
    return client.post(f"/rounds/flags/{public_id}", data={"csrf_token": token, **fields})


def test_without_rounds_the_page_says_how_to_begin(requester: FlaskClient) -> None:
    page = requester.get("/rounds")

    assert "No rounds yet" in page.text
    assert "dynahit hits launch" in page.text


def test_a_round_of_an_absurd_number_is_not_there(requester: FlaskClient) -> None:
    assert requester.get(f"/rounds/sentiment/{10**24}").status_code == 404


def test_rounds_are_listed_with_their_figures(requester: FlaskClient, flagged: str) -> None:
    table = BeautifulSoup(requester.get("/rounds").text, "lxml").tbody

    assert [cell.get_text(strip=True) for cell in table.find_all(["th", "td"])] == [
        "Sentiment, round 1", "Collecting", "15 Nov 2026", "1", "1", "0", "0.0%", "$0.00",
    ]  # fmt: skip


def test_the_round_shows_five_figures_the_denominator_and_what_needs_a_hand(
    requester: FlaskClient, flagged: str
) -> None:
    page = requester.get("/rounds/sentiment/1")

    figures = BeautifulSoup(page.text, "lxml").find("dl", class_="figures")
    assert [dd.get_text(strip=True) for dd in figures.find_all("dd")] == ["1", "1", "0", "0.0%", "none yet"]
    assert "verified divided by collected: 0 of 1" in page.text
    assert "&lt;b&gt;Cold&lt;/b&gt; soup." in page.text
    assert "&lt;i&gt;Insults&lt;/i&gt; me" in page.text
    assert "Never done on our page." in page.text
    state = BeautifulSoup(page.text, "lxml").find("section", attrs={"aria-labelledby": "round-state"})
    assert "dynahit round close sentiment 1" in state.text


def test_a_round_shows_pseudonyms_only(
    requester: FlaskClient, flagged: str, session_factory: sessionmaker[Session]
) -> None:
    page = requester.get("/rounds/sentiment/1").text

    with session_factory() as session:
        writer = session.query(Example).one().writer
    assert writer.pseudonym in page
    assert writer.mturk_worker_id not in page


@pytest.mark.parametrize(
    ("decision", "moderation", "verdict"),
    [("uphold", Moderation.UPHELD, Verdict.INVALID), ("dismiss", Moderation.DISMISSED, Verdict.PENDING)],
)
def test_a_flag_is_decided_with_a_reason_and_noted(
    requester: FlaskClient, flagged: str, rows: Rows, decision: str, moderation: Moderation, verdict: Verdict
) -> None:
    response = decide(requester, flagged, decision=decision, reason="I have read it.")

    example = rows(Example)[0]
    assert response.location == "/rounds/sentiment/1"
    assert (example.moderation, example.verdict, example.moderation_reason) == (moderation, verdict, "I have read it.")
    entry = rows(AuditEntry)[0]
    assert (entry.staff_name, entry.action, entry.subject) == ("robin", f"flag.{decision}", f"example {flagged}")
    assert entry.detail == {"reason": "I have read it.", "verdict": verdict.value}
    assert "I have read it." in requester.get("/rounds/sentiment/1").text


def test_a_round_shows_its_own_decisions_about_flags(
    requester: FlaskClient, flagged: str, session_factory: sessionmaker[Session]
) -> None:
    decide(requester, flagged, decision="uphold", reason="I have read it.")
    with session_factory() as session:
        make_round(session, task_code="sentiment", number=2)
        session.commit()

    assert "I have read it." not in requester.get("/rounds/sentiment/2").text


def test_a_flag_is_decided_once(requester: FlaskClient, flagged: str, rows: Rows) -> None:
    decide(requester, flagged, decision="uphold", reason="Yes.")

    response = decide(requester, flagged, decision="dismiss", reason="No.")

    assert response.status_code == 409
    assert rows(Example)[0].moderation is Moderation.UPHELD
    assert len(rows(AuditEntry)) == 1


@pytest.mark.parametrize(
    "fields", [{"decision": "uphold", "reason": " "}, {"decision": "burn", "reason": "x"}, {"reason": "x"}]
)
def test_a_decision_without_its_parts_changes_nothing(
    requester: FlaskClient, flagged: str, rows: Rows, fields: dict[str, str]
) -> None:
    response = decide(requester, flagged, **fields)

    assert response.status_code == 422
    assert "field-error" in response.text
    assert rows(Example)[0].moderation is None
    assert rows(AuditEntry) == []


def test_a_forged_decision_is_refused(requester: FlaskClient, flagged: str, rows: Rows) -> None:
    response = requester.post(f"/rounds/flags/{flagged}", data={"decision": "uphold", "reason": "x"})

    assert response.status_code == 400
    assert rows(Example)[0].moderation is None


def test_a_stranger_decides_nothing(client: FlaskClient, flagged: str, rows: Rows) -> None:
    response = decide_without_session(client, flagged)

    assert response.status_code in (302, 400)
    assert rows(Example)[0].moderation is None


def decide_without_session(client: FlaskClient, public_id: str) -> TestResponse:
    token = csrf_in(client.get("/staff/sign-in"))
    return client.post(f"/rounds/flags/{public_id}", data={"csrf_token": token, "decision": "uphold", "reason": "x"})


@pytest.mark.parametrize("path", ["/rounds/sentiment/2", "/rounds/nothing/1"])
def test_an_unknown_round_is_told(requester: FlaskClient, path: str) -> None:
    assert requester.get(path).status_code == 404


def test_a_round_without_work_has_empty_states(requester: FlaskClient, session_factory: sessionmaker[Session]) -> None:
    with session_factory() as session:
        make_round(session)
        session.commit()

    page = requester.get("/rounds/sentiment/1")

    assert "Nothing waits for you" in page.text
    assert "Nothing collected yet" in page.text


def accept(client: FlaskClient, assignment_id: str) -> TestResponse:
    token = csrf_in(client.get("/rounds"))
    return client.post(f"/rounds/assignments/{assignment_id}/accept", data={"csrf_token": token})


def test_an_assignment_that_was_looked_at_is_left_to_the_jobs_and_noted(
    requester: FlaskClient, flagged: str, rows: Rows
) -> None:
    doubtful = next(one for one in rows(Assignment) if one.review_reason)

    first = accept(requester, doubtful.mturk_assignment_id)
    second = accept(requester, doubtful.mturk_assignment_id)

    assert first.location == "/rounds/sentiment/1"
    assert second.status_code == 409
    assert [one.review_reason for one in rows(Assignment)] == [None] * len(rows(Assignment))
    entries = [(one.action, one.subject, one.detail) for one in rows(AuditEntry)]
    assert entries == [
        (
            "assignment.accept",
            doubtful.mturk_assignment_id,
            {"reason": "Never done on our page."},
        )
    ]


def test_an_assignment_that_is_not_there_is_told(requester: FlaskClient) -> None:
    assert accept(requester, "NOTHING").status_code == 404


def test_a_model_that_leaves_questions_unanswered_is_said_at_the_top(
    requester: FlaskClient, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    with session_factory() as session:
        make_attempt(
            session,
            state=AttemptState.UNANSWERED,
            failure="EngineUnreachable: <gone>",
            asked_at=clock.now() - timedelta(minutes=5),
        )
        session.commit()

    notice = BeautifulSoup(requester.get("/rounds/sentiment/1").text, "html.parser").select_one(".notice-error")

    assert notice is not None
    assert "1 of 1 questions" in notice.text
    assert "EngineUnreachable: <gone>" in notice.text
