"""The page of work that waits for a person: approval, rejection with a second question, undoing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app.models import AuditEntry, StaffUser
from hits.clock import FixedClock
from hits.models import Assignment, Hit, HitBatch, Rejection
from hits.states import AssignmentState, HitKind, RejectionState
from payments.models import LedgerTransaction, TransactionKind
from tests.app.conftest import csrf_in, sign_in
from tests.app.four_tasks import creation_hit
from tests.factories import NOON, make_assignment, make_attempt, make_batch, make_example, make_hit, make_vote
from tests.market import Market, failing

Rows = Callable[[type[Any]], list[Any]]
WORDS = "The form was handed in without a single text."
WHY = "submitted on the marketplace without any work on our page"


@pytest.fixture
def requester(client: FlaskClient, staff: Callable[..., StaffUser]) -> FlaskClient:
    staff()
    sign_in(client)
    return client


@pytest.fixture
def market(app: Flask, clock: FixedClock) -> Market:
    """A marketplace that the service talks to."""
    made = Market(clock)
    app.extensions["dynahit"].__dict__["mturk"] = made.mturk
    return made


@pytest.fixture
def waiting(market: Market, session_factory: sessionmaker[Session]) -> str:
    """An assignment that is submitted on the marketplace and waits here."""
    return stranger(market, session_factory)


def stranger(market: Market, session_factory: sessionmaker[Session], name: str = "stranger", **fields: Any) -> str:
    hit_type = market.mturk.create_hit_type(
        title="Write",
        description="Write a statement.",
        keywords="writing",
        reward=Decimal("0.30"),
        assignment_seconds=1800,
        auto_approval_seconds=259_200,
    )
    seen = market.mturk.create_hit(
        hit_type,
        question_xml=QUESTION,
        max_assignments=1,
        lifetime_seconds=604_800,
        annotation="",
        request_token=f"token-{name}",
    )
    assignment_id = market.accept(market.person(name), seen.hit_id)
    market.submit(assignment_id)
    with session_factory() as session:
        hit = make_hit(session, mturk_hit_id=seen.hit_id)
        make_assignment(
            session,
            hit=hit,
            mturk_assignment_id=assignment_id,
            state=AssignmentState.SUBMITTED,
            review_reason=WHY,
            **fields,
        )
        session.commit()
    return assignment_id


QUESTION = (
    '<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/'
    'ExternalQuestion.xsd"><ExternalURL>http://localhost:8001/work/x</ExternalURL><FrameHeight>0</FrameHeight>'
    "</ExternalQuestion>"
)


def soup(response: TestResponse) -> BeautifulSoup:
    return BeautifulSoup(response.text, "lxml")


def post(client: FlaskClient, path: str, **fields: str) -> TestResponse:
    return client.post(path, data={"csrf_token": csrf_in(client.get("/rounds")), **fields})


def asked_again(client: FlaskClient, assignment_id: str, **change: str) -> TestResponse:
    return post(client, f"/review/{assignment_id}/reject", **{"category": "no_work", "words": WORDS, **change})


def second_answer(page: TestResponse) -> str:
    return str(soup(page).find("input", {"name": "again"})["value"])


def test_what_approves_itself_first_stands_first(
    requester: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        for days in (3, 1, 2, None):
            at = NOON + timedelta(days=days) if days else None
            made = make_assignment(session, state=AssignmentState.SUBMITTED, review_reason=WHY)
            made.auto_approval_at, made.mturk_assignment_id = at, f"DAYS{days}"
        make_assignment(session, state=AssignmentState.SUBMITTED, mturk_assignment_id="FINE")
        worker_ids = [one.worker.mturk_worker_id for one in session.query(Assignment)]
        session.commit()

    page = requester.get("/review")

    rows = [row.find("th").get_text() for row in soup(page).find("tbody").find_all("tr")]
    assert rows == ["DAYS1", "DAYS2", "DAYS3", "DAYSNone"]
    assert not any(one in page.text for one in worker_ids)
    assert "Nothing waits for you" not in page.text


def test_without_anything_the_page_says_what_will_appear(requester: FlaskClient) -> None:
    assert "Nothing waits for you" in requester.get("/review").text


def test_the_page_of_an_assignment_shows_what_was_done(
    requester: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        writing = make_assignment(session, state=AssignmentState.SUBMITTED, review_reason=WHY, why="<i>irony</i>")
        make_attempt(session, assignment=writing, answer={"statement": "<b>Cold</b> soup."})
        reading = make_assignment(
            session,
            hit=make_hit(session, batch=make_batch(session, kind=HitKind.VALIDATION)),
            state=AssignmentState.SUBMITTED,
            review_reason=WHY,
        )
        make_vote(session, example=make_example(session), assignment=reading)
        hateful = make_assignment(
            session, hit=creation_hit(session, "hate"), state=AssignmentState.SUBMITTED, review_reason=WHY
        )
        make_attempt(
            session, assignment=hateful, answer={"message": "That lot from Quillby."}, predicted_label="not_hateful"
        )
        session.commit()
        names = [one.mturk_assignment_id for one in (writing, reading, hateful)]

    pages = [requester.get(f"/review/{name}") for name in names]

    assert [page.status_code for page in pages] == [200, 200, 200]
    assert "&lt;b&gt;Cold&lt;/b&gt; soup." in pages[0].text
    assert "&lt;i&gt;irony&lt;/i&gt;" in pages[0].text
    assert "Fooled the model" in pages[0].text
    assert "negative" in pages[1].text
    assert soup(pages[2]).find("blockquote").find_parent("details", class_="reveal") is not None
    assert "Its 1 judgement counts no more" in asked_again(requester, names[1]).text


@pytest.mark.parametrize("name", ["NOBODY", "%00", "x" * 200])
def test_an_assignment_that_there_is_not_is_not_found(requester: FlaskClient, name: str) -> None:
    assert requester.get(f"/review/{name}").status_code in (404, 422)
    assert post(requester, f"/review/{name}/approve").status_code in (404, 422)


def test_approving_lets_the_jobs_pay(requester: FlaskClient, waiting: str, rows: Rows) -> None:
    answer = post(requester, f"/review/{waiting}/approve")

    assert answer.headers["Location"] == "/review"
    assert [one.review_reason for one in rows(Assignment)] == [None]
    assert [(one.action, one.subject) for one in rows(AuditEntry)] == [("assignment.accept", waiting)]
    assert post(requester, f"/review/{waiting}/approve").status_code == 409


def test_a_rejection_is_asked_about_twice_done_once_and_can_be_undone(
    requester: FlaskClient, market: Market, waiting: str, rows: Rows
) -> None:
    question = asked_again(requester, waiting)

    assert question.status_code == 200
    assert WORDS in question.text
    assert "is not paid" in question.text
    assert "1 of 1 are rejected then" in question.text
    assert rows(Assignment)[0].state is AssignmentState.SUBMITTED

    token = second_answer(question)
    done = post(requester, f"/review/{waiting}/rejected", again=token)
    assert done.status_code == 302
    assert market.mturk.assignment(waiting).status == "Rejected"
    assert rows(Assignment)[0].state is AssignmentState.REJECTED
    assert post(requester, f"/review/{waiting}/rejected", again=token).status_code == 409  # once
    page = requester.get(f"/review/{waiting}")
    assert "Undo, and pay" in page.text
    assert "Rejected" in requester.get("/review").text

    assert post(requester, f"/review/{waiting}/undo", reason=" ").status_code == 422
    assert post(requester, f"/review/{waiting}/undo", reason="I mixed them up.").status_code == 302
    assert post(requester, f"/review/{waiting}/undo", reason="again").status_code == 409
    assert rows(Assignment)[0].state is AssignmentState.APPROVED
    assert [one.reference for one in rows(LedgerTransaction) if one.kind is TransactionKind.REWARD] == [waiting]
    assert [one.state for one in rows(Rejection)] == [RejectionState.UNDONE]
    page = requester.get(f"/review/{waiting}")
    assert "Undone by robin" in page.text
    assert "I mixed them up." in page.text
    assert {one.action for one in rows(AuditEntry)} == {"assignment.reject", "assignment.undo-rejection"}


@pytest.mark.parametrize(
    ("change", "field"),
    [({"category": "wrong_label"}, "category"), ({"category": ""}, "category"), ({"words": "bad"}, "words")],
)
def test_grounds_that_are_none_come_back_with_what_was_typed(
    requester: FlaskClient, waiting: str, rows: Rows, change: dict[str, str], field: str
) -> None:
    page = asked_again(requester, waiting, **change)

    assert page.status_code == 422
    wrong = soup(page).find(id=f"{field}-error")
    assert wrong is not None
    assert (change.get("words") or WORDS) in soup(page).find("textarea").get_text()
    assert rows(Rejection) == []


def test_a_second_answer_serves_its_own_question_person_and_hour_only(
    client: FlaskClient,
    requester: FlaskClient,
    market: Market,
    waiting: str,
    session_factory: sessionmaker[Session],
    staff: Callable[..., StaffUser],
    clock: FixedClock,
    rows: Rows,
) -> None:
    other = stranger(market, session_factory, "second")
    token = second_answer(asked_again(requester, waiting))
    hit_token = requester.application.extensions["dynahit"].tokens.ask_again("1", waiting)

    answers = [
        post(requester, f"/review/{other}/rejected", again=token),
        post(requester, f"/review/{waiting}/rejected", again=""),
        post(requester, f"/review/{waiting}/rejected", again=token[:-2]),
        post(requester, f"/review/{waiting}/rejected", again=hit_token),
        requester.post(f"/review/{waiting}/rejected", data={"again": token}),  # without the session's token
    ]
    staff("kim")
    someone = client.application.test_client()
    sign_in(someone, "kim")
    answers.append(post(someone, f"/review/{waiting}/rejected", again=token))
    clock.advance(timedelta(minutes=16))
    answers.append(post(requester, f"/review/{waiting}/rejected", again=token))

    assert [one.status_code for one in answers] == [403, 403, 403, 403, 400, 403, 403]
    assert rows(Rejection) == []
    assert "RejectAssignment" not in market.calls


def test_finance_and_strangers_may_not_review(
    client: FlaskClient, waiting: str, staff: Callable[..., StaffUser], rows: Rows
) -> None:
    assert "/staff/sign-in" in client.get("/review").headers["Location"]
    staff("fin", roles=("finance",))
    sign_in(client, "fin")

    assert client.get(f"/review/{waiting}").status_code == 403
    token = csrf_in(client.get("/finance"))
    for deed in ("approve", "reject", "rejected", "undo"):
        answer = client.post(f"/review/{waiting}/{deed}", data={"csrf_token": token, "reason": "x", "again": "y"})
        assert answer.status_code == 403
    assert rows(Assignment)[0].review_reason == WHY


def test_at_the_cap_nobody_is_rejected_any_more_and_the_page_says_so(
    requester: FlaskClient, market: Market, waiting: str, session_factory: sessionmaker[Session], rows: Rows
) -> None:
    token = second_answer(asked_again(requester, waiting))
    with session_factory() as session:
        batch_id = session.query(HitBatch).one().id
        hit = make_hit(session, batch=session.get_one(HitBatch, batch_id))
        make_assignment(session, hit=session.get_one(Hit, hit.id), state=AssignmentState.REJECTED)
        session.commit()

    late = post(requester, f"/review/{waiting}/rejected", again=token)
    early = asked_again(requester, waiting)

    assert [late.status_code, early.status_code] == [409, 409]
    assert "DYNAHIT_REJECTION_CAP" in late.text
    assert "The cap is reached" in requester.get(f"/review/{waiting}").text
    assert rows(Rejection) == []
    assert market.mturk.assignment(waiting).status == "Submitted"


def test_an_interrupted_rejection_can_be_gone_on_with_from_its_page(
    requester: FlaskClient, market: Market, waiting: str, rows: Rows
) -> None:
    market.before = failing("RejectAssignment")
    assert (
        post(requester, f"/review/{waiting}/rejected", again=second_answer(asked_again(requester, waiting))).status_code
        >= 400
    )
    assert [one.state for one in rows(Rejection)] == [RejectionState.SENDING]
    market.before = None
    page = requester.get(f"/review/{waiting}")
    assert "A rejection that was interrupted" in page.text
    assert "No answer yet" in requester.get("/review").text
    assert post(requester, f"/review/{waiting}/approve").status_code == 409

    assert post(requester, f"/review/{waiting}/rejected", again=second_answer(page)).status_code == 302

    assert [one.state for one in rows(Rejection)] == [RejectionState.REJECTED]
