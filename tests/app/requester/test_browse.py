"""A round's examples, browsed and searched, and what there is to see of one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry, StaffUser
from app.requester.browse import members_of
from hits import listing
from hits.arms import Arm, draw_arm, set_arms
from hits.models import Worker
from hits.states import AssignmentState
from hits.tasks import task
from tests.app.conftest import sign_in
from tests.factories import NOON, make_assignment, make_attempt, make_example, make_round, make_vote, make_worker

PAGE = "/rounds/sentiment/1/statements"


@pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
def test_examples_are_found_and_one_tells_its_members_and_history(
    client: FlaskClient,
    staff: Callable[..., StaffUser],
    session_factory: sessionmaker[Session],
    rows: Callable[[type[Any]], list[Any]],
) -> None:
    member = {"model_id": "one", "revision": "r1", "label": "positive", "probabilities": {"positive": 0.9}}
    with session_factory() as session:
        work = make_assignment(session, state=AssignmentState.SUBMITTED)
        answer = {"statement": "A <i>train</i> that never came."}
        attempt = make_attempt(session, assignment=work, answer=answer, members=[member])
        example = make_example(session, attempt=attempt)
        vote = make_vote(session, example=example)
        make_example(session)
        session.add(
            AuditEntry(
                at=NOON,
                staff_name="kim",
                action="flag.dismiss",
                subject=f"example {attempt.public_id}",
                detail={"reason": "It is a joke."},
            )
        )
        writer, reader, name = work.worker.pseudonym, vote.validator.pseudonym, attempt.public_id
        session.commit()
    staff()
    sign_in(client)

    everything = client.get(PAGE).text
    assert "2 in all." in everything
    found = client.get(f"{PAGE}?text=TRAIN&fooled=1&label=negative&verdict=pending").text
    assert "1 fits among the 2 that were looked through: all there are." in found
    assert "A &lt;i&gt;train&lt;/i&gt;" in found
    assert "1 in all." in client.get(f"{PAGE}?writer={writer}").text
    assert "There are none" in client.get(f"{PAGE}?writer=w-nobody&older=nothing").text

    page = client.get(f"/rounds/statements/{name}").text
    for words in (
        "one at r1",
        "The flags were dismissed",
        "It is a joke.",
        "kim",
        writer,
        reader,
        "Judged by a reader",
    ):
        assert words in page
    for worker in rows(Worker):
        assert worker.mturk_worker_id not in everything + found + page


@pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
def test_examples_are_listed_by_the_arm_of_their_writers(
    client: FlaskClient, staff: Callable[..., StaffUser], session_factory: sessionmaker[Session]
) -> None:
    staff()
    sign_in(client)
    with session_factory() as session:
        make_example(session, attempt=make_attempt(session, answer={"statement": "Before the arms."}))
        session.commit()
    assert "Writer&#39;s arm" not in client.get(PAGE).text
    with session_factory() as session:
        round_, writer = make_round(session), make_worker(session)
        set_arms(session, round_, [Arm("control", 1, model_in_loop=False)], seed=0, by="ada", now=NOON)
        draw_arm(session, round_, writer.id, NOON)
        work = make_assignment(session, worker=writer, state=AssignmentState.SUBMITTED)
        make_example(session, attempt=make_attempt(session, assignment=work, answer={"statement": "Seen by nobody."}))
        session.commit()

    everything = client.get(PAGE).text
    inside, outside, unknown = (client.get(f"{PAGE}?arm={arm}").text for arm in ("control", "-", "nothing"))

    assert '<option value="control">control</option>' in everything
    assert '<option value="control" selected>' in inside
    assert ("Seen by nobody." in inside, "Before the arms." in inside) == (True, False)
    assert ("Seen by nobody." in outside, "Before the arms." in outside) == (False, True)
    assert "2 in all." in everything
    assert "2 in all." in unknown
    arms = client.get("/rounds/sentiment/1/arms").text
    assert f'href="{PAGE}?arm=control"' in arms
    assert f'href="{PAGE}?arm=-"' in arms


@pytest.mark.parametrize("database_url", [pytest.param("sqlite", marks=pytest.mark.sqlite)], indirect=True)
def test_a_paused_search_says_so_and_how_far_it_came_and_one_click_goes_on(
    client: FlaskClient,
    staff: Callable[..., StaffUser],
    session_factory: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with session_factory() as session:
        for number in range(6):
            attempt = make_attempt(session, answer={"statement": "Oak." if number < 2 else "Elm."})
            make_example(session, attempt=attempt, collected_at=NOON + timedelta(minutes=number))
        session.commit()
    monkeypatch.setattr(listing, "CHUNK", 3)
    monkeypatch.setattr(listing, "SECONDS", 0.0)
    staff()
    sign_in(client)

    first = BeautifulSoup(client.get(f"{PAGE}?text=oak").text, "html.parser")
    said = first.select_one("main [role=status]")
    assert said is not None
    words = " ".join(said.text.split())
    assert words.startswith("0 fit among the 3 newest. The search was paused here, at those of")
    assert "12:03" in words
    onward = said.find("a", string="Search the older ones")
    assert isinstance(onward, Tag)
    assert first.find(string=re.compile("There are none")) is None

    second = BeautifulSoup(client.get(str(onward["href"])).text, "html.parser")
    said = second.select_one("main [role=status]")
    assert said is not None
    assert "2 fit among the 3 that were looked through here" in " ".join(said.text.split())
    assert len(second.select("main tbody tr")) == 2


def test_members_say_a_label_or_a_stretch_of_the_passage() -> None:
    span = {
        "model_id": "m",
        "revision": "1",
        "label": "",
        "span": {"text": "oak", "start": 0, "end": 3},
        "confidence": 0.5,
    }

    assert members_of(task("sentiment"), None, "negative") == []
    assert [(one.said, one.percent, one.bars) for one in members_of(task("qa"), [span], "right")] == [
        ("“oak”", "50%", ())
    ]
