"""Somebody who may not work on a HIT meets a plain sentence, loses nothing, and gets by it in no way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from hits.models import Assignment, Attempt, Hit, Vote, Worker
from hits.states import AssignmentState
from qualification.limits_models import EVERY_ROUND, AllowList, LimitPer, ListEntry, ListKind, Work, WorkLimit
from tests.app.conftest import WORKER, Judging, RuleEngine, ask, frame_query, gone_on, open_page, token_in
from tests.factories import NOON, make_hit

#: Who is let in is tested on both databases in tests/qualification.
pytestmark = pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)

Rows = Callable[[type[Any]], list[Any]]
Sessions = sessionmaker[Session]


def set_aside(sessions: Sessions, mturk_worker_id: str = WORKER) -> None:
    with sessions() as session:
        worker = session.scalars(select(Worker).where(Worker.mturk_worker_id == mturk_worker_id)).one()
        session.add(
            ListEntry(
                worker_id=worker.id,
                kind=ListKind.SET_ASIDE,
                task_code="sentiment",
                round_number=EVERY_ROUND,
                reason="for tests",
                added_at=NOON,
                added_by="robin",
            )
        )
        session.commit()


def another(sessions: Sessions, hit: Hit) -> Hit:
    """One more HIT of the same batch."""
    with sessions() as session:
        made = make_hit(session, batch=session.get_one(Hit, hit.id).batch)
        session.commit()
        session.expunge_all()
        return made


def test_the_page_of_somebody_set_aside_says_so_plainly_and_stores_nothing(
    client: FlaskClient, hit: Hit, rows: Rows, session_factory: Sessions, caplog: pytest.LogCaptureFixture
) -> None:
    open_page(client, hit)
    set_aside(session_factory)
    caplog.set_level("INFO")

    page = open_page(client, another(session_factory, hit), assignment="ASSIGNMENTTWO")

    assert page.status_code == 403
    for words in ("not open to you", "does not offer you HITs of this task", "No try was used", "Return this HIT"):
        assert words in page.text
    assert "for tests" not in page.text
    assert [row.mturk_assignment_id for row in rows(Assignment)] == ["ASSIGNMENTONE"]
    assert "is not admitted to HIT" in caplog.text
    assert WORKER not in caplog.text


def test_two_tabs_the_second_question_is_refused_when_the_first_was_never_asked(
    client: FlaskClient, hit: Hit, token: str, rows: Rows, engine: RuleEngine, session_factory: Sessions
) -> None:
    """The pages were open before; nothing had been sent from them."""
    set_aside(session_factory)

    for script in (False, True, True):
        answer = ask(client, token, "The soup came cold.", script=script)
        assert answer.status_code == 403
        assert "does not offer you HITs of this task" in answer.text

    assert rows(Attempt) == []
    assert engine.asked == []


def test_what_was_begun_is_finished_and_handed_in(
    client: FlaskClient, hit: Hit, token: str, rows: Rows, session_factory: Sessions
) -> None:
    ask(client, token, "The day was cold.")
    set_aside(session_factory)

    assert ask(client, token, "A good day.").status_code == 200
    assert open_page(client, hit).status_code == 200
    done = client.post("/work/submit", data={"token": token})

    assert done.status_code == 200
    [assignment] = rows(Assignment)
    assert assignment.state is AssignmentState.SAVED


def test_the_page_of_a_handed_in_hit_still_leads_on(
    client: FlaskClient, hit: Hit, token: str, session_factory: Sessions
) -> None:
    ask(client, token, "A good day.")
    client.post("/work/submit", data={"token": token})
    set_aside(session_factory)

    assert open_page(client, hit).status_code == 200


def test_an_uninvited_newcomer_is_not_let_in_by_opening_the_page_again(
    client: FlaskClient, hit: Hit, rows: Rows, session_factory: Sessions
) -> None:
    with session_factory() as session:
        session.add(AllowList(task_code="sentiment", round_number=1, set_at=NOON, set_by="robin"))
        session.commit()

    pages = [open_page(client, hit, assignment=f"ASSIGNMENT{number}") for number in range(3)]

    assert {page.status_code for page in pages} == {403}
    assert rows(Assignment) == []


def test_a_limit_of_the_day_ends_with_the_day(
    client: FlaskClient, hit: Hit, session_factory: Sessions, clock: FixedClock
) -> None:
    with session_factory() as session:
        session.add(
            WorkLimit(
                task_code="sentiment",
                round_number=EVERY_ROUND,
                work=Work.WRITING,
                per=LimitPer.DAY,
                most=1,
                set_at=NOON,
                set_by="robin",
            )
        )
        session.commit()
    assert open_page(client, hit).status_code == 200
    next_hit = another(session_factory, hit)

    refused = open_page(client, next_hit, assignment="ASSIGNMENTTWO")
    # The first page can be loaded again, and others are not counted for this one.
    assert open_page(client, hit).status_code == 200
    assert open_page(client, next_hit, assignment="ASSIGNMENTTHREE", worker="AOTHER1").status_code == 200
    clock.advance(timedelta(hours=12))

    assert (refused.status_code, "at most 1 in a day" in refused.text) == (403, True)
    assert open_page(client, next_hit, assignment="ASSIGNMENTTWO").status_code == 200


def test_the_name_of_somebody_invited_in_the_address_opens_no_page_of_another(
    client: FlaskClient, hit: Hit, token: str, app: Flask, rows: Rows, session_factory: Sessions
) -> None:
    """The stored assignment belongs to one worker, whoever the address names."""
    set_aside(session_factory)

    assert open_page(client, hit, worker="AINVITED1").status_code == 403
    assert ask(client, token, "The soup came cold.", workerId="AINVITED1").status_code == 403
    assert rows(Attempt) == []


def test_a_judgement_from_a_page_that_was_open_before_is_refused(
    client: FlaskClient, judging: Judging, rows: Rows, session_factory: Sessions
) -> None:
    query = frame_query(judging.hit, worker="AJUDGE")
    token = token_in(gone_on(client, client.get(f"/validate/{judging.hit.reference}", query_string=query)))
    set_aside(session_factory, "AJUDGE")
    before = len(rows(Vote))

    answer = client.post(
        "/validate/votes", data={"token": token, "statement": judging.public_ids[0], "label": "negative"}
    )

    assert answer.status_code == 403
    assert "Return this HIT" in answer.text
    assert len(rows(Vote)) == before
