"""The validation HIT as its reader meets it, and what a forger can't do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker
from werkzeug.test import TestResponse

from hits.clock import FixedClock
from hits.models import Assignment, Example, HitBatch, Lease, Vote
from hits.states import AssignmentState
from hits.validations import add_gold
from payments.rules import ReaderTerms
from tests.app.conftest import Judging, frame_query, gone_on, token_in
from tests.app.four_tasks import PASSAGE, creation_hit, fooling_example, validation_hit
from tests.factories import make_validation_hit

Rows = Callable[[type[Any]], list[Any]]


def open_judging(client: FlaskClient, judging: Judging, **other: str) -> TestResponse:
    query = frame_query(judging.hit, **{"worker": "AJUDGE", **other})
    return gone_on(client, client.get(f"/validate/{judging.hit.reference}", query_string=query))


def vote(client: FlaskClient, token: str, statement: str, *, script: bool = False, **fields: str) -> TestResponse:
    headers = {"X-Requested-With": "fetch"} if script else {}
    return client.post("/validate/votes", data={"token": token, "statement": statement, **fields}, headers=headers)


def soup(response: TestResponse) -> BeautifulSoup:
    return BeautifulSoup(response.text, "lxml")


@pytest.fixture
def token(client: FlaskClient, judging: Judging) -> str:
    return token_in(open_judging(client, judging))


def test_a_reader_judges_flags_looks_over_changes_and_hands_in(
    client: FlaskClient, judging: Judging, rows: Rows
) -> None:
    page = open_judging(client, judging)
    token = token_in(page)
    one, two, three = judging.public_ids
    second = vote(client, token, one, label="negative")
    third = vote(client, token, two, flag_reason="Makes no sense.")
    summary = vote(client, token, three, label="neutral")
    again = client.post("/validate/statements", data={"token": token, "statement": one})
    back = vote(client, token, one, label="positive")
    done = client.post("/validate/submit", data={"token": token})

    assert "1 of 3" in page.text
    assert "2 of 3" in second.text
    assert "3 of 3" in third.text
    assert "You have judged all 3" in summary.text
    assert "flagged: Makes no sense." in summary.text
    assert soup(again).find("input", {"value": "negative"}).has_attr("checked")
    assert "You have judged all 3" in back.text
    assert "externalSubmit" in done.text
    assert [(one.label, one.flag_reason, one.counted_at) for one in rows(Vote)] == [
        ("positive", None, None),
        (None, "Makes no sense.", None),
        ("neutral", None, None),
    ]
    assert [one.state for one in rows(Assignment)][-1] is AssignmentState.SAVED


def test_a_preview_stores_nothing_and_shows_no_statement(client: FlaskClient, judging: Judging, rows: Rows) -> None:
    before = len(rows(Assignment))

    response = client.get(f"/validate/{judging.hit.reference}")

    assert response.status_code == 200
    assert "Read up to 3 short statements" in response.text
    assert "The soup came cold" not in response.text
    assert "holders of the qualification “" in response.text
    assert len(rows(Assignment)) == before


def test_every_bonus_is_shown_before_accepting_and_on_the_page(
    client: FlaskClient, judging: Judging, session_factory: sessionmaker[Session]
) -> None:
    address = f"/validate/{judging.hit.reference}"
    without = client.get(address).text
    with session_factory() as session:
        batch = session.get_one(HitBatch, judging.hit.batch_id)
        batch.extras = ReaderTerms(80, Decimal("0.20"), Decimal("0.05")).as_json()
        session.commit()
    preview, page = client.get(address).text, open_judging(client, judging)
    token = token_in(page)
    for public_id in judging.public_ids:
        summary = vote(client, token, public_id, label="neutral").text

    assert "There is no bonus" in without
    assert "You get $0.05 more for each of these HITs" in preview
    assert "You get $0.20 more, once" in preview
    assert "There is no bonus" not in preview
    assert "and $0.05 when every item is judged" in soup(page).find("p", "task-bar").text
    assert "and $0.05 more." in " ".join(BeautifulSoup(summary, "lxml").text.split())


def test_the_page_tells_nothing_of_writer_model_verdict_or_goal(
    client: FlaskClient, judging: Judging, session_factory: sessionmaker[Session]
) -> None:
    page = open_judging(client, judging).text

    with session_factory() as session:
        for example in session.query(Example):
            assert example.writer.pseudonym not in page
            assert example.writer.mturk_worker_id not in page
            assert example.context.fields["prompt"] not in page
    for word in ("fooled", "verdict", "goal", "0.8", "80%", "model"):
        assert word not in page.lower().replace("dynahit", "")
    assert not soup(open_judging(client, judging)).find("input", {"type": "radio", "checked": True})


def test_a_writer_is_not_shown_the_own_statement(client: FlaskClient, judging: Judging) -> None:
    assert "1 of 2" in open_judging(client, judging, worker="AOWNER").text


def test_a_forged_vote_for_the_own_statement_is_refused(client: FlaskClient, judging: Judging, rows: Rows) -> None:
    token = token_in(open_judging(client, judging, worker="AOWNER"))

    response = vote(client, token, judging.public_ids[2], label="negative")

    # It was not drawn for its writer, so that it is no part of this page.
    assert response.status_code == 409
    assert "not part of this HIT" in response.text
    assert rows(Vote) == []


def test_a_statement_of_another_hit_is_refused(client: FlaskClient, token: str, rows: Rows) -> None:
    response = vote(client, token, "attempt-0", label="negative")

    assert response.status_code == 409
    assert "not part of this HIT" in response.text
    assert rows(Vote) == []


def test_nobody_judges_the_same_statement_twice_in_another_hit(
    client: FlaskClient, judging: Judging, token: str, rows: Rows, session_factory: sessionmaker[Session]
) -> None:
    for public_id in judging.public_ids:
        vote(client, token, public_id, label="negative")
    client.post("/validate/submit", data={"token": token})
    with session_factory() as session:
        examples = [session.get_one(Example, example_id) for example_id in judging.example_ids]
        another = make_validation_hit(session, examples=examples)
        session.commit()
        again = Judging(another, judging.public_ids, judging.example_ids)
        page = client.get(
            f"/validate/{another.reference}",
            query_string=frame_query(another, worker="AJUDGE", assignment="ASSIGNMENTTWO"),
        )
        other = token_in(open_judging(client, again, worker="AFRESH", assignment="ASSIGNMENTTHREE"))

    assert "There is nothing here for you to judge" in page.text
    assert "have judged it before" in page.text
    assert "Return" in page.text
    assert vote(client, other, judging.public_ids[0], label="positive").status_code == 200
    with session_factory() as session:
        # The same person, now with a token of the second HIT.
        judge = session.query(Assignment).filter_by(mturk_assignment_id="ASSIGNMENTTWO").one()
        from app.tokens import Claim

        claim = Claim("ASSIGNMENTTWO", judge.worker.mturk_worker_id, judge.hit.reference)
        deadline = judge.deadline_at
    assert deadline is not None
    forged = client.application.extensions["dynahit"].tokens.issue(claim, valid_until=deadline)
    response = vote(client, forged, judging.public_ids[0], label="positive")
    assert response.status_code == 409
    assert "not part of this HIT" in response.text
    assert [one.label for one in rows(Vote)] == ["negative", "negative", "negative", "positive"]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({}, "label"),
        ({"label": "negative", "flag_reason": "both"}, "label"),
        ({"flag_reason": ""}, "flag_reason"),
        ({"flag_reason": " \n"}, "flag_reason"),
        ({"flag_reason": "a\0b"}, "flag_reason"),
        ({"flag_reason": "x" * 501}, "flag_reason"),
    ],
)
def test_what_is_no_judgement_is_told_at_its_field(
    client: FlaskClient, judging: Judging, token: str, rows: Rows, fields: dict[str, str], where: str
) -> None:
    page = vote(client, token, judging.public_ids[0], **fields)
    by_script = vote(client, token, judging.public_ids[0], script=True, **fields)

    assert page.status_code == by_script.status_code == 422
    assert "1 of 3" in page.text
    assert soup(page).find(class_="field-error") is not None
    assert by_script.json["field"] == where
    assert rows(Vote) == []


def test_an_unknown_label_is_refused(client: FlaskClient, judging: Judging, token: str, rows: Rows) -> None:
    response = vote(client, token, judging.public_ids[0], label="<script>")

    assert response.status_code == 422
    assert "<script>&" not in response.text
    assert rows(Vote) == []


def test_submitting_before_the_end_is_refused(client: FlaskClient, judging: Judging, token: str, rows: Rows) -> None:
    vote(client, token, judging.public_ids[0], label="negative")

    response = client.post("/validate/submit", data={"token": token})

    assert response.status_code == 409
    assert "2 of 3 statements still wait" in response.text
    assert "2 of 3</strong>" in response.text


def test_after_submitting_no_vote_changes(client: FlaskClient, judging: Judging, token: str, rows: Rows) -> None:
    for public_id in judging.public_ids:
        vote(client, token, public_id, label="negative")
    client.post("/validate/submit", data={"token": token})

    response = vote(client, token, judging.public_ids[0], label="positive")
    reload = open_judging(client, judging)

    assert response.status_code == 409
    assert [one.label for one in rows(Vote)] == ["negative"] * 3
    assert "Your work is saved" in reload.text


def test_the_time_over_means_no_vote(
    client: FlaskClient, judging: Judging, token: str, rows: Rows, clock: FixedClock
) -> None:
    clock.advance(timedelta(minutes=30))

    assert vote(client, token, judging.public_ids[0], label="negative").status_code == 409
    assert rows(Vote) == []


def test_a_script_gets_the_next_statement_only(client: FlaskClient, judging: Judging, token: str) -> None:
    response = vote(client, token, judging.public_ids[0], script=True, label="negative")

    assert response.headers["X-Fragment"] == "1"
    assert "<html" not in response.text
    assert "2 of 3" in response.text


def test_choices_show_their_digits(client: FlaskClient, judging: Judging) -> None:
    radios = soup(open_judging(client, judging)).find_all("input", {"type": "radio"})

    assert [(one["value"], one["data-digit"]) for one in radios] == [
        ("negative", "1"),
        ("positive", "2"),
        ("neutral", "3"),
    ]


def test_no_page_sets_a_cookie(client: FlaskClient, judging: Judging, token: str) -> None:
    answers = [
        open_judging(client, judging),
        vote(client, token, judging.public_ids[0], label="negative"),
        client.get(f"/validate/{judging.hit.reference}"),
    ]

    assert [answer.headers.get("Set-Cookie") for answer in answers] == [None] * 3


def test_a_creation_hit_is_no_validation_hit(client: FlaskClient, hit: Any) -> None:
    assert client.get(f"/validate/{hit.reference}").status_code == 404


def test_a_reader_of_hateful_texts_is_warned_first_and_may_say_more(
    client: FlaskClient, session_factory: sessionmaker[Session], rows: Rows
) -> None:
    with session_factory() as session:
        example = fooling_example(session, creation_hit(session, "hate"))
        hit = validation_hit(session, [example])
        session.commit()
        public_id, reference, query = example.attempt.public_id, hit.reference, frame_query(hit)
    covered = gone_on(client, client.get(f"/validate/{reference}", query_string=query))
    assert "This task is about hateful language" in covered.text
    assert "Quillby" not in covered.text
    assert soup(covered).find("form", {"action": "/validate/votes"}) is None
    unseen = vote(client, token_in(covered), public_id, label="hateful")
    assert (unseen.status_code, rows(Vote)) == (409, [])
    page = client.post("/validate/reveal", data={"token": token_in(covered), "statement": public_id})

    assert "Quillby" in soup(page).find("blockquote").get_text()
    assert [one["name"] for one in soup(page).find_all("select")] == ["hate_target", "hate_type"]
    refused = vote(client, token_in(page), public_id, label="hateful", hate_type="rude", script=True)
    assert (refused.status_code, refused.json["field"]) == (422, "hate_type")  # type: ignore[index]
    assert vote(client, token_in(page), public_id, label="hateful", hate_type="threat").status_code == 200
    assert [(one.label, one.details) for one in rows(Vote)] == [("hateful", {"hate_type": "threat"})]
    again = client.post("/validate/statements", data={"token": token_in(page), "statement": public_id})
    assert soup(again).find("select", {"name": "hate_type"}).find("option", selected=True)["value"] == "threat"


def test_a_reader_of_questions_sees_the_answer_marked_in_the_passage(
    client: FlaskClient, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        hit = validation_hit(session, [fooling_example(session, creation_hit(session, "qa"))])
        session.commit()
        reference, query = hit.reference, frame_query(hit)

    page = soup(gone_on(client, client.get(f"/validate/{reference}", query_string=query)))

    passage, question, answer = page.find_all("blockquote")
    assert [mark.get_text() for mark in passage.find_all("mark")] == ["stone"]
    assert passage.get_text() == PASSAGE
    assert (question.get_text(), answer.get_text()) == ("What was the second bridge made of?", "stone")
    assert "old bridge" not in answer.get_text()
    assert "You fooled" not in page.get_text()


def test_nothing_on_the_page_tells_a_gold_item_from_an_example(
    client: FlaskClient, judging: Judging, session_factory: sessionmaker[Session], clock: FixedClock
) -> None:
    with session_factory() as session:
        round_ = session.get_one(Example, judging.example_ids[0]).round
        round_.gold_items = 1
        row = {"context": {"prompt": "Rain."}, "answer": {"statement": "It rained all day."}, "label": "neutral"}
        gold = add_gold(session, round_, row, clock.now())
        assert gold is not None
        gold_id = gold.public_id
        session.commit()
    token = token_in(open_judging(client, judging))
    with session_factory() as session:
        names = [lease.public_id for lease in session.query(Lease).order_by(Lease.position)]
    assert gold_id in names
    shapes = set()
    for name in names:
        shown = soup(client.post("/validate/statements", data={"token": token, "statement": name}))
        part = shown.find(id="item")
        assert {one["value"] for one in part.find_all("input", {"name": "statement"})} & {name}
        for quote in part.find_all("blockquote"):
            quote.clear()
        for hidden in part.find_all("input", {"type": "hidden"}):
            hidden["value"] = ""
        # Only the first has no way back, and only the last one's button leads to all of them.
        for back in part.find_all("form", {"action": "/validate/statements"}):
            back.decompose()
        shape = re.sub(r"\d+", "N", str(part)).replace("Keep and see all", "Keep and go on")
        shapes.add(re.sub(r"\s+", " ", shape))
    assert len(names) == 4
    assert len(shapes) == 1
