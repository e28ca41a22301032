"""A round's examples, browsed and searched, and what there is to see of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from app.models import AuditEntry, StaffUser
from app.requester.browse import members_of
from hits.models import Worker
from hits.states import AssignmentState
from hits.tasks import task
from tests.app.conftest import sign_in
from tests.factories import NOON, make_assignment, make_attempt, make_example, make_vote

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
