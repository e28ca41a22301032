"""Consent and warnings stand before the work, and the server keeps them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from app.extensions import db
from app.factory import create_app
from app.settings import Settings
from hits.clock import FixedClock
from hits.models import Assignment, Attempt, Consent, ConsentText, Exposure, Hit, Vote, Worker
from hits.states import AssignmentState
from tests.app.conftest import ASSIGNMENT, SITE, WORKER, RuleEngine, ask, frame_query, gone_on, open_page, token_in
from tests.app.four_tasks import CONTEXTS, FourTaskEngine, creation_hit, fooling_example, validation_hit
from tests.factories import make_assignment, make_context, make_hit, make_worker

Rows = Callable[[type[Any]], list[Any]]


def first_look(client: FlaskClient, hit: Hit, **other: str) -> TestResponse:
    """Open a page as a browser does, without going on."""
    return client.get(f"/work/{hit.reference}", query_string=frame_query(hit, **other))


def soup(response: TestResponse) -> BeautifulSoup:
    return BeautifulSoup(response.text, "lxml")


def form_of(response: TestResponse, action: str) -> dict[str, str]:
    form = soup(response).find("form", {"action": action})
    assert form is not None, response.text[:3000]
    return {str(field["name"]): str(field["value"]) for field in form.find_all("input")}


# Consent


def test_a_first_visit_asks_before_anything_of_the_worker_is_stored(
    client: FlaskClient, hit: Hit, rows: Rows, clock: FixedClock
) -> None:
    page = first_look(client, hit)

    assert page.status_code == 200
    assert soup(page).find("h1").get_text() == "Do you agree?"
    assert "A train was late" not in page.text
    assert rows(Worker) == rows(Assignment) == rows(Consent) == []

    work = client.post("/care/consent", data=form_of(page, "/care/consent"), follow_redirects=True)

    assert "Ask the model" in work.text
    (text,), (given,), (assignment,) = rows(ConsentText), rows(Consent), rows(Assignment)
    assert (given.consent_text_id, given.given_at) == (text.id, clock.now())
    assert assignment.consent_text_id == text.id
    assert "Ask the model" in first_look(client, hit, assignment="ASSIGNMENTTWO").text  # asked once


def test_who_declines_is_told_how_to_return_and_leaves_nothing(client: FlaskClient, hit: Hit, rows: Rows) -> None:
    page = client.post("/care/decline", data=form_of(first_look(client, hit), "/care/decline"))

    assert page.status_code == 200
    assert "Return" in soup(page).find("h1").find_next("p").get_text()
    assert soup(page).find(attrs={"data-return-now": SITE}) is not None
    assert rows(Worker) == rows(Assignment) == rows(Consent) == []


@pytest.mark.parametrize(
    "way", ["/work/attempts", "/work/draft", "/work/submit", "/work/leave", "/work/context", "/care/warning"]
)
def test_the_token_of_the_consent_page_opens_no_way_past_it(
    client: FlaskClient, hit: Hit, rows: Rows, engine: RuleEngine, way: str
) -> None:
    fields = form_of(first_look(client, hit), "/care/consent")

    refused = client.post(way, data={**fields, "statement": "I am sad.", "why": "secret"})

    assert refused.status_code == 403
    assert rows(Worker) == rows(Assignment) == rows(Attempt) == rows(Consent) == []
    assert engine.asked == []


def test_an_assignment_from_before_there_was_consent_takes_nothing_until_it_is_given(
    client: FlaskClient, hit: Hit, rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        worker = make_worker(session, mturk_worker_id=WORKER)
        make_assignment(
            session,
            hit=session.get_one(Hit, hit.id),
            worker=worker,
            mturk_assignment_id=ASSIGNMENT,
            consent_text_id=None,
        )
        session.commit()
    token = form_of(first_look(client, hit), "/care/consent")["token"]

    answers = [
        ask(client, token, "I am sad."),
        client.post("/work/draft", data={"token": token, "statement": "half"}),
        client.post("/work/submit", data={"token": token}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert "You have not agreed yet" in answers[0].text
    assert rows(Attempt) == []
    assert rows(Assignment)[0].draft is None
    assert "Ask the model" in open_page(client, hit).text


@pytest.mark.parametrize(
    "change",
    [
        {"version": "77"},
        {"version": ""},
        {"back": "//evil.example/work/x"},
        {"back": "https://evil.example/work/x"},
        {"back": "/rounds"},
        {"back": "/work/another?assignmentId=ASSIGNMENTONE&workerId=AWRITER1"},
        {"back": ""},
        {"token": "made up"},
    ],
)
def test_a_forged_consent_stores_nothing(client: FlaskClient, hit: Hit, rows: Rows, change: dict[str, str]) -> None:
    fields = form_of(first_look(client, hit), "/care/consent")

    refused = client.post("/care/consent", data={**fields, **change})

    assert refused.status_code in (403, 409)
    assert "Location" not in refused.headers
    assert rows(Worker) == rows(Consent) == []


def test_the_way_back_is_of_the_same_worker_and_assignment(client: FlaskClient, hit: Hit, rows: Rows) -> None:
    fields = form_of(first_look(client, hit), "/care/consent")
    other = fields["back"].replace(WORKER, "AOTHER")

    assert client.post("/care/consent", data={**fields, "back": other}).status_code == 409
    assert rows(Consent) == []


def test_a_claim_of_another_ones_assignment_is_refused_before_it_is_asked(client: FlaskClient, hit: Hit) -> None:
    open_page(client, hit)

    assert first_look(client, hit, worker="ATHIEF").status_code == 403


@pytest.fixture
def renewed(
    settings: Settings, app: Flask, engine: RuleEngine, clock: FixedClock, tmp_path: Path
) -> Iterator[FlaskClient]:
    """The same service after its operator has changed the text."""
    path = tmp_path / "consent.txt"
    path.write_text("# A new text\n\nIt says <b>more</b>.", encoding="utf-8")
    built = create_app(settings.model_copy(update={"consent_file": path}), engine=engine, clock=clock)
    yield built.test_client()
    with built.app_context():
        db.engine.dispose()


def test_a_new_text_is_asked_about_again_and_work_in_hand_goes_on(
    client: FlaskClient, renewed: FlaskClient, hit: Hit, rows: Rows
) -> None:
    token = token_in(open_page(client, hit))

    assert ask(renewed, token, "I am sad.").status_code == 200  # begun under the old text
    asked = first_look(renewed, hit)
    assert "A new text" in asked.text
    assert "It says &lt;b&gt;more&lt;/b&gt;." in asked.text
    work = renewed.post("/care/consent", data=form_of(asked, "/care/consent"), follow_redirects=True)
    assert "4 of 5 tries left" in work.text
    old, new = rows(ConsentText)
    assert [one.consent_text_id for one in rows(Consent)] == [old.id, new.id]
    assert rows(Assignment)[0].consent_text_id == new.id


def test_a_form_with_the_old_text_does_not_agree_to_the_new_one(
    client: FlaskClient, renewed: FlaskClient, hit: Hit, rows: Rows
) -> None:
    fields = form_of(first_look(client, hit), "/care/consent")

    refused = renewed.post("/care/consent", data=fields)

    assert refused.status_code == 409
    assert "Read the new one" in refused.text
    assert rows(Consent) == []


def test_work_that_is_handed_in_is_not_asked_about_any_more(
    client: FlaskClient, renewed: FlaskClient, hit: Hit, rows: Rows
) -> None:
    token = token_in(open_page(client, hit))
    ask(client, token, "Such a good wait.")
    client.post("/work/submit", data={"token": token})

    assert "Your work is saved" in first_look(renewed, hit).text
    assert rows(Assignment)[0].state is AssignmentState.SAVED


def test_every_version_can_be_read_and_printed_by_anybody(
    client: FlaskClient, renewed: FlaskClient, hit: Hit, rows: Rows
) -> None:
    link = soup(first_look(client, hit)).find("a", href=lambda href: bool(href) and href.startswith("/consent/"))
    first_look(renewed, hit)
    old, new = rows(ConsentText)

    assert link["href"] == f"/consent/{old.id}"
    page = client.get(link["href"])
    assert page.status_code == 200
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert "What taking part means" in page.text
    assert "A new text" in client.get(f"/consent/{new.id}").text
    assert [client.get(f"/consent/{wrong}").status_code for wrong in ("999", "0", "x", "99999999999999999999")] == [
        404
    ] * 4


def test_a_preview_links_to_the_text_and_stores_nothing_of_anybody(client: FlaskClient, hit: Hit, rows: Rows) -> None:
    page = client.get(f"/work/{hit.reference}", query_string={"assignmentId": "", "hitId": hit.mturk_hit_id or ""})

    assert soup(page).find("a", href=f"/consent/{rows(ConsentText)[0].id}") is not None
    assert rows(Worker) == []


def test_no_worker_id_reaches_a_log(client: FlaskClient, hit: Hit, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    fields = form_of(first_look(client, hit), "/care/consent")
    client.post("/care/consent", data={**fields, "version": "9"})
    client.post("/care/consent", data={**fields, "back": "/work/x?workerId=" + WORKER})
    client.post("/care/consent", data=fields, follow_redirects=True)
    client.post("/care/decline", data=fields)

    assert WORKER not in caplog.text


# Disturbing texts


@pytest.fixture
def model() -> FourTaskEngine:
    return FourTaskEngine()


@pytest.fixture
def harsh(
    settings: Settings, session_factory: sessionmaker[Session], model: FourTaskEngine, clock: FixedClock
) -> Iterator[FlaskClient]:
    """A service that shows a person at most two disturbing texts a day."""
    strict = settings.model_copy(update={"exposure_cap": 2, "break_after": 2, "support_line": "0800 111 0 111"})
    built = create_app(strict, engine=model, clock=clock)
    yield built.test_client()
    with built.app_context():
        db.engine.dispose()


@pytest.fixture
def hate_hits(session_factory: sessionmaker[Session]) -> list[Hit]:
    with session_factory() as session:
        made = [creation_hit(session, "hate")]
        for number in (2, 3):
            batch = made[0].batch
            prompt = {"prompt": f"{CONTEXTS['hate']['prompt']} Number {number}."}
            context = make_context(session, round=batch.round, fields=prompt)
            made.append(make_hit(session, batch=batch, context_id=context.id, goal_label="hateful"))
        session.commit()
        session.expunge_all()
        return made


def told_nothing(page: TestResponse) -> bool:
    """Whether nothing that may disturb is in the page: neither the prompt nor an example of the task."""
    return not any(words in page.text for words in (CONTEXTS["hate"]["prompt"], "Quillby"))


def test_a_warning_stands_before_the_text_and_the_text_before_nobody_who_did_not_ask(
    harsh: FlaskClient, hate_hits: list[Hit], rows: Rows, clock: FixedClock
) -> None:
    hit = hate_hits[0]
    preview = harsh.get(f"/work/{hit.reference}", query_string={"hitId": hit.mturk_hit_id or ""})
    asked = first_look(harsh, hit)
    warned = harsh.post("/care/consent", data=form_of(asked, "/care/consent"), follow_redirects=True)

    assert [told_nothing(page) for page in (preview, asked, warned)] == [True, True, True]
    assert "This HIT contains hateful language" in preview.text
    assert "0800 111 0 111" in warned.text
    assert "real private persons, threats" in warned.text
    fields = form_of(warned, "/care/warning")
    refused = harsh.post("/work/attempts", data={"token": fields["token"], "message": "They call it hateful."})
    assert (refused.status_code, "not seen the warning" in refused.text) == (403, True)
    assert harsh.post("/work/context", data={"token": fields["token"]}).status_code == 403
    assert rows(Attempt) == rows(Exposure) == []

    work = harsh.post("/care/warning", data=fields, follow_redirects=True)

    assert rows(Assignment)[0].warned_at == clock.now()
    assert CONTEXTS["hate"]["prompt"] not in work.text
    shown = harsh.post("/work/context", data=form_of(work, "/work/context"))
    assert CONTEXTS["hate"]["prompt"] in shown.text
    assert CONTEXTS["hate"]["prompt"] in first_look(harsh, hit).text
    assert [(one.subject, one.number) for one in rows(Exposure)] == [(f"context:{hit.context_id}", 1)]


def test_a_script_gets_the_text_as_a_fragment(harsh: FlaskClient, hate_hits: list[Hit]) -> None:
    token = token_in(open_page(harsh, hate_hits[0]))

    shown = harsh.post("/work/context", data={"token": token}, headers={"X-Requested-With": "fetch"})

    assert shown.headers["X-Fragment"] == "1"
    assert soup(shown).find(id="starting-point").get_text(strip=True).endswith(CONTEXTS["hate"]["prompt"])


def test_the_days_cap_stops_a_writer_who_can_hand_in_and_is_welcome_tomorrow(
    harsh: FlaskClient, hate_hits: list[Hit], rows: Rows, clock: FixedClock
) -> None:
    tokens = {}
    for number, hit in enumerate(hate_hits):
        tokens[hit.id] = token_in(open_page(harsh, hit, assignment=f"ASSIGNMENT{'ABC'[number]}"))
    left_open = form_of(first_look(harsh, hate_hits[2], assignment="ASSIGNMENTD"), "/care/warning")
    for number, hit in enumerate(hate_hits):
        page = harsh.post("/work/context", data={"token": tokens[hit.id]})
        assert (CONTEXTS["hate"]["prompt"] in page.text) is (number < 2)
        assert ("Time for a break" in page.text) is (number == 1)

    assert page.status_code == 409
    assert "You have read 2 such texts today" in page.text
    by_script = harsh.post(
        "/work/context", data={"token": tokens[hate_hits[2].id]}, headers={"X-Requested-With": "fetch"}
    )
    assert (by_script.status_code, by_script.json["error"]["title"]) == (409, "That was enough for today")  # type: ignore[index]
    assert [one.number for one in rows(Exposure)] == [1, 2]
    full = first_look(harsh, hate_hits[2], assignment="ASSIGNMENTD")
    assert "Enough for today" in full.text
    assert soup(full).find("form", {"action": "/care/warning"}) is None
    assert harsh.post("/care/warning", data=left_open).status_code == 409
    clock.advance(timedelta(days=1))
    assert soup(first_look(harsh, hate_hits[2], assignment="ASSIGNMENTD")).find("form", {"action": "/care/warning"})


def test_a_writer_can_stop_after_the_first_answer_and_keeps_the_pay(
    harsh: FlaskClient, hate_hits: list[Hit], rows: Rows, clock: FixedClock
) -> None:
    page = open_page(harsh, hate_hits[0])
    token = token_in(page)
    assert soup(page).find("form", {"action": "/work/leave"}) is None
    early = harsh.post("/work/leave", data={"token": token})
    assert (early.status_code, rows(Assignment)[0].state) == (409, AssignmentState.OPENED)

    asked = harsh.post("/work/attempts", data={"token": token, "message": "They call it hateful, I say."})
    assert "The model got it right" in asked.text
    left = harsh.post("/work/leave", data=form_of(first_look(harsh, hate_hits[0]), "/work/leave"))

    assert 'action="http://127.0.0.1:8000/mturk/externalSubmit"' in left.text
    (assignment,) = rows(Assignment)
    assert (assignment.state, assignment.left_at) == (AssignmentState.SAVED, clock.now())
    assert harsh.post("/work/leave", data={"token": token}).status_code == 200  # again: the same receipt
    assert len(rows(Attempt)) == 1


def test_other_tasks_have_no_early_way_out_and_no_warning(client: FlaskClient, token: str, rows: Rows) -> None:
    ask(client, token, "I am sad.")

    assert client.post("/work/leave", data={"token": token}).status_code == 409
    assert (rows(Assignment)[0].state, rows(Assignment)[0].warned_at) == (AssignmentState.OPENED, None)
    assert "A train was late" in client.post("/work/context", data={"token": token}).text
    assert rows(Exposure) == []


# Readers of disturbing texts


@pytest.fixture
def readings(session_factory: sessionmaker[Session]) -> tuple[Hit, list[str]]:
    """A validation HIT of three hateful messages, and what they are called on its page."""
    with session_factory() as session:
        creation = creation_hit(session, "hate")
        examples = [fooling_example(session, creation, message=f"Another lot from Quillby, number {n}.") for n in "123"]
        hit = validation_hit(session, examples)
        session.commit()
        names = [one.attempt.public_id for one in examples]
        session.expunge_all()
        return hit, names


def open_reading(client: FlaskClient, hit: Hit, *, assignment: str = "AREADING") -> TestResponse:
    query = frame_query(hit, worker="AREADER", assignment=assignment)
    return gone_on(client, client.get(f"/validate/{hit.reference}", query_string=query))


def test_a_reader_is_shown_one_text_at_a_time_up_to_the_days_cap_and_keeps_the_pay(
    harsh: FlaskClient, readings: tuple[Hit, list[str]], rows: Rows, clock: FixedClock
) -> None:
    hit, names = readings
    token = token_in(open_reading(harsh, hit))

    for number, name in enumerate(names[:2], start=1):
        shown = harsh.post("/validate/reveal", data={"token": token, "statement": name})
        texts = [quote.get_text() for quote in soup(shown).find_all("blockquote")]
        assert texts == [f"Another lot from Quillby, number {number}."]
        assert ("Time for a break" in shown.text) is (number == 2)
        judged = harsh.post("/validate/votes", data={"token": token, "statement": name, "label": "hateful"})
        assert "Quillby" not in judged.text
    full = harsh.post("/validate/reveal", data={"token": token, "statement": names[2]})
    assert (full.status_code, "Quillby" in full.text) == (409, False)
    assert "You have read 2 such texts today" in full.text
    assert [one.number for one in rows(Exposure)] == [1, 2]
    assert harsh.post("/validate/submit", data={"token": token}).status_code == 409  # that is not the way out

    left = harsh.post("/validate/leave", data=form_of(full, "/validate/leave"))

    assert 'action="http://127.0.0.1:8000/mturk/externalSubmit"' in left.text
    assignment = next(one for one in rows(Assignment) if one.mturk_assignment_id == "AREADING")
    assert (assignment.state, assignment.left_at) == (AssignmentState.SAVED, clock.now())
    assert [vote.label for vote in rows(Vote)] == ["hateful", "hateful"]


def test_a_reader_who_has_judged_nothing_has_nothing_to_hand_in(
    harsh: FlaskClient, readings: tuple[Hit, list[str]], rows: Rows
) -> None:
    hit, names = readings
    token = token_in(open_reading(harsh, hit))
    shown = harsh.post("/validate/reveal", data={"token": token, "statement": names[0]})

    assert soup(shown).find("form", {"action": "/validate/leave"}) is None
    assert harsh.post("/validate/leave", data={"token": token}).status_code == 409
    assert rows(Assignment)[-1].state is AssignmentState.OPENED


def test_asking_twice_in_two_tabs_counts_once_and_strange_names_not_at_all(
    harsh: FlaskClient, readings: tuple[Hit, list[str]], rows: Rows
) -> None:
    hit, names = readings
    token = token_in(open_reading(harsh, hit))
    other_tab = token_in(open_reading(harsh, hit))

    for one in (token, other_tab, token):
        assert harsh.post("/validate/reveal", data={"token": one, "statement": names[0]}).status_code == 200
    assert harsh.post("/validate/reveal", data={"token": token, "statement": "another"}).status_code == 409
    assert harsh.post("/validate/reveal", data={"token": "forged", "statement": names[1]}).status_code == 403

    assert [one.number for one in rows(Exposure)] == [1]


def test_a_text_that_was_not_shown_can_neither_be_judged_nor_flagged(
    harsh: FlaskClient, readings: tuple[Hit, list[str]], rows: Rows
) -> None:
    hit, names = readings
    token = token_in(open_reading(harsh, hit))

    for said in ({"label": "hateful"}, {"flag_reason": "I don't like it"}):
        refused = harsh.post("/validate/votes", data={"token": token, "statement": names[0], **said})
        assert refused.status_code == 409
        assert "You have not been shown this text" in refused.text
    assert rows(Vote) == []


def test_the_way_back_of_texts_shows_none_that_was_not_asked_for(
    harsh: FlaskClient, readings: tuple[Hit, list[str]]
) -> None:
    hit, names = readings
    token = token_in(open_reading(harsh, hit))

    again = harsh.post("/validate/statements", data={"token": token, "statement": names[1]})
    preview = harsh.get(f"/validate/{hit.reference}", query_string={"hitId": hit.mturk_hit_id or ""})

    assert "Quillby" not in again.text + preview.text
    assert "This HIT contains hateful language" in preview.text
    assert soup(preview).find("a", href=lambda href: bool(href) and href.startswith("/consent/")) is not None
