"""The quiz HIT as people meet it, that the key never reaches a browser, and what a forger can't do."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Assignment, Exposure, Hit, Worker
from hits.states import AssignmentState
from qualification import grants, quizzes
from qualification.models import QualificationGrant, QuizResult, QuizVersion
from qualification.quizzes import NEEDED, Quiz, as_json, from_json, quiz_for
from tests.app.conftest import ASSIGNMENT, SITE, frame_query, gone_on, open_page, token_in
from tests.qualification.quiz_hits import ON_SQLITE, answers, quiz_hit

pytestmark = ON_SQLITE

Rows = Callable[[type[Any]], list[Any]]


@pytest.fixture
def hits(session_factory: sessionmaker[Session]) -> list[Hit]:
    """Two quiz HITs of the sentiment task's writers, one for each try."""
    return made(session_factory, "sentiment", "writer")


def made(sessions: sessionmaker[Session], task_code: str, audience: str) -> list[Hit]:
    with sessions() as session:
        found = [quiz_hit(session, task_code, audience) for _ in range(2)]
        session.commit()
        session.expunge_all()
        return found


def open_quiz(client: FlaskClient, hit: Hit, **other: str) -> TestResponse:
    return gone_on(client, client.get(f"/quiz/{hit.reference}", query_string=frame_query(hit, **other)))


def soup(response: TestResponse) -> BeautifulSoup:
    return BeautifulSoup(response.text, "lxml")


def result(sessions: sessionmaker[Session], number: int = 1) -> tuple[QuizResult, dict[str, str]]:
    """A stored try and answers to it that are all right."""
    with sessions() as session:
        row = session.query(QuizResult).filter_by(number=number).one()
        return row, answers(row, 7)


def fields(given: Mapping[str, str]) -> dict[str, str]:
    return {f"answer-{item_id}": answer for item_id, answer in given.items()}


def send(client: FlaskClient, token: str, given: Mapping[str, str], **other: str) -> TestResponse:
    return client.post("/quiz/answers", data={"token": token, **fields(given), **other})


def test_a_preview_shows_terms_rules_and_examples_and_asks_nothing(
    client: FlaskClient, hits: list[Hit], rows: Rows
) -> None:
    page = client.get(f"/quiz/{hits[0].reference}", query_string={"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"})

    assert page.status_code == 200
    text = soup(page).get_text(" ", strip=True)
    assert "This page is a preview" in text
    assert "You are paid whether you pass or not" in text
    assert "Rules and examples" in text
    quiz = quiz_for("sentiment", "writer")
    assert not any(part.text in page.text for item in quiz.items for part in item.parts[1:])
    assert rows(QuizResult) == rows(Worker) == []


