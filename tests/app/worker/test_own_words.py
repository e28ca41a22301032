"""A writer is told of texts handed in before and of copies, and of what the page counts; never held up by either."""

from __future__ import annotations

from bs4 import BeautifulSoup
from flask.testing import FlaskClient
from sqlalchemy.orm import Session, sessionmaker

from hits.likeness import measure_examples
from hits.models import Attempt, Hit, Writing
from hits.states import AssignmentState
from tests.app.conftest import ask, open_page, token_in
from tests.factories import make_assignment, make_attempt, make_example

TRAIN = "The train was late again, but the conductor brought us good coffee and we laughed."


def handed_in(session_factory: sessionmaker[Session], hit: Hit) -> None:
    with session_factory() as session:
        assignment = make_assignment(session, hit=session.get_one(Hit, hit.id), state=AssignmentState.SUBMITTED)
        make_example(session, attempt=make_attempt(session, assignment=assignment, answer={"statement": TRAIN}))
        measure_examples(session)
        session.commit()


def test_a_repeat_is_noted_on_the_page_and_asked_all_the_same(
    client: FlaskClient, hit: Hit, session_factory: sessionmaker[Session], token: str
) -> None:
    handed_in(session_factory, hit)

    answer = ask(client, token, TRAIN.replace("again", "once more"), script=True, browser_keys="80", browser_pastes="1")

    assert answer.status_code == 200
    assert "very similar to a text that was already handed in" in answer.text
    assert "You fooled the model" in answer.text
    with session_factory() as session:
        row = session.query(Writing).one()
        assert (row.keystrokes, row.pastes, row.told_near, row.told_copied) == (80, 1, True, False)
    page = open_page(client, hit)
    assert "very similar" in page.text, "a reload says it again"
    assert handed_in_by_others(page.text) == ""


def handed_in_by_others(page: str) -> str:
    """What of the earlier text stands on the page besides the writer's own: nothing may."""
    return "late again" if "late again" in BeautifulSoup(page, "lxml").get_text() else ""


def test_an_own_text_is_asked_without_a_note_and_without_a_word_of_the_browser(
    client: FlaskClient, hit: Hit, session_factory: sessionmaker[Session], token: str
) -> None:
    answer = ask(client, token, TRAIN, script=True)

    assert "own words" not in answer.text
    with session_factory() as session:
        assert session.query(Attempt).count() == 1
        assert session.query(Writing).count() == 0


def test_the_page_says_what_it_counts(client: FlaskClient, hit: Hit) -> None:
    page = open_page(client, hit)

    assert token_in(page)
    assert "how many keys were pressed" in page.text
