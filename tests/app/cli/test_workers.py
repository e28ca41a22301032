"""`dynahit workers`: people by pseudonym, and how somebody is erased."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session, sessionmaker

from hits.clock import FixedClock
from hits.consent import agree, text_of
from hits.models import Assignment, Worker
from hits.states import AssignmentState
from tests.app.cli.test_hits import Shell
from tests.factories import NOON, PSEUDONYM_KEY, make_assignment, make_worker
from tests.market import Market


@pytest.fixture
def shell(session_factory: sessionmaker[Session], database_url: str, clock: FixedClock) -> Iterator[Shell]:
    made = Shell(database_url, Market(clock), clock)
    yield made
    made.close()


@pytest.fixture
def pseudonym(session_factory: sessionmaker[Session]) -> str:
    with session_factory() as session:
        worker = make_worker(session, mturk_worker_id="AERASEME")
        text = text_of(session, "We store what you write.", NOON)
        agree(session, "AERASEME", text, str(text.id), key=PSEUDONYM_KEY, now=NOON)
        make_assignment(session, worker=worker, state=AssignmentState.APPROVED, why="remark")
        session.commit()
        return worker.pseudonym


def test_people_are_listed_by_pseudonym_only(shell: Shell, pseudonym: str) -> None:
    shown, as_json = shell("workers", "list"), shell("workers", "list", "--json")

    assert shown.exit_code == as_json.exit_code == 0
    assert pseudonym in shown.output
    (row,) = json.loads(as_json.stdout)
    assert (row["worker"], row["handed_in"], row["erased_at"]) == (pseudonym, 1, None)
    assert "AERASEME" not in shown.output + as_json.output


def test_without_anybody_the_list_says_so(shell: Shell) -> None:
    assert "Nobody yet" in shell("workers", "list").output


def test_erasing_shows_first_asks_and_is_done_once(
    shell: Shell, pseudonym: str, session_factory: sessionmaker[Session]
) -> None:
    plan = shell("workers", "erase", "AERASEME", "--plan")
    declined = shell("workers", "erase", pseudonym, answer="n\n")
    with session_factory() as session:
        assert session.query(Worker).one().mturk_worker_id == "AERASEME"

    done = shell("workers", "erase", pseudonym, "--by", "robin", answer="y\n")
    again = shell("workers", "erase", pseudonym, "--yes")

    assert (plan.exit_code, declined.exit_code, done.exit_code, again.exit_code) == (0, 1, 0, 1)
    assert "remarks" in plan.output
    assert "is erased" in done.output
    assert "was erased on" in again.output
    assert "AERASEME" not in plan.output + declined.output + done.output + again.output
    with session_factory() as session:
        assert session.query(Worker).one().erased_at is not None
        assert session.query(Assignment).one().why == ""
    assert "erased 2026-11-15" in shell("workers", "list").output


def test_what_stands_in_the_way_is_said_with_what_to_do(
    shell: Shell, pseudonym: str, session_factory: sessionmaker[Session]
) -> None:
    with session_factory() as session:
        worker = session.query(Worker).one()
        make_assignment(session, worker=worker, state=AssignmentState.SUBMITTED)
        session.commit()

    refused = shell("workers", "erase", pseudonym, "--yes")
    plan = shell("workers", "erase", pseudonym, "--plan", "--json")

    assert refused.exit_code == 1
    assert "dynahit jobs run" in refused.output
    assert len(json.loads(plan.stdout)["obstacles"]) == 1


def test_somebody_unknown_is_not_named_back(shell: Shell) -> None:
    refused = shell("workers", "erase", "ASOMEBODY", "--yes")

    assert refused.exit_code == 1
    assert "ASOMEBODY" not in refused.output