def test_who_answers_sees_the_score_each_right_answer_and_why_and_hands_in(
    client: FlaskClient, hits: list[Hit], rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    page = open_quiz(client, hits[0])
    row, right = result(session_factory)
    quiz = from_json(as_json(quiz_for("sentiment", "writer")))

    assert len(soup(page).select(".quiz-item")) == 7
    assert len(soup(page).select("input[type=radio]")) == 21
    given = {**right, row.items[2]: next(code for code in quiz.choice_codes if code != right[row.items[2]])}
    done = send(client, token_in(page), given)

    text = soup(done).get_text(" ", strip=True)
    assert done.status_code == 200
    assert "6 of 7 right: passed" in text
    assert all(" ".join(quiz.item(item_id).feedback.split()) in text for item_id in row.items)
    assert text.count("Right is:") == 1
    assert quiz.choice(right[row.items[2]]) in text
    form = soup(done).find("form", id="quiz-hand-in")
    assert form["action"] == f"{SITE}/mturk/externalSubmit"
    assert form.find("input", {"name": "assignmentId"})["value"] == ASSIGNMENT
    [stored] = rows(QuizResult)
    assert (stored.score, stored.passed, stored.counted_at) == (6, True, None)
    [assignment] = rows(Assignment)
    assert assignment.state is AssignmentState.SAVED
    assert rows(QualificationGrant) == []


def test_who_failed_reads_when_and_gets_other_questions_in_the_next_hit(
    client: FlaskClient, hits: list[Hit], clock: FixedClock, session_factory: sessionmaker[Session]
) -> None:
    page = open_quiz(client, hits[0])
    row, _ = result(session_factory)
    first = send(client, token_in(page), answers(row, NEEDED - 1))
    assert "5 of 7 right: not passed" in first.text
    assert "24 hours from now" in first.text

    clock.advance(timedelta(hours=1))
    early = open_quiz(client, hits[1], assignment="ASSIGNMENTTWO")
    assert "You can't take this quiz now" in soup(early).get_text()
    assert "16 Nov 2026, 12:00 UTC" in soup(early).get_text(" ")
    assert "No try was used" in early.text

    clock.advance(timedelta(hours=23))
    page = open_quiz(client, hits[1], assignment="ASSIGNMENTTHREE")
    second, right = result(session_factory, 2)
    assert "Try 2 of 2" in page.text
    assert not set(second.items) & set(row.items)
    assert "7 of 7 right: passed" in send(client, token_in(page), right).text


def test_after_a_reset_the_tries_are_counted_from_one(
    client: FlaskClient, hits: list[Hit], clock: FixedClock, session_factory: sessionmaker[Session]
) -> None:
    for number, hit in enumerate(hits, start=1):
        page = open_quiz(client, hit, assignment=f"ASSIGNMENT{number}")
        row, _ = result(session_factory, number)
        done = send(client, token_in(page), answers(row, 2))
        clock.advance(timedelta(hours=24))
    assert "this was your last try" in done.text
    with session_factory() as session:
        third = quiz_hit(session)
        worker = session.query(Worker).one()
        grants.reset(session, worker.id, "writer:sentiment", clock.now())
        session.commit()

    page = open_quiz(client, third, assignment="ASSIGNMENT3")

    assert "Try 1 of 2" in page.text
    row, _ = result(session_factory, 3)
    assert "You can try again" in send(client, token_in(page), answers(row, 2)).text


@pytest.mark.parametrize(
    ("task_code", "audience"),
    [
        ("qa", "writer"),
        ("hate", "validator"),
        *(
            pytest.param(task_code, audience, marks=pytest.mark.slow)
            for task_code, audience in (
                ("qa", "validator"),
                ("hate", "writer"),
                ("nli", "writer"),
                ("nli", "validator"),
                ("sentiment", "writer"),
                ("sentiment", "validator"),
            )
        ),
    ],
)
def test_nothing_on_the_page_depends_on_the_key(
    client: FlaskClient, session_factory: sessionmaker[Session], task_code: str, audience: str
) -> None:
    """The same page for two keys: whatever a browser gets, it says nothing about what is right."""
    hit, _ = made(session_factory, task_code, audience)
    before = open_quiz(client, hit)
    quiz = quiz_for(task_code, audience)
    row, right = result(session_factory)
    with session_factory() as session:
        session.execute(update(QuizVersion).values(content=as_json(turned(quiz))))
        session.commit()
    after = open_quiz(client, hit)

    assert without_token(before) == without_token(after)
    assert not any(item.feedback in soup(before).get_text() for item in quiz.items)
    assert "feedback" not in before.text
    headers = str(sorted(before.headers))
    assert not any(item_id in headers for item_id in row.items)
    # All the same these questions have a key: with it every answer is right, and with the other one none.
    assert set(right.values()) <= set(quiz.choice_codes)


def turned(quiz: Quiz) -> Quiz:
    codes = quiz.choice_codes
    return dataclasses.replace(
        quiz,
        items=tuple(
            dataclasses.replace(item, right=codes[(codes.index(item.right) + 1) % len(codes)], feedback="Other words.")
            for item in quiz.items
        ),
    )


def without_token(page: TestResponse) -> str:
    return re.sub(r'name="token" value="[^"]*"', "", page.text)


def test_questions_without_an_answer_are_named_and_the_others_are_kept(
    client: FlaskClient, hits: list[Hit], rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    page = open_quiz(client, hits[0])
    row, right = result(session_factory)
    missing = row.items[4]
    given = {item_id: answer for item_id, answer in right.items() if item_id != missing}

    again = send(client, token_in(page), given)

    assert again.status_code == 422
    assert "Question 5 has no answer yet" in soup(again).find(id=f"answer-{missing}-error").get_text()
    checked = {one["name"]: one["value"] for one in soup(again).select("input[checked]")}
    assert checked == fields(given)
    assert rows(QuizResult)[0].answered_at is None


def forgeries(given: dict[str, str], other: str) -> dict[str, dict[str, Any]]:
    first = next(iter(given))
    return {
        "an item that was not drawn": fields({**given, other: "fits"}),
        "an item that there is not": fields({**given, "0" * 12: "fits"}),
        "a choice that there is not": fields({**given, first: "right"}),
        "several answers to one question": {**fields(given), f"answer-{first}": ["fits", "breaks_rule", "other_label"]},
        "a score of its own": {**fields({}), "score": "7", "passed": "1", "answer-score": "7"},
    }


@pytest.mark.parametrize("forgery", list(forgeries({"a": "b"}, "c")))
def test_forged_answers_change_nothing(
    client: FlaskClient,
    hits: list[Hit],
    rows: Rows,
    session_factory: sessionmaker[Session],
    forgery: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    token = token_in(open_quiz(client, hits[0]))
    row, right = result(session_factory)
    other = next(item.id for item in quiz_for("sentiment", "writer").items if item.id not in row.items)

    with caplog.at_level(logging.WARNING):
        answer = client.post("/quiz/answers", data={"token": token, **forgeries(right, other)[forgery]})

    assert answer.status_code == 409
    assert "Nothing was stored" in answer.text
    [stored] = rows(QuizResult)
    assert (stored.answers, stored.answered_at) == (None, None)
    assert rows(Assignment)[0].state is AssignmentState.OPENED
    if "several" not in forgery:
        assert "refused" in caplog.text
    assert "AWRITER1" not in caplog.text


def test_another_workers_token_answers_that_workers_quiz_only(
    client: FlaskClient, hits: list[Hit], rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    mine = token_in(open_quiz(client, hits[0]))
    open_quiz(client, hits[0], assignment="ASSIGNMENTTWO", worker="AOTHER")
    with session_factory() as session:
        theirs = session.query(QuizResult).order_by(QuizResult.id.desc()).first()
        assert theirs is not None
        given = answers(theirs, 7)

    assert send(client, mine, given).status_code == 409
    for token in ("", "forged", mine[:-2], mine.upper()):
        assert send(client, token, given).status_code == 403
    assert [one.answered_at for one in rows(QuizResult)] == [None, None]


def test_a_token_of_a_writing_hit_answers_no_quiz(
    client: FlaskClient, hits: list[Hit], hit: Hit, session_factory: sessionmaker[Session]
) -> None:
    open_quiz(client, hits[0])
    _, right = result(session_factory)
    writing = token_in(open_page(client, hit, assignment="ASSIGNMENTNINE"))

    assert send(client, writing, right).status_code == 403
    assert client.get(f"/quiz/{hit.reference}", query_string=frame_query(hit)).status_code == 404
    query = frame_query(hits[0])
    assert client.get(f"/work/{hits[0].reference}", query_string=query).status_code == 404


def test_two_tabs_the_second_shows_what_the_first_was_told(
    client: FlaskClient, hits: list[Hit], rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    one, two = open_quiz(client, hits[0]), open_quiz(client, hits[0])
    row, right = result(session_factory)
    send(client, token_in(one), answers(row, 2))

    second = send(client, token_in(two), right)

    assert second.status_code == 409
    assert "2 of 7 right: not passed" in second.text
    assert rows(QuizResult)[0].score == 2
    assert "2 of 7 right: not passed" in open_quiz(client, hits[0]).text


def test_answers_after_the_deadline_are_not_taken(
    client: FlaskClient, hits: list[Hit], rows: Rows, clock: FixedClock, session_factory: sessionmaker[Session]
) -> None:
    token = token_in(open_quiz(client, hits[0]))
    _, right = result(session_factory)
    clock.advance(timedelta(minutes=30))

    late = send(client, token, right)

    assert late.status_code == 409
    assert "time for this HIT is over" in late.text
    assert rows(QuizResult)[0].answered_at is None


def test_a_quiz_that_was_opened_in_a_second_hit_is_answered_there(
    client: FlaskClient, hits: list[Hit], rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    old = token_in(open_quiz(client, hits[0]))
    new = token_in(open_quiz(client, hits[1], assignment="ASSIGNMENTTWO"))
    _, right = result(session_factory)

    assert send(client, old, right).status_code == 409
    assert rows(QuizResult)[0].answered_at is None
    assert "7 of 7 right: passed" in send(client, new, right).text
    assert len(rows(QuizResult)) == 1


def test_the_page_shows_the_version_that_was_launched(
    client: FlaskClient, hits: list[Hit], session_factory: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the task's file says by now changes nothing for HITs that exist."""
    monkeypatch.setattr(quizzes, "task", lambda code: pytest.fail("the page looked at the task's file"))

    page = open_quiz(client, hits[0])
    _, right = result(session_factory)

    assert page.status_code == 200
    assert "7 of 7 right: passed" in send(client, token_in(page), right).text


def test_the_marked_answer_is_marked_in_its_passage(
    client: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    hit, _ = made(session_factory, "qa", "validator")

    page = soup(open_quiz(client, hit))

    for item in page.select(".quiz-item"):
        [mark] = item.select("mark.mine")
        quoted = item.select("blockquote")[-1].get_text()
        assert mark.get_text().casefold() == quoted.casefold()


@pytest.fixture
def disturbing(session_factory: sessionmaker[Session]) -> Hit:
    """A quiz HIT of the validators of hate speech."""
    return made(session_factory, "hate", "validator")[0]


def asked_for(client: FlaskClient, page: TestResponse, item_id: str, **given: str) -> TestResponse:
    """The page after "Show question" was pressed, with what was answered by then."""
    return client.post("/quiz/reveal", data={"token": token_in(page), "question": item_id, **given})


def test_a_disturbing_question_is_shown_when_it_is_asked_for_and_counted_once(
    client: FlaskClient, disturbing: Hit, rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    preview = client.get(f"/quiz/{disturbing.reference}", query_string={"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"})
    quiz = quiz_for("hate", "validator")
    assert not any(part.text in preview.text for example in quiz.examples for part in example.parts)

    page = open_quiz(client, disturbing)
    row, right = result(session_factory)
    texts = {item_id: quiz.item(item_id).parts[-1].text for item_id in row.items}
    assert not any(text in soup(page).get_text() for text in texts.values())
    first, second, *_ = row.items
    assert send(client, token_in(page), right).status_code == 409
    assert rows(QuizResult)[0].answered_at is None

    shown = asked_for(client, page, first)
    again = asked_for(client, shown, first, **fields({first: right[first]}))

    assert texts[first] in soup(again).get_text()
    assert texts[second] not in soup(again).get_text()
    assert soup(again).find("input", {"name": f"answer-{first}", "value": right[first], "checked": True})
    assert [one.subject for one in rows(Exposure)] == [f"quiz:{first}"]
    for item_id in row.items[1:]:
        again = asked_for(client, again, item_id)
    assert "7 of 7 right: passed" in send(client, token_in(again), right).text


def test_beyond_the_cap_no_further_question_is_shown_and_no_forged_one(
    client: FlaskClient, disturbing: Hit, rows: Rows, session_factory: sessionmaker[Session], settings: Settings
) -> None:
    page = open_quiz(client, disturbing)
    row, right = result(session_factory)
    first, second, *_ = row.items
    other = next(item.id for item in quiz_for("hate", "validator").items if item.id not in row.items)
    assert asked_for(client, page, other).status_code == 409
    assert rows(Exposure) == []
    asked_for(client, page, first)
    with session_factory() as session:
        session.execute(update(Exposure).values(number=settings.exposure_cap))
        session.commit()

    full = asked_for(client, page, second, **fields({first: right[first]}))

    assert full.status_code == 409
    assert "more are not good for anybody" in full.text
    assert quiz_for("hate", "validator").item(second).parts[-1].text not in soup(full).get_text()
    assert soup(full).find("input", {"name": f"answer-{first}", "checked": True})
    assert len(rows(Exposure)) == 1
