"""The page of a round's writers and texts."""

from __future__ import annotations

from collections.abc import Callable

from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from app.models import StaffUser
from hits.likeness import Measured, Told, measure_examples, note_writing
from hits.models import Example
from hits.states import AssignmentState
from tests.app.conftest import sign_in
from tests.factories import make_assignment, make_attempt, make_example, make_round, make_worker

PAGE = "/rounds/sentiment/1/writers"
TRAIN = "The train was late again, but the conductor brought us free coffee."


def test_repeats_copies_and_pastes_are_shown_by_pseudonym(
    client: FlaskClient, staff: Callable[..., StaffUser], session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        make_round(session)
        session.commit()
    assert client.get(PAGE).status_code in (302, 401)
    staff()
    sign_in(client)
    assert "No example was compared yet" in client.get(PAGE).text
    with session_factory() as session:
        writer = make_worker(session, mturk_worker_id="AHIDDENWRITER")
        pseudonym = writer.pseudonym
        for text in (TRAIN, TRAIN + "!"):
            assignment = make_assignment(session, worker=writer, state=AssignmentState.SUBMITTED)
            example: Example = make_example(
                session, attempt=make_attempt(session, assignment=assignment, answer={"statement": text})
            )
        note_writing(session, example.attempt_id, Measured(1, 60, 1234, 7), Told(near=True))
        measure_examples(session)
        session.commit()

    page = client.get(PAGE)

    assert page.status_code == 200
    assert "AHIDDENWRITER" not in page.text
    row = BeautifulSoup(page.text, "lxml").find("th", string=pseudonym)
    assert row is not None
    cells = [cell.get_text(" ", strip=True) for cell in row.parent.find_all("td")]  # type: ignore[union-attr]
    assert cells[0] == "2"
    assert cells[1].startswith("50.0% 1 of 2")
    assert cells[3].startswith("100.0% 1 of 1")
    assert cells[4:] == ["1,234", "7"]
    assert client.get("/rounds/sentiment/9/writers").status_code == 404
